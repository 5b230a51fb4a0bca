//! One turn of a session: a batch that can be cancelled, and resent, by itself.

use super::SessionCore;
use crate::batch::{BatchState, Order, Stop, dispatch_watched};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};
use toolyard_core::{Batch, Call, CallId, Outcome};

/// One turn of a session.
///
/// A turn takes one batch at a time: a second one waits for nothing, it is dispatched beside the first as any
/// other batch of the session is, and only the results of both are kept together.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use toolyard::{Batch, Call, Engine, ToolContext, ToolSpec, tool_fn};
/// static RUNS: AtomicU32 = AtomicU32::new(0);
/// let count = tool_fn(ToolSpec::read("count"), |(): (), _: ToolContext| async {
///     Ok(RUNS.fetch_add(1, Ordering::Relaxed).to_string())
/// });
/// let engine = Engine::builder().tool(count).build().await.unwrap();
/// let turn = engine.session("demo").turn();
/// let batch = Batch::new(vec![Call::new("call_1", "count", "{}")]);
/// turn.dispatch(batch.clone()).await;
/// let again = turn.resend(batch).await; // the connection broke; the model's answer came twice
/// assert_eq!(again[0].to_text(), "0");
/// assert_eq!(RUNS.load(Ordering::Relaxed), 1);
/// # }
/// ```
pub struct Turn {
    session: Arc<SessionCore>,
    number: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    cancelled: bool,
    batch: Weak<BatchState>,
    /// What this turn has answered, for [`Turn::resend`]; no more than a few batches' worth.
    answered: HashMap<CallId, Outcome>,
}

impl Turn {
    pub(super) fn new(session: Arc<SessionCore>) -> Self {
        let number = session.next_turn();
        Self { session, number, state: Mutex::default() }
    }

    /// The turn's number in its session, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a batch; see [`Session::dispatch`](super::Session::dispatch).
    ///
    /// # Cancel safety
    /// As there: dropping the future cancels the batch.
    pub async fn dispatch(&self, batch: impl Into<Batch>) -> Vec<Outcome> {
        self.run(batch.into(), Order::Runs).await
    }

    /// Runs a batch with every call alone, in order.
    ///
    /// # Cancel safety
    /// As [`dispatch`](Self::dispatch).
    pub async fn dispatch_sequential(&self, batch: impl Into<Batch>) -> Vec<Outcome> {
        self.run(batch.into(), Order::OneByOne).await
    }

    async fn run(&self, batch: Batch, order: Order) -> Vec<Outcome> {
        let watch = |batch: &Arc<BatchState>| {
            let mut state = self.state();
            state.batch = Arc::downgrade(batch);
            if state.cancelled {
                drop(state);
                batch.stop(Stop::Cancelled);
            }
        };
        let outcomes = dispatch_watched(&self.session, self.number, batch, order, watch).await;
        let mut state = self.state();
        for outcome in &outcomes {
            state.answered.entry(outcome.call_id.clone()).or_insert_with(|| outcome.clone());
        }
        outcomes
    }

    /// Gives the results of calls this turn has answered before, and runs the rest (CL-8). A call counts as
    /// the same with equal id, tool and arguments.
    ///
    /// # Cancel safety
    /// As [`dispatch`](Self::dispatch).
    pub async fn resend(&self, batch: impl Into<Batch>) -> Vec<Outcome> {
        let calls: Vec<Call> = batch.into().into_iter().collect();
        let known: Vec<Option<Outcome>> = calls.iter().map(|call| self.answered(call)).collect();
        let fresh = calls.into_iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(call, _)| call);
        let mut fresh = self.dispatch(fresh.collect::<Batch>()).await.into_iter();
        let mut next = || fresh.next().expect("every call without a known result was dispatched");
        known.into_iter().map(|known| known.unwrap_or_else(&mut next)).collect()
    }

    fn answered(&self, call: &Call) -> Option<Outcome> {
        let same = |outcome: &&Outcome| outcome.tool == call.name && outcome.arguments == call.arguments;
        let mut outcome = self.state().answered.get(&call.id).filter(same)?.clone();
        outcome.dedupe = toolyard_core::Dedupe::Replayed;
        Some(outcome)
    }

    /// The results there are by now of the batch in the air, one place per call; nothing when none is. For a
    /// caller that cannot wait for the rest.
    pub fn finished(&self) -> Vec<Option<Outcome>> {
        let batch = self.state().batch.upgrade();
        batch.map_or_else(Vec::new, |batch| batch.finished())
    }

    /// Cancels the turn's calls, now and from now on; other turns of the session go on (SC-1).
    pub fn cancel(&self) {
        let batch = {
            let mut state = self.state();
            state.cancelled = true;
            state.batch.upgrade()
        };
        if let Some(batch) = batch {
            batch.stop(Stop::Cancelled);
        }
    }
}

impl fmt::Debug for Turn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn")
            .field("session", &self.session.id)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}
