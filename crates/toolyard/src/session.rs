//! Sessions and their turns: what an agent holds of the engine.

mod fork;
mod options;
mod resume;
mod settings;
mod turn;

pub use fork::{ForkError, ForkPolicy, SubAgents};
pub use options::{Priority, SessionCeiling, SessionOptions};
pub use resume::{ResumeError, ResumedTurn};
pub use turn::Turn;

use crate::{
    batch::{Dispatch, OpenBatch, Order, Origin, Outcomes, Owner, Plan, dispatch_nested, plan},
    call::{SessionCore, Stop, TurnOf, span},
    gate,
    record::{Cancelled, RecordError},
    tool::ToolEntry,
};
use std::{fmt, sync::Arc};
use toolyard_core::{Batch, Budget, Call, Outcome, SessionId, ToolSpec};

/// An agent's access to the engine. Cheap to clone; all clones are the same session.
///
/// Batches of one session that are dispatched side by side are independent: they meet only in the pools and the
/// serial lease, in order of arrival (CL-8). While a session is open, opening its name again gives the same session.
///
/// A handler may dispatch through a session that it captured. On its own task this works like
/// [`ToolContext::dispatch`](toolyard_core::ToolContext::dispatch). From another task the engine cannot tell which
/// call it belongs to, and it waits like any other: if a serial handler awaits a serial call of its own tree this
/// way, it waits until it times out. A [fork](Self::fork) that the handler made is recognised on every task (CC-7b).
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use toolyard::{Batch, Call, Engine, ToolContext, ToolSpec, tool_fn};
/// let echo = tool_fn(ToolSpec::pure("echo"), |args: serde_json::Value, _: ToolContext| async { Ok(args) });
/// let engine = Engine::builder().tool(echo).build().await.unwrap();
/// let session = engine.session("demo");
/// let batch: Batch = ["a", "b"].map(|id| Call::new(id, "echo", "{}")).into_iter().collect();
/// let outcomes = session.dispatch(batch).await;
/// assert_eq!(outcomes.len(), 2);
/// assert_eq!(outcomes[1].call_id.as_str(), "b");
/// # }
/// ```
#[derive(Clone)]
pub struct Session {
    pub(crate) core: Arc<SessionCore>,
}

impl Session {
    /// The session's name.
    pub fn id(&self) -> &SessionId {
        &self.core.id
    }

    /// What a tool of [`Engine::definitions_for`](crate::engine::Engine::definitions_for) says of itself, as this session's
    /// model may read it: without registered secrets, which a server may have put into a description (PO-7).
    pub fn shown_spec(&self, entry: &ToolEntry) -> ToolSpec {
        let mut spec = entry.spec().clone();
        if let Some(redactor) = &self.core.engine.results_redactor {
            self.core.given_marks().add(redactor.spec(&mut spec));
        }
        spec
    }

    /// Runs a batch and returns one result per call, in call order (CL-4). It never fails as a whole: failures are in
    /// the results.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the batch. Waiting calls end at once; running calls keep their grace in the
    /// background, and their results go only to the event stream (CC-6b).
    pub async fn dispatch(&self, batch: impl Into<Batch>) -> Vec<Outcome> {
        self.run(batch.into(), Order::Runs, true).await
    }

    /// Runs a batch one call at a time, in order. Useful as a reference for a batch that is run normally.
    ///
    /// # Cancel safety
    /// Like [`dispatch`](Self::dispatch).
    pub async fn dispatch_sequential(&self, batch: impl Into<Batch>) -> Vec<Outcome> {
        self.run(batch.into(), Order::OneByOne, true).await
    }

    async fn run(&self, batch: Batch, order: Order, can_be_resumed: bool) -> Vec<Outcome> {
        let turn = self.core.turn_of(self.core.next_turn());
        let (session, caller) = (&self.core, self.core.caller_call());
        let (caller, origin) = Origin::of_caller(caller);
        let span = span::here(caller.as_ref());
        let dispatch = Dispatch { session, turn, order, watch: None, origin, span, can_be_resumed };
        match caller {
            None => dispatch.run(batch).await,
            // Boxed because most dispatches are not made by handlers and should not reserve space for this.
            Some(call) => Box::pin(dispatch_nested(call, dispatch, batch)).await,
        }
    }

    /// Runs one call. A drain suspends it only if it has an idempotency key, by which it can be found again (SM-10).
    ///
    /// # Cancel safety
    /// Like [`dispatch`](Self::dispatch).
    pub async fn call(&self, call: Call) -> Outcome {
        let can_be_resumed = call.idempotency_key.is_some() || self.derives_key(&call);
        let mut outcomes = self.run(vec![call].into(), Order::Runs, can_be_resumed).await;
        outcomes.pop().expect("a batch of one call has one result")
    }

    /// Whether the call has a key that its tool derives for it. Looked up only where that can matter.
    fn derives_key(&self, call: &Call) -> bool {
        let engine = &self.core.engine;
        engine.recorder.is_some()
            && engine.registry.get(&call.name).is_some_and(|entry| gate::derives_key(call, &entry, engine))
    }

