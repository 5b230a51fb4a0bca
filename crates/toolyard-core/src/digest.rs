//! The digest that identifies exactly one piece of work, for approvals and audits to bind to.

use crate::{LinkedPath, SessionId, ToolSpec, canonical_json};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::{fmt, iter, str::FromStr};

/// A SHA-256 over what a call would run, and under which policy (PO-4).
///
/// Two calls have the same digest if the tool, its version, the arguments as [canonical JSON](canonical_json), the
/// session and the version of the policy are equal; call ids and spelling do not count. Written as 64 hexadecimal
/// digits.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::{CallDigest, SessionId};
/// let session = SessionId::from("demo");
/// let of = |args, policy| CallDigest::of("pay", "1", &args, &session, policy);
/// assert_eq!(of(json!({"to": "Ada", "sum": 5}), 1), of(json!({"sum": 5.0, "to": "Ada"}), 1));
/// assert_ne!(of(json!({"to": "Ada"}), 1), of(json!({"to": "Ada"}), 2));
/// assert_eq!(of(json!({}), 1).to_string().parse(), Ok(of(json!({}), 1)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallDigest([u8; 32]);

/// The error for a text that is not a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a digest must be 64 hexadecimal digits")]
pub struct DigestError;

impl CallDigest {
    /// The digest of a call that would run if it is allowed.
    pub fn of(tool: &str, version: &str, args: &Value, session: &SessionId, policy_version: u64) -> Self {
        let args = canonical_json(args);
        let policy = policy_version.to_be_bytes();
        Self::hash_parts(
            b"toolyard call 1",
            [tool.as_bytes(), version.as_bytes(), args.as_bytes(), session.as_str().as_bytes(), &policy],
        )
    }

    /// The digest of a call that was refused before its arguments were parsed: it covers their text as received.
    pub fn of_text(tool: &str, arguments: &str, session: &SessionId) -> Self {
        Self::hash_parts(
            b"toolyard text 1",
            [tool.as_bytes(), arguments.as_bytes(), session.as_str().as_bytes()],
        )
    }

    /// The digest of what the calls of a pattern have in common, in one session.
    pub(crate) fn of_pattern(spec: &ToolSpec, pinned: &Value, session: &SessionId) -> Self {
        let (effects, pinned) = (spec.side_effects.as_str(), canonical_json(pinned));
        let parts = [&spec.name, &spec.version, effects, &pinned, session.as_str()];
        Self::hash_parts(b"toolyard pattern 1", parts.map(str::as_bytes))
    }

    /// The digest of a pattern together with where the links in it lead.
    pub(crate) fn of_links(pattern: &Self, links: &[LinkedPath]) -> Self {
        let links: Vec<_> = links.iter().map(LinkedPath::to_string).collect();
        Self::hash_parts(b"toolyard links 1", [&pattern.0[..], links.join("\n").as_bytes()])
    }

    /// Hashes these parts, each preceded by its length, so that different splits of the same bytes differ. `kind`
    /// separates the kinds of digest.
    fn hash_parts<const N: usize>(kind: &[u8], parts: [&[u8]; N]) -> Self {
        let parts = || iter::once(kind).chain(parts);
        // Hashed in one go, because each step of a hash costs more than to copy what most parts have.
        let mut message = Vec::with_capacity(parts().map(|part| size_of::<u64>() + part.len()).sum());
        for part in parts() {
            message.extend_from_slice(&(part.len() as u64).to_be_bytes());
            message.extend_from_slice(part);
        }
        Self(Sha256::digest(&message).into())
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
    use serde_json::json;

    /// PO-4: every part of what will run is part of the digest.
    #[test]
    fn each_part_counts() {
        let session = SessionId::from("s");
        let digest = CallDigest::of("t", "1", &json!({"a": 1}), &session, 1);
        let others = [
            CallDigest::of("u", "1", &json!({"a": 1}), &session, 1),
            CallDigest::of("t", "2", &json!({"a": 1}), &session, 1),
            CallDigest::of("t", "1", &json!({"a": 2}), &session, 1),
            CallDigest::of("t", "1", &json!({"a": 1}), &SessionId::from("r"), 1),
            CallDigest::of("t", "1", &json!({"a": 1}), &session, 2),
            CallDigest::of_text("t", "{\"a\":1}", &session),
        ];
        for other in others {
            assert_ne!(other, digest);
        }
    }

    /// PO-4: a digest means the same in every version, because approvals and logs outlive a program.
    #[test]
    fn a_digest_stays_what_it_was() {
        let digest = CallDigest::of("pay", "1", &json!({"to": "Ada", "sum": 5}), &SessionId::from("demo"), 1);
        assert_eq!(digest.to_string(), "e224ac4e58aecd91dac75b9bdbbba1a2795284dc2e26572b823c897d7237a236");
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
