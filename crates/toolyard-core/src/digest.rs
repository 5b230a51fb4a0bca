//! The digest that identifies exactly one piece of work, for approvals and audits to bind to.

mod content;
mod lazy;
mod terms;

pub use content::ContentHash;
pub use lazy::{DigestScope, LazyDigest};
pub use terms::{AgentTerms, PolicyIdentity, Terms};

use crate::{LinkedPath, SessionId, ToolSpec, canonical_json};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;
use std::{fmt, str::FromStr};

/// A SHA-256 over what a call would run, and under which [terms](Terms) (PO-4, SM-7).
///
/// Two calls have the same digest if the tool, its version, the arguments as [canonical JSON](canonical_json), the
/// session, the policy, what the agent may do and the sandbox are equal; call ids and spelling do not count. With a
/// policy that has a [fingerprint](crate::RuntimePolicy::fingerprint), equal calls have equal digests in every engine;
/// otherwise only in one life of one engine. Written as 64 hexadecimal digits.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::{
///     AgentTerms, CallDigest, Confirmations, PolicyIdentity, PolicyRules, Rule, RuntimePolicy, Sandbox, SessionId,
///     Terms,
/// };
/// let session = SessionId::from("demo");
/// let agent = AgentTerms::of([], &Confirmations::default());
/// let of = |args, rules: PolicyRules| {
///     let policy = PolicyIdentity::Content(rules.fingerprint().unwrap());
///     CallDigest::of("pay", "1", &args, &session, &Terms { policy, agent, sandbox: Sandbox::Host })
/// };
/// let rules = || PolicyRules::new(Rule::allow());
/// assert_eq!(of(json!({"to": "Ada", "sum": 5}), rules()), of(json!({"sum": 5.0, "to": "Ada"}), rules()));
/// assert_ne!(of(json!({}), rules()), of(json!({}), rules().tool("shell", Rule::Deny)));
/// assert_eq!(of(json!({}), rules()).to_string().parse(), Ok(of(json!({}), rules())));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallDigest([u8; 32]);

/// The error for a text that is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a digest must be 64 hexadecimal digits")]
pub struct DigestError;

impl CallDigest {
    /// The digest of a call that would run under these terms if it is allowed.
    pub fn of(tool: &str, version: &str, args: &Value, session: &SessionId, terms: &Terms) -> Self {
        let hash = ContentHash::new("toolyard call 2").text(tool).text(version).text(&canonical_json(args));
        Self(terms.add_to(hash.text(session.as_str())).finish())
    }

    /// The digest of a call that was refused before its arguments were parsed: it covers their text as received.
    pub fn of_text(tool: &str, arguments: &str, session: &SessionId) -> Self {
        let hash = ContentHash::new("toolyard text 1").text(tool).text(arguments);
        Self(hash.text(session.as_str()).finish())
    }

    /// The digest of what the calls of a pattern have in common, in one session.
    pub(crate) fn of_pattern(spec: &ToolSpec, pinned: &Value, session: &SessionId) -> Self {
        let (effects, pinned) = (spec.side_effects.as_str(), canonical_json(pinned));
        let hash = ContentHash::new("toolyard pattern 1").text(&spec.name).text(&spec.version).text(effects);
        Self(hash.text(&pinned).text(session.as_str()).finish())
    }

    /// The digest of a pattern together with where the links in it lead.
    pub(crate) fn of_links(pattern: &Self, links: &[LinkedPath]) -> Self {
        let links: Vec<_> = links.iter().map(LinkedPath::to_string).collect();
        Self(ContentHash::new("toolyard links 1").bytes(&pattern.0).text(&links.join("\n")).finish())
    }

    /// The digest as bytes.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for CallDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for CallDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallDigest({self})")
    }
}

impl FromStr for CallDigest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let mut bytes = [0; 32];
        if text.len() != 64 || !text.is_ascii() {
            return Err(DigestError);
        }
        for (at, byte) in bytes.iter_mut().enumerate() {
            let digits = &text[2 * at..2 * at + 2];
            // `from_str_radix` also accepts a sign.
            let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            *byte = u8::from_str_radix(digits, 16).ok().filter(|_| is_hex).ok_or(DigestError)?;
        }
        Ok(Self(bytes))
    }
}

impl Serialize for CallDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CallDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentTerms, Capabilities, Confirmations, Sandbox, event::Epoch};
    use serde_json::json;

    /// PO-4, SM-7: every part of what will run, and of what it runs under, is part of the digest.
    #[test]
    fn each_part_counts() {
        let session = SessionId::from("s");
        let confirmations = Confirmations::default();
        let policy = PolicyIdentity::Content([7; 32]);
        let terms = Terms { policy, agent: AgentTerms::of([], &confirmations), sandbox: Sandbox::Host };
        let of = |terms: Terms| CallDigest::of("t", "1", &json!({"a": 1}), &session, &terms);
        let digest = of(terms);
        let life = |epoch, version| PolicyIdentity::Life { epoch: Epoch::new(epoch), version };
        let narrowed = AgentTerms::of([&Capabilities::default().net([])], &confirmations);
        let others = [
            digest,
            CallDigest::of("u", "1", &json!({"a": 1}), &session, &terms),
            CallDigest::of("t", "2", &json!({"a": 1}), &session, &terms),
            CallDigest::of("t", "1", &json!({"a": 2}), &session, &terms),
            CallDigest::of("t", "1", &json!({"a": 1}), &SessionId::from("r"), &terms),
            CallDigest::of_text("t", "{\"a\":1}", &session),
            of(Terms { policy: PolicyIdentity::Content([8; 32]), ..terms }),
            of(Terms { policy: life(1, 1), ..terms }),
            of(Terms { policy: life(1, 2), ..terms }),
            of(Terms { policy: life(2, 1), ..terms }),
            of(Terms { agent: narrowed, ..terms }),
            of(Terms { agent: AgentTerms::of([], &Confirmations::auto()), ..terms }),
            of(Terms { sandbox: Sandbox::Process, ..terms }),
        ];
        let different: std::collections::BTreeSet<_> = others.into_iter().collect();
        assert_eq!(different.len(), others.len());
    }

    /// PO-4: a digest means the same in every version, because approvals and logs outlive a program.
    #[test]
    fn a_digest_stays_what_it_was() {
        let agent = AgentTerms::of([], &Confirmations::default());
        let terms = Terms { policy: PolicyIdentity::Content([7; 32]), agent, sandbox: Sandbox::Host };
        let args = json!({"to": "Ada", "sum": 5});
        let digest = CallDigest::of("pay", "1", &args, &SessionId::from("demo"), &terms);
        assert_eq!(digest.to_string(), "97292d2ce6e96be6c643209b319cc9fea30fac3147006a09bd89169751d77d96");
    }

    #[test]
    fn a_text_that_is_none_is_refused() {
        for text in ["", "ab", &"g".repeat(64), &"+1".repeat(32), &"é".repeat(32)] {
            assert_eq!(text.parse::<CallDigest>(), Err(DigestError), "{text}");
        }
        let digest = CallDigest::of_text("t", "", &SessionId::from("s"));
        let text = serde_json::to_string(&digest).unwrap();
        assert_eq!(serde_json::from_str::<CallDigest>(&text).unwrap(), digest);
    }
}
