//! What a handler knows of the call it serves.

use crate::{AgentPath, CallId, Resources, SessionId};
use std::{fmt, sync::Arc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// Where streamed output of a call goes. The engine implements it.
pub trait Emit: Send + Sync {
    /// Some output of a call that still runs.
    fn output_delta(&self, cx: &ToolContext, text: &str);
}

/// The pieces of a [`ToolContext`]; the engine fills them in, and so does a test of a tool alone.
#[derive(Clone)]
#[non_exhaustive]
pub struct ContextParts {
    /// The session the call belongs to.
    pub session: SessionId,
    /// The agent in it.
    pub agent: AgentPath,
    /// The turn's number in the session, from 1.
    pub turn: u64,
    /// The batch's number in the session, from 1.
    pub batch: u64,
    /// The call's id.
    pub call_id: CallId,
    /// The tool's name.
    pub tool: Arc<str>,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// When the attempt is cut off.
    pub deadline: Option<Instant>,
    /// Fires when the call is to stop.
    pub cancel: CancellationToken,
    /// The caller's idempotency key, to be passed downstream (RT-9).
    pub idempotency_key: Option<Arc<str>>,
    /// What the embedder gave to its tools.
    pub resources: Arc<Resources>,
    /// Where streamed output goes.
    pub emit: Option<Arc<dyn Emit>>,
}

impl ContextParts {
    /// The parts of a call of `tool` that belongs to no engine: no deadline, nothing to cancel it.
    pub fn detached(tool: impl Into<Arc<str>>) -> Self {
        let (session, call_id) = (SessionId::from("detached"), CallId::from("call_1"));
        Self::new(session, AgentPath::root(), call_id, tool.into(), Arc::default(), CancellationToken::new())
    }

    /// The parts of the first attempt of this call, in the first batch of its session, without a deadline.
    pub fn new(
        session: SessionId,
        agent: AgentPath,
        call_id: CallId,
        tool: Arc<str>,
        resources: Arc<Resources>,
        cancel: CancellationToken,
    ) -> Self {
        Self {
            session,
            agent,
            turn: 1,
            batch: 1,
            call_id,
            tool,
            attempt: 1,
            deadline: None,
            cancel,
            idempotency_key: None,
            resources,
            emit: None,
        }
    }
}

/// What a handler knows of the call it serves. Cheap to clone.
///
/// # Examples
/// A tool tested alone:
/// ```
/// use std::sync::Arc;
/// use toolyard_core::{ContextParts, Resources, ToolContext};
/// let mut parts = ContextParts::detached("greet");
/// parts.resources = Arc::new(Resources::new().with(String::from("Ada")));
/// let cx = ToolContext::new(parts);
/// assert_eq!(cx.tool(), "greet");
/// assert_eq!(cx.resource::<String>().map(String::as_str), Some("Ada"));
/// ```
#[derive(Clone)]
pub struct ToolContext {
    parts: Arc<ContextParts>,
}

impl ToolContext {
    /// A context of these parts.
    pub fn new(parts: ContextParts) -> Self {
        Self { parts: Arc::new(parts) }
    }

    /// The session the call belongs to.
    pub fn session(&self) -> &SessionId {
        &self.parts.session
    }

    /// The agent in the session.
    pub fn agent(&self) -> &AgentPath {
        &self.parts.agent
    }

    /// The turn's number in the session, from 1.
    pub fn turn(&self) -> u64 {
        self.parts.turn
    }

    /// The batch's number in the session, from 1.
    pub fn batch(&self) -> u64 {
        self.parts.batch
    }

    /// The call's id.
    pub fn call_id(&self) -> &CallId {
        &self.parts.call_id
    }

    /// The tool's name.
    pub fn tool(&self) -> &str {
        &self.parts.tool
    }

    /// The attempt's number, from 1.
    pub fn attempt(&self) -> u32 {
        self.parts.attempt
    }

    /// When the attempt is cut off; `None` for a call without a limit.
    pub fn deadline(&self) -> Option<Instant> {
        self.parts.deadline
    }

    /// The caller's idempotency key, to be passed downstream (RT-9).
    pub fn idempotency_key(&self) -> Option<&str> {
        self.parts.idempotency_key.as_deref()
    }

    /// The embedder's value of type `T`; see [`Resources`].
    pub fn resource<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.parts.resources.get()
    }

    /// Whether the call is to stop.
    pub fn is_cancelled(&self) -> bool {
        self.parts.cancel.is_cancelled()
    }

    /// Waits until the call is to stop.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn cancelled(&self) {
        self.parts.cancel.cancelled().await;
    }

    /// The token behind [`cancelled`](Self::cancelled), to hand to libraries that take one.
    pub fn cancel_token(&self) -> &CancellationToken {
        &self.parts.cancel
    }

    /// Streams some output: readers of the event stream get it as `tool.output_delta`. It is no part of the
    /// result.
    pub fn emit(&self, text: &str) {
        if let Some(emit) = &self.parts.emit {
            emit.output_delta(self, text);
        }
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ToolContext");
        debug.field("session", self.session()).field("call_id", self.call_id());
        debug.field("tool", &self.tool()).field("attempt", &self.attempt()).finish_non_exhaustive()
    }
}
