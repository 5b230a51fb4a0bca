//! The request that an approver is asked to answer.

use super::{ApprovalPattern, EditRefused, RequestId, Showing};
use crate::{AgentPath, Arguments, CallDigest, CallId, SessionId, SideEffects};
use async_trait::async_trait;
use serde_json::Value;
use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

/// Tells what a call would change.
#[async_trait]
pub trait Preview: Send + Sync {
    /// What the call would change if it ran now, such as a diff; `None` if that is not known.
    async fn changes(&self) -> Option<String>;
}

/// A path in the arguments of a call that does not lead where its name says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkedPath {
    /// The path as the call names it.
    pub path: String,
    /// Where it leads, relative to the workspace.
    pub leads_to: PathBuf,
}

impl fmt::Display for LinkedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // As JSON texts, which are on one line and say where they end.
        let (path, leads_to) = (Value::from(self.path.as_str()), self.leads_to.to_string_lossy());
        write!(f, "{path} is a link and leads to {}", Value::from(leads_to))
    }
}

/// The fields of an [`ApprovalRequest`], for engines that build one and for tests of an [`Approver`](super::Approver).
#[derive(Debug, Clone, PartialEq)]
#[allow(missing_docs, reason = "as for the request method of the same name")]
pub struct ApprovalParts {
    pub id: RequestId,
    pub session: SessionId,
    pub agent: AgentPath,
    pub turn: u64,
    pub call_id: CallId,
    pub tool: Arc<str>,
    pub arguments: Arc<Value>,
    pub links: Vec<LinkedPath>,
    pub side_effects: SideEffects,
    pub pattern: ApprovalPattern,
    pub digest: CallDigest,
    pub expires_in: Duration,
}

/// A question to an [`Approver`](super::Approver) about exactly the call that runs if the answer is yes (PO-4).
///
/// Cheap to clone; clones are the same request.
#[derive(Clone)]
pub struct ApprovalRequest {
    parts: Arc<ApprovalParts>,
    preview: Option<Arc<dyn Preview>>,
    showing: Showing,
    /// Why the arguments that were given last may not run.
    refused: Option<EditRefused>,
}

impl ApprovalRequest {
    /// A request about this call.
    pub fn new(parts: ApprovalParts, preview: Option<Arc<dyn Preview>>) -> Self {
        Self { parts: Arc::new(parts), preview, showing: Showing::default(), refused: None }
    }

    /// The same request with the digest of what would run now. It keeps its id, and the time it has been shown counts.
    #[must_use]
    pub fn renewed(&self, digest: CallDigest) -> Self {
        let parts = ApprovalParts { digest, ..ApprovalParts::clone(&self.parts) };
        Self { parts: Arc::new(parts), ..self.clone() }
    }

    /// The same request, asked again because the arguments that somebody gave may not run.
    #[must_use]
    pub fn after(&self, refused: EditRefused) -> Self {
        Self { refused: Some(refused), ..self.clone() }
    }

    /// The same request about other arguments, for showing to whoever has changed them what they come to. It has no
    /// preview, and only the engine finds out where paths lead.
    ///
    /// # Examples
    /// ```
    /// # use serde_json::json;
    /// # use std::sync::Arc;
    /// # use toolyard_core::{ApprovalRequest, sheet::Sheet};
    /// # fn show(request: &ApprovalRequest) {
    /// let edited = request.with_arguments(Arc::new(json!({"path": "notes.md"})));
    /// Sheet::of(&edited, None).whole().iter().for_each(|row| println!("{row}"));
    /// # }
    /// ```
    #[must_use]
    pub fn with_arguments(&self, arguments: Arc<Value>) -> Self {
        let parts = ApprovalParts { arguments, links: Vec::new(), ..ApprovalParts::clone(&self.parts) };
        Self { parts: Arc::new(parts), preview: None, refused: None, ..self.clone() }
    }

    /// The name of the request. One that is asked again keeps it.
    pub fn id(&self) -> RequestId {
        self.parts.id
    }

    /// The session.
    pub fn session(&self) -> &SessionId {
        &self.parts.session
    }

    /// The agent that makes the call.
    pub fn agent(&self) -> &AgentPath {
        &self.parts.agent
    }

    /// The number of the turn that the call belongs to, as events name it.
    pub fn turn(&self) -> u64 {
        self.parts.turn
    }

    /// The call's id.
    pub fn call_id(&self) -> &CallId {
        &self.parts.call_id
    }

    /// The tool's name.
    pub fn tool(&self) -> &Arc<str> {
        &self.parts.tool
    }

    /// The arguments, parsed and validated. Only registered secrets are redacted in them: text that merely looks like
    /// a secret may be the very thing to decide about.
    pub fn arguments(&self) -> &Arc<Value> {
        &self.parts.arguments
    }

    /// Whether these arguments are others than those that are asked about. Only such are an [edit](super::Answer::edit),
    /// which holds for this call alone (SM-5). The same in another spelling are none, and text that is no JSON is one.
    pub fn is_changed_by(&self, arguments: &Arguments) -> bool {
        !arguments.is(self.arguments())
    }

    /// The paths in the arguments that go through links, and where each leads. If one leads elsewhere when the call is
    /// about to run, the call ends as `permission_denied`.
    pub fn links(&self) -> &[LinkedPath] {
        &self.parts.links
    }

    /// The worst the tool can do.
    pub fn side_effects(&self) -> SideEffects {
        self.parts.side_effects
    }

    /// The pattern that [`Answer::always("ada")`](super::Answer::always("ada")) would cover.
    pub fn pattern(&self) -> &ApprovalPattern {
        &self.parts.pattern
    }

    /// The digest of what will run.
    pub fn digest(&self) -> &CallDigest {
        &self.parts.digest
    }

    /// How long an answer is waited for, counted from when the request is shown.
    pub fn expires_in(&self) -> Duration {
        self.parts.expires_in
    }

    /// Why the arguments that the last answer [gave](super::Answer::edit) may not run, if that is why it is asked again
    /// (SM-5).
    pub fn refused(&self) -> Option<&EditRefused> {
        self.refused.as_ref()
    }

    /// What the call would change if it ran now, if its tool can tell. This is not part of the digest, because
    /// it may have changed by the time the call runs.
    pub async fn changes(&self) -> Option<String> {
        self.preview.as_ref()?.changes().await
    }

    /// Reports whether the request is shown. An approver that has to show others first [holds](Showing::hold) it; if
    /// the approver reports nothing, the time counts from when the request was asked.
    pub fn showing(&self) -> &Showing {
        &self.showing
    }
}

impl fmt::Debug for ApprovalRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ApprovalRequest").field(&self.parts).finish()
    }
}
