//! A digest that is made when somebody asks for it.

use super::{CallDigest, Terms};
use crate::SessionId;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use std::{
    fmt,
    sync::{Arc, OnceLock},
};

/// The digest of a call in its events: made when it is first asked for, by whoever asks.
///
/// Many events are counted, kept or shown and never written, and hashing a call takes longer than to announce it. Until
/// the last event with it is dropped, a digest that has not been made with the event keeps the call's arguments alive,
/// out of sight; the engine makes that of a call with arguments of more than 512 bytes at once.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use std::sync::Arc;
/// use toolyard_core::{
///     AgentTerms, CallDigest, Confirmations, DigestScope, LazyDigest, PolicyIdentity, Sandbox, SessionId, Terms,
/// };
/// let (session, args) = (SessionId::from("demo"), Arc::new(json!({"to": "Ada"})));
/// let agent = AgentTerms::of([], &Confirmations::default());
/// let terms = Terms { policy: PolicyIdentity::Content([7; 32]), agent, sandbox: Sandbox::Host };
/// let made = CallDigest::of("pay", "1", &args, &session, &terms);
/// let scope = Arc::new(DigestScope::new("pay".into(), "1".into(), session, terms));
/// assert_eq!(LazyDigest::of(scope, args).get(), &made);
/// ```
#[derive(Clone)]
pub struct LazyDigest(Arc<Digest>);

enum Digest {
    Made(CallDigest),
    Lazy { scope: Arc<DigestScope>, args: Arc<Value>, made: OnceLock<CallDigest> },
}

/// What digests cover beside the arguments: calls of one tool in one session, and under the same terms, have it in
/// common.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestScope {
    tool: Arc<str>,
    version: Arc<str>,
    session: SessionId,
    terms: Terms,
}

impl DigestScope {
    /// That of calls to this version of a tool, in this session and under these terms.
    pub const fn new(tool: Arc<str>, version: Arc<str>, session: SessionId, terms: Terms) -> Self {
        Self { tool, version, session, terms }
    }

    /// The tool's name.
    pub const fn tool(&self) -> &Arc<str> {
        &self.tool
    }

    /// The tool's version.
    pub const fn version(&self) -> &Arc<str> {
        &self.version
    }

    /// What the calls run under.
    pub const fn terms(&self) -> &Terms {
        &self.terms
    }

    fn digest(&self, args: &Value) -> CallDigest {
        CallDigest::of(&self.tool, &self.version, args, &self.session, &self.terms)
    }
}

impl LazyDigest {
    /// The digest of a call that would run within this scope if it is allowed, as that of [`CallDigest::of`].
    pub fn of(scope: Arc<DigestScope>, args: Arc<Value>) -> Self {
        Self(Arc::new(Digest::Lazy { scope, args, made: OnceLock::new() }))
    }

    /// The digest, made now if nobody has asked for it before. Others who ask meanwhile wait for it.
    pub fn get(&self) -> &CallDigest {
        match &*self.0 {
            Digest::Made(digest) => digest,
            Digest::Lazy { scope, args, made } => made.get_or_init(|| scope.digest(args)),
        }
    }
}

impl From<CallDigest> for LazyDigest {
    fn from(digest: CallDigest) -> Self {
        Self(Arc::new(Digest::Made(digest)))
    }
}

/// Makes both, unless they are one.
impl PartialEq for LazyDigest {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.get() == other.get()
    }
}

impl Eq for LazyDigest {}

/// Shows the digest, never what it covers.
impl fmt::Debug for LazyDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl Serialize for LazyDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for LazyDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        CallDigest::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AgentTerms, Confirmations, PolicyIdentity, Sandbox};
    use serde_json::json;

    fn lazy(args: &Arc<Value>) -> LazyDigest {
        let agent = AgentTerms::of([], &Confirmations::default());
        let terms = Terms { policy: PolicyIdentity::Content([7; 32]), agent, sandbox: Sandbox::Process };
        let scope = DigestScope::new("pay".into(), "2".into(), SessionId::from("s"), terms);
        LazyDigest::of(Arc::new(scope), args.clone())
    }

    /// PO-4: it is the digest of the call, in memory and in a file, whoever asks first.
    #[test]
    fn it_is_the_digest_of_the_call() {
        let args = Arc::new(json!({"to": "Ada", "sum": 5}));
        let (digest, same) = (lazy(&args), lazy(&args));
        let written = serde_json::to_string(&digest).unwrap();
        assert_eq!(written, format!("\"{}\"", same.get()));
        assert_eq!(serde_json::from_str::<LazyDigest>(&written).unwrap(), digest);
        assert_ne!(lazy(&Arc::new(json!({"to": "Ada", "sum": 6}))), digest);
    }

    /// PO-7: what it covers does not show.
    #[test]
    fn what_it_covers_does_not_show() {
        let digest = lazy(&Arc::new(json!("hunter22")));
        assert_eq!(format!("{digest:?}"), format!("CallDigest({})", digest.get()));
    }

    /// CC-4: the arguments are kept for as long as somebody may ask.
    #[test]
    fn arguments_go_with_the_last_event() {
        let args = Arc::new(json!({}));
        let digest = lazy(&args);
        let kept = digest.clone();
        drop(digest);
        assert_eq!(Arc::strong_count(&args), 2);
        drop(kept);
        assert_eq!(Arc::strong_count(&args), 1);
    }
}
