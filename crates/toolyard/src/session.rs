//! What an agent holds: a session of the engine, and its turns.

mod approvals;
mod core;
mod flying;
mod fork;
mod may;
mod scopes;
mod spending;
mod tree;
mod turn;
mod units;

pub(crate) use self::core::{SessionCore, Where};
pub(crate) use approvals::Remembered;
pub use fork::{FORK_DEPTH_MAX, ForkError, ForkPolicy, SubAgents};
pub(crate) use scopes::Scopes;
pub(crate) use tree::Numbers;
pub use turn::Turn;
pub(crate) use units::ToolUnits;

use crate::config::Budgets;
use crate::{
    batch::{BatchState, Dispatch, OpenBatch, Order, Origin, Plan, Stop, plan},
    nesting, telemetry,
};
use may::Narrowing;
use std::{fmt, num::NonZeroUsize, sync::Arc};
use toolyard_core::{
    Batch, Budget, Call, Capabilities, Confirmations, Outcome, PathScope, Resources, SessionId,
};

/// Whose calls go how often where calls of several sessions wait for the same (CC-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Priority {
    /// One call in a round. The default.
    #[default]
    Normal,
    /// Two calls in a round.
    High,
    /// Four calls in a round.
    Urgent,
}

impl Priority {
    pub(crate) const fn weight(self) -> u8 {
        match self {
            Self::Normal => 1,
            Self::High => 2,
            Self::Urgent => 4,
        }
    }
}

/// What one session has otherwise than its engine.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct SessionOptions {
    pub(crate) max_in_flight: Option<NonZeroUsize>,
    pub(crate) tree_max_in_flight: Option<NonZeroUsize>,
    pub(crate) priority: Priority,
    pub(crate) budgets: Option<Budgets>,
    pub(crate) resources: Resources,
    pub(crate) scope: Option<Arc<dyn PathScope>>,
    pub(crate) narrowing: Narrowing,
    pub(crate) confirmations: Option<Confirmations>,
}

impl SessionOptions {
    /// Bounds the calls of this session that run at once, over all classes (CL-6).
    #[must_use]
    pub fn max_in_flight(mut self, most: NonZeroUsize) -> Self {
        self.max_in_flight = Some(most);
        self
    }

    /// Bounds the calls that run at once in this session and all its forks together (CL-6).
    #[must_use]
    pub fn tree_max_in_flight(mut self, most: NonZeroUsize) -> Self {
        self.tree_max_in_flight = Some(most);
        self
    }

    /// Sets how many calls of this session and its forks go for one of another where both wait (CC-3).
    #[must_use]
    pub fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets what it may spend, in place of what the engine says (RT-11).
    #[must_use]
    pub fn budgets(mut self, budgets: Budgets) -> Self {
        self.budgets = Some(budgets);
        self
    }

    /// Sets what it may touch, within what the engine says for all (PO-1b).
    #[must_use]
    pub fn capabilities(mut self, capabilities: Capabilities) -> Self {
        self.narrowing.capabilities = Some(Arc::new(capabilities));
        self
    }

    /// Leaves it these tools; it and its forks know of no others.
    #[must_use]
    pub fn only_tools<T: Into<Arc<str>>>(mut self, names: impl IntoIterator<Item = T>) -> Self {
        self.narrowing.tools = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Sets its role: it and its forks do not know of tools that are [hidden](crate::ToolSpec::hidden_from) from that,
    /// and the policy is told of it.
    #[must_use]
    pub fn role(mut self, role: impl Into<Arc<str>>) -> Self {
        self.narrowing.role = Some(role.into());
        self
    }

    /// Sets which of its calls are asked about, in place of what the engine says (PO-3).
    #[must_use]
    pub fn confirmations(mut self, confirmations: Confirmations) -> Self {
        self.confirmations = Some(confirmations);
        self
    }

    /// Gives its tools a value; see [`Resources`].
    #[must_use]
    pub fn resource<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.resources = self.resources.with(value);
        self
    }

    /// Gives it a workspace of its own: its tools reach it as a resource, its paths are checked against it.
    #[must_use]
    pub fn workspace<W: PathScope + 'static>(mut self, workspace: Arc<W>) -> Self {
        self.resources = self.resources.with_shared(workspace.clone());
        self.scope = Some(workspace);
        self
    }
}

