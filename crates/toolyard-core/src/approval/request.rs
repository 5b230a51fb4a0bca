//! What is asked.

use super::{ApprovalPattern, Showing};
use crate::{AgentPath, CallDigest, CallId, SessionId, SideEffects};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::{fmt, sync::Arc, time::Duration};

/// The number of a request in its engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RequestId(pub u64);

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Says what a call would change.
#[async_trait]
pub trait Preview: Send + Sync {
    /// What it would change as things are now, such as a diff; `None` where nobody can say.
    async fn changes(&self) -> Option<String>;
}

/// The fields of an [`ApprovalRequest`]; for engines, which make them, and for tests of an [`Approver`](super::Approver).
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "as the methods of the request of the same name")]
pub struct ApprovalParts {
    pub id: RequestId,
    pub session: SessionId,
    pub agent: AgentPath,
    pub call_id: CallId,
    pub tool: Arc<str>,
    pub arguments: Arc<Value>,
    pub side_effects: SideEffects,
    pub pattern: ApprovalPattern,
    pub digest: CallDigest,
    pub expires_in: Duration,
}

/// What an [`Approver`](super::Approver) is asked about: exactly the call that runs if it says yes (PO-4). Cheap to clone;
/// clones are the same request.
#[derive(Clone)]
pub struct ApprovalRequest {
    parts: Arc<ApprovalParts>,
    preview: Option<Arc<dyn Preview>>,
    showing: Showing,
}

impl ApprovalRequest {
    /// A request about this call.
    pub fn new(parts: ApprovalParts, preview: Option<Arc<dyn Preview>>) -> Self {
        Self { parts: Arc::new(parts), preview, showing: Showing::default() }
    }

    /// The same request about what would run now: it stays shown since when it was.
    #[must_use]
    pub fn renewed(&self, digest: CallDigest) -> Self {
        let parts = ApprovalParts { digest, ..ApprovalParts::clone(&self.parts) };
        Self { parts: Arc::new(parts), ..self.clone() }
    }

    /// Its number in its engine. A request that is asked anew keeps it.
    pub fn id(&self) -> RequestId {
        self.parts.id
    }

    /// The session.
    pub fn session(&self) -> &SessionId {
        &self.parts.session
    }

    /// The agent in it.
    pub fn agent(&self) -> &AgentPath {
        &self.parts.agent
    }

    /// The call's id.
    pub fn call_id(&self) -> &CallId {
        &self.parts.call_id
    }

    /// The tool's name.
    pub fn tool(&self) -> &Arc<str> {
        &self.parts.tool
    }

    /// The arguments, parsed and checked. Registered secrets in them are redacted, and nothing else: what only looks
    /// like a secret may be what is to be decided about.
    pub fn arguments(&self) -> &Arc<Value> {
        &self.parts.arguments
    }

    /// The worst the tool can do.
    pub fn side_effects(&self) -> SideEffects {
        self.parts.side_effects
    }

    /// What [`Answer::Always`](super::Answer::Always) would be good for.
    pub fn pattern(&self) -> &ApprovalPattern {
        &self.parts.pattern
    }

    /// The mark of what will run.
    pub fn digest(&self) -> &CallDigest {
        &self.parts.digest
    }

    /// How long an answer is waited for, from when the request is shown.
    pub fn expires_in(&self) -> Duration {
        self.parts.expires_in
    }

    /// What the call would change as things are now, where its tool can say: no part of the digest, for it may be
    /// otherwise when the call runs.
    pub async fn changes(&self) -> Option<String> {
        self.preview.as_ref()?.changes().await
    }

    /// Says whether it is shown: who has others to show before it [holds](Showing::hold) it. Without a word its time
    /// counts from when it was asked.
    pub fn showing(&self) -> &Showing {
        &self.showing
    }
}

impl fmt::Debug for ApprovalRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ApprovalRequest").field(&self.parts).finish()
    }
}