    /// Runs a batch, and gives each call's result with its place in the batch as soon as the call has ended; see
    /// [`Outcomes`] (KT-5).
    ///
    /// # Cancel safety
    /// Dropping the stream cancels the batch, as with [`dispatch`](Self::dispatch).
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use futures::StreamExt as _;
    /// use toolyard::{Batch, Call, Engine, ToolContext, ToolSpec, tool_fn};
    /// let echo = tool_fn(ToolSpec::pure("echo"), |args: serde_json::Value, _: ToolContext| async { Ok(args) });
    /// let engine = Engine::builder().tool(echo).build().await.unwrap();
    /// let batch: Batch = ["a", "b"].map(|id| Call::new(id, "echo", "{}")).into_iter().collect();
    /// let mut outcomes = engine.session("demo").dispatch_stream(batch);
    /// let mut answered = 0;
    /// while let Some((at, outcome)) = outcomes.next().await {
    ///     assert_eq!(outcome.call_id.as_str(), ["a", "b"][at]);
    ///     answered += 1;
    /// }
    /// assert_eq!(answered, 2);
    /// # }
    /// ```
    pub fn dispatch_stream(&self, batch: impl Into<Batch>) -> Outcomes {
        let turn = TurnOf { is_whole: false, ..self.core.turn_of(self.core.next_turn()) };
        Outcomes::new(&self.core, turn, Owner::Nobody, batch.into(), |_| {})
    }

    /// Opens a batch whose calls are added later; see [`OpenBatch`] (CL-5).
    pub fn open_batch(&self) -> OpenBatch {
        self.open(Order::Runs)
    }

    /// Opens a batch like [`open_batch`](Self::open_batch) whose calls run one at a time, in order.
    pub fn open_batch_sequential(&self) -> OpenBatch {
        self.open(Order::OneByOne)
    }

    fn open(&self, order: Order) -> OpenBatch {
        let turn = TurnOf { is_whole: false, ..self.core.turn_of(self.core.next_turn()) };
        OpenBatch::new(&self.core, order, turn, Owner::Nobody)
    }

    /// The tools that this agent can call, by name: those that are not hidden from it and within its capabilities.
    /// These are the tools to declare to its model (PO-1b). A tool that needs the list of tools gets it here, or by
    /// [`SubAgents::definitions`], and need not hold the engine that holds it.
    pub fn definitions(&self) -> Vec<Arc<ToolEntry>> {
        let can_call = |entry: &Arc<ToolEntry>| self.core.sees(entry) && self.core.permissions.calls(entry);
        let mut entries = self.core.engine.registry.list();
        entries.retain(can_call);
        entries
    }

    /// Starts a turn, which can be cancelled or resent on its own.
    pub fn turn(&self) -> Turn {
        Turn::new(self.core.clone())
    }

    /// Returns what [`dispatch`](Self::dispatch) would do with a batch, without running hooks, approvals or handlers.
    pub fn plan(&self, batch: &Batch) -> Plan {
        plan(&self.core, batch)
    }

    /// Returns what this agent may still spend, in calls and in cost: the least of what is left in all the allowances
    /// it draws on. Turns and tools may have less (RT-11).
    pub fn budget_left(&self) -> Budget {
        self.core.budget_left()
    }

    /// Forgets all remembered approvals, in all agents of this tree: their calls need approval again (PO-3).
    pub fn forget_approvals(&self) {
        self.core.approvals().forget();
    }

    /// Cancels every call of this session, now and in future (SC-1). Waiting calls end at once; running calls are
    /// asked to stop and have their grace (SC-4, SC-5).
    pub fn cancel(&self) {
        self.core.record_cancel(Cancelled::Session);
        self.core.stop(Stop::Cancelled);
    }

    /// Cancels the calls with this id that are in flight here and in forks, as [`cancel`](Self::cancel) does; their
    /// siblings continue. Returns `false` when there is none, because the call has ended or never existed (SC-4). Ids
    /// may repeat across batches (CL-8); [`Turn::cancel_call`] reaches only those of one turn, and
    /// [`Turn::cancel_call_at`] the one at a place.
    pub fn cancel_call(&self, id: &str) -> bool {
        self.core.record_cancel(Cancelled::Calls { turn: None, id });
        self.core.batches().iter().map(|batch| batch.cancel_calls(id)).sum::<usize>() > 0
    }

    /// Cancels every call that is in flight here and in forks, and returns how many there were. The session stays
    /// open for later calls.
    pub fn cancel_calls(&self) -> usize {
        self.core.record_cancel(Cancelled::InFlight);
        let batches = self.core.batches();
        let open = batches.iter().map(|batch| batch.open_count()).sum();
        batches.iter().for_each(|batch| batch.stop(Stop::Cancelled));
        open
    }

    /// Waits until the recorder has made durable that this session exists, with its options, and every cancel so far of
    /// it, its turns and its calls (SM-4). At once without a recorder.
    ///
    /// # Errors
    /// [`RecordError`] if that failed, or is not done within 30 s. A failure is reported to those who wait for it, and
    /// forgotten: a cancel that is repeated may be durable.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws nothing.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use toolyard::{Engine, MemoryRecord, MemoryRecorder};
    /// let recorder = MemoryRecorder::default();
    /// let engine = Engine::builder().recorder(recorder.clone()).build().await.unwrap();
    /// let session = engine.session("demo");
    /// session.cancel();
    /// session.recorded().await.unwrap(); // now the cancel may be acknowledged
    /// assert_eq!(recorder.durable().last().map(MemoryRecord::kind), Some("cancelled"));
    /// # }
    /// ```
    pub async fn recorded(&self) -> Result<(), RecordError> {
        self.core.engine.tasks.within(self.core.recorded()).await
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", self.id()).finish_non_exhaustive()
    }
}