/// One agent's way into the engine. Cheap to clone; clones are the same session.
///
/// Batches of one session that are dispatched side by side are independent: they meet in the pools and the
/// serial lease, in order of arrival (CL-8). While a session is open, its name leads to it.
///
/// A handler may dispatch through a session that it captured: on its own task that is as
/// [`ToolContext::dispatch`](toolyard_core::ToolContext::dispatch). From another task nobody knows whose call it is, and
/// it waits as any other: a serial handler that waits for a serial call of its own tree in such a way waits until it
/// times out. A [fork](Self::fork) that the handler made is known from every task (CC-7b).
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
    /// The name.
    pub fn id(&self) -> &SessionId {
        &self.core.id
    }

    /// Runs a batch and gives one result per call, in call order (CL-4). Never fails as a whole: what goes
    /// wrong is in the results.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the batch: calls that wait end at once, calls that run have their grace in
    /// the background, and their results go to the event stream alone (CC-6b).
    pub async fn dispatch(&self, batch: impl Into<Batch>) -> Vec<Outcome> {
        self.run(batch.into(), Order::Runs).await
    }

    /// Runs a batch with every call alone, in order: what a batch by runs is compared with.
    ///
    /// # Cancel safety
    /// As [`dispatch`](Self::dispatch).
    pub async fn dispatch_sequential(&self, batch: impl Into<Batch>) -> Vec<Outcome> {
        self.run(batch.into(), Order::OneByOne).await
    }

    async fn run(&self, batch: Batch, order: Order) -> Vec<Outcome> {
        let turn = self.core.turn_of(self.core.next_turn());
        let (session, caller) = (&self.core, self.core.caller_call());
        let span = telemetry::here(caller.as_ref());
        let dispatch = Dispatch { session, turn, order, watch: None, origin: Origin::Outside, span };
        match caller {
            None => dispatch.run(batch).await,
            // Boxed: most dispatches are not made by handlers, and have no room for this in them.
            Some(call) => Box::pin(nesting::dispatch(call, dispatch, batch)).await,
        }
    }

    /// Runs one call.
    ///
    /// # Cancel safety
    /// As [`dispatch`](Self::dispatch).
    pub async fn call(&self, call: Call) -> Outcome {
        let mut outcomes = self.dispatch(vec![call]).await;
        outcomes.pop().expect("a batch of one call has one result")
    }

    /// A batch whose calls are still to come; see [`OpenBatch`] (CL-5).
    pub fn open_batch(&self) -> OpenBatch {
        OpenBatch::new(&self.core, Order::Runs)
    }

    /// The same, with every call alone, in order.
    pub fn open_batch_sequential(&self) -> OpenBatch {
        OpenBatch::new(&self.core, Order::OneByOne)
    }

    /// A turn, to be cancelled or resent by itself.
    pub fn turn(&self) -> Turn {
        Turn::new(self.core.clone())
    }

    /// What [`dispatch`](Self::dispatch) would do with a batch, without doing it: no hook, no question, no
    /// handler.
    pub fn plan(&self, batch: &Batch) -> Plan {
        plan(&self.core, batch)
    }

    /// What this agent may still spend, in calls and in cost: the least of what is left to it and to all that it draws
    /// on. Turns and tools may have less (RT-11).
    pub fn budget_left(&self) -> Budget {
        self.core.budget_left()
    }

    /// Forgets all answers that were for more than one call, here and in all agents of this tree: their calls are asked
    /// about again (PO-3).
    pub fn forget_approvals(&self) {
        self.core.approvals().forget();
    }

    /// Cancels every call of this session, now and from now on (SC-1). Calls that wait end at once; calls
    /// that run are told to stop and have their grace (SC-4, SC-5).
    pub fn cancel(&self) {
        self.core.stop(Stop::Cancelled);
    }

    /// Cancels the calls of this id that are in the air here and in forks, as [`cancel`](Self::cancel) does; their
    /// siblings go on. `false` when there is none: it has ended, or never was (SC-4). Ids may repeat across batches
    /// (CL-8); [`Turn::cancel_call`] reaches those of one turn alone.
    pub fn cancel_call(&self, id: &str) -> bool {
        cancel_in(&self.core.batches(), id)
    }

    /// Cancels every call that is in the air here and in forks, and no later one: the session goes on. Gives how many
    /// there were.
    pub fn cancel_calls(&self) -> usize {
        let batches = self.core.batches();
        let open = batches.iter().map(|batch| batch.open_count()).sum();
        batches.iter().for_each(|batch| batch.stop(Stop::Cancelled));
        open
    }
}

/// Cancels the calls of this id; whether there were any.
fn cancel_in(batches: &[Arc<BatchState>], id: &str) -> bool {
    let cancel = |batch: &Arc<BatchState>| -> usize {
        batch.open_calls(id).filter(|index| batch.cancel_call(*index)).count()
    };
    batches.iter().map(cancel).sum::<usize>() > 0
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", self.id()).finish_non_exhaustive()
    }
}
