//! The context of a call, as its handler sees it.

use crate::{AgentPath, Batch, Call, CallError, CallId, ErrorKind, Outcome, Resources, Routing, SessionId};
use serde_json::Value;
use std::{any::Any, fmt, future::Future, pin::Pin, sync::Arc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// What the calls of a batch have in common, as a [`ToolContext`] sees it. The engine's batch implements this itself,
/// so making a context copies nothing.
pub trait CallScope: Send + Sync {
    /// The session.
    fn session(&self) -> &SessionId;

    /// The agent in it.
    fn agent(&self) -> &AgentPath;

    /// The turn's number in the session, from 1.
    fn turn(&self) -> u64;

    /// The batch's number in the session, from 1.
    fn batch(&self) -> u64;

    /// The call at this index of the batch.
    fn call(&self, index: u32) -> &Call;

    /// The idempotency key of the call at this index: its own, or one that its tool derives.
    fn idempotency_key(&self, index: u32) -> Option<&str> {
        self.call(index).idempotency_key.as_deref()
    }

    /// The values that the embedder gave to its tools.
    fn resources(&self) -> &Resources;

    /// Fires when the call at this index has to stop.
    fn cancel_token(&self, index: u32) -> &CancellationToken;

    /// Whether the call at this index has to stop.
    fn is_cancelled(&self, index: u32) -> bool {
        self.cancel_token(index).is_cancelled()
    }

    /// Streams some output of a call that still runs.
    fn output_delta(&self, index: u32, attempt: u32, text: &str);

    /// Runs a batch for the handler of the call at this index; see [`ToolContext::dispatch`].
    fn dispatch(self: Arc<Self>, index: u32, batch: Batch) -> Dispatching;

    /// The scope as [`Any`], for an engine that looks for its own kind of scope in a context.
    #[doc(hidden)]
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

/// A nested dispatch in flight; see [`ToolContext::dispatch`].
pub type Dispatching = Pin<Box<dyn Future<Output = Vec<Outcome>> + Send>>;

/// The parts of a [`ToolContext`] that belongs to no engine, for testing a tool alone.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ContextParts {
    /// The session that the call belongs to.
    pub session: SessionId,
    /// The agent in it.
    pub agent: AgentPath,
    /// The call.
    pub call: Call,
    /// The instant at which the attempt is cut off.
    pub deadline: Option<Instant>,
    /// Fires when the call has to stop.
    pub cancel: CancellationToken,
    /// The values that the embedder gave to its tools.
    pub resources: Arc<Resources>,
}

impl ContextParts {
    /// The parts of a call of `tool`, without a deadline and with a token that nothing else holds.
    pub fn detached(tool: impl Into<Arc<str>>) -> Self {
        Self {
            session: SessionId::from("detached"),
            agent: AgentPath::root(),
            call: Call::new("call_1", tool, Value::Null),
            deadline: None,
            cancel: CancellationToken::new(),
            resources: Arc::default(),
        }
    }
}

impl CallScope for ContextParts {
    fn session(&self) -> &SessionId {
        &self.session
    }

    fn agent(&self) -> &AgentPath {
        &self.agent
    }

    fn turn(&self) -> u64 {
        1
    }

    fn batch(&self) -> u64 {
        1
    }

    fn call(&self, _: u32) -> &Call {
        &self.call
    }

    fn resources(&self) -> &Resources {
        &self.resources
    }

    fn cancel_token(&self, _: u32) -> &CancellationToken {
        &self.cancel
    }

    fn output_delta(&self, _: u32, _: u32, _: &str) {}

    /// Answers every call `internal`, not started, because there is no engine.
    fn dispatch(self: Arc<Self>, _: u32, batch: Batch) -> Dispatching {
        let refuse = |call: Call| {
            let error = CallError::new(ErrorKind::Internal, "this context does not belong to an engine");
            Outcome::new(&call, Routing::ShortCircuit, Err(error.not_started()))
        };
        Box::pin(std::future::ready(batch.into_iter().map(refuse).collect()))
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// The context of a call, as its handler sees it.
///
/// Cheap to clone. A clone that is kept keeps its batch alive, and with it its session open.
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
    scope: Arc<dyn CallScope>,
    index: u32,
    attempt: u32,
    deadline: Option<Instant>,
    /// A token for this attempt alone, if it has one.
    own: Option<CancellationToken>,
}

impl ToolContext {
    /// The context of a call that belongs to no engine.
    pub fn new(parts: ContextParts) -> Self {
        let deadline = parts.deadline;
        Self::in_scope(Arc::new(parts), 0, 1, deadline)
    }

    /// The context of an attempt, counted from 1, of the call at this index of a scope; for engines.
    #[doc(hidden)]
    pub fn in_scope(scope: Arc<dyn CallScope>, index: u32, attempt: u32, deadline: Option<Instant>) -> Self {
        Self { scope, index, attempt, deadline, own: None }
    }

    /// The same context with a token of its own below the call's, so that this attempt alone can be cancelled; for
    /// engines.
    #[doc(hidden)]
    #[must_use]
    pub fn with_own_token(mut self) -> Self {
        self.own = Some(self.scope.cancel_token(self.index).child_token());
        self
    }

    /// Cancels this attempt alone. Without a token of its own this does nothing. For engines.
    #[doc(hidden)]
    pub fn cancel_own(&self) {
        if let Some(own) = &self.own {
            own.cancel();
        }
    }

    fn call(&self) -> &Call {
        self.scope.call(self.index)
    }

    /// Runs calls on behalf of the handler and returns one result per call, in call order (CL-4).
    ///
    /// While this is awaited the handler holds no permit, so anything it does alongside (in a `join!`, a `select!` or
    /// another task) runs without one. The future yields once its calls are quiescent or abandoned, nothing else that
    /// this handler dispatched is in flight, and the handler holds its permits again (CC-6).
    ///
    /// A handler on the serial lease lends it to the calls it dispatches, so serial tools may call serial tools to any
    /// depth (CC-7). The attempt's clock stands still meanwhile (V3). Dispatching through a captured session works the
    /// same way, as long as it happens on the handler's own task (CC-7b).
    ///
    /// # Cancel safety
    /// Dropping the future cancels its calls. The handler counts as waiting until they have stopped, and its next
    /// dispatch waits for that too (CC-6b).
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::{Batch, Call, ToolContext, ToolError, ToolOutput};
    /// async fn both(cx: &ToolContext) -> Result<ToolOutput, ToolError> {
    ///     let batch: Batch = ["a", "b"].map(|id| Call::new(id, "read_file", "{}")).into_iter().collect();
    ///     let outcomes = cx.dispatch(batch).await;
    ///     Ok(ToolOutput::text(format!("{} read", outcomes.iter().filter(|one| one.success()).count())))
    /// }
    /// ```
    pub async fn dispatch(&self, batch: impl Into<Batch>) -> Vec<Outcome> {
        self.scope.clone().dispatch(self.index, batch.into()).await
    }

    /// The scope and the index in it; for engines.
    #[doc(hidden)]
    pub fn place(&self) -> (Arc<dyn CallScope>, u32) {
        (self.scope.clone(), self.index)
    }

    /// The session that the call belongs to.
    pub fn session(&self) -> &SessionId {
        self.scope.session()
    }

    /// The agent in the session.
    pub fn agent(&self) -> &AgentPath {
        self.scope.agent()
    }

    /// The turn's number in the session, from 1.
    pub fn turn(&self) -> u64 {
        self.scope.turn()
    }

    /// The batch's number in the session, from 1.
    pub fn batch(&self) -> u64 {
        self.scope.batch()
    }

    /// The call's id.
    pub fn call_id(&self) -> &CallId {
        &self.call().id
    }

    /// The tool's name.
    pub fn tool(&self) -> &str {
        &self.call().name
    }

    /// The attempt's number, from 1.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// The instant at which the attempt is cut off; `None` for a call without a limit.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// The call's idempotency key, which is the caller's or the one that the tool derives (KT-16), and which the handler can pass downstream (RT-9).
    pub fn idempotency_key(&self) -> Option<&str> {
        self.scope.idempotency_key(self.index)
    }

    /// The value of type `T` that the embedder provided; see [`Resources`].
    pub fn resource<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.scope.resources().get()
    }

    /// The same, shared, to be kept.
    pub fn shared_resource<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.scope.resources().shared()
    }

    /// Whether the call has to stop.
    pub fn is_cancelled(&self) -> bool {
        match &self.own {
            Some(own) => own.is_cancelled(),
            None => self.scope.is_cancelled(self.index),
        }
    }

    /// Waits until the call has to stop.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub async fn cancelled(&self) {
        self.cancel_token().cancelled().await;
    }

    /// The token behind [`cancelled`](Self::cancelled), to await or to pass to libraries that take one.
    pub fn cancel_token(&self) -> &CancellationToken {
        self.own.as_ref().unwrap_or_else(|| self.scope.cancel_token(self.index))
    }

    /// Streams some output, which readers of the event stream get as `tool.output_delta`. It is not part of the
    /// result.
    pub fn emit(&self, text: &str) {
        self.scope.output_delta(self.index, self.attempt, text);
    }
}

impl fmt::Debug for ToolContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ToolContext");
        debug.field("session", self.session()).field("call_id", self.call_id());
        debug.field("tool", &self.tool()).field("attempt", &self.attempt()).finish_non_exhaustive()
    }
}
