//! One turn of a session: a batch that can be cancelled and resent on its own.

use crate::{
    batch::{Dispatch, Order, Origin, Watch, dispatch_nested},
    budget::Allowance,
    call::{BatchState, SessionCore, Stop, TurnOf, WeakList, span},
    record::Cancelled,
};
use parking_lot::Mutex;
use std::{fmt, sync::Arc};
use toolyard_core::{Batch, Call, Outcome};

/// One turn of a session.
///
/// A turn takes one batch at a time. A second batch dispatched beside it is independent, like any other batch of the
/// session, but a cancel reaches both.
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
    /// What its batches may spend.
    allowance: Option<Arc<Allowance>>,
    /// Whether it keeps the results of its batches.
    keeps: bool,
    state: Mutex<TurnBatches>,
}

#[derive(Default)]
struct TurnBatches {
    cancelled: bool,
    /// The batches of this turn. Their results are kept as long as the turn, unless it keeps none.
    batches: Vec<Arc<BatchState>>,
    /// Those that may have calls without a result.
    open: WeakList<BatchState>,
}

impl Turn {
    pub(super) fn new(session: Arc<SessionCore>) -> Self {
        let number = session.next_turn();
        let allowance = session.turn_allowance();
        Self { session, number, allowance, keeps: true, state: Mutex::default() }
    }

    /// Keeps no results: a batch's are moved to its caller and not copied, so that they take half the memory and no
    /// longer count as held (CC-4). A [`resend`](Self::resend) then runs all of its calls.
    #[must_use]
    pub fn without_resend(mut self) -> Self {
        self.keeps = false;
        self
    }

    /// The turn's number in its session, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    async fn run(&self, batch: Batch, order: Order, watch: &dyn Watch) -> Vec<Outcome> {
        let turn = TurnOf { number: self.number, is_whole: true, allowance: self.allowance.clone() };
        let (session, watch) = (&self.session, Some(watch));
        let (caller, origin) = Origin::of_caller(session.caller_call());
        let span = span::here(caller.as_ref());
        let dispatch = Dispatch { session, turn, order, watch, origin, span, can_be_resumed: true };
        match caller {
            None => dispatch.run(batch).await,
            Some(call) => Box::pin(dispatch_nested(call, dispatch, batch)).await,
        }
    }

    /// Runs a batch; see [`Session::dispatch`](super::Session::dispatch).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the batch, as there.
    pub async fn dispatch(&self, batch: impl Into<Batch>) -> Vec<Outcome> {
        self.run(batch.into(), Order::Runs, &FreshBatch(self)).await
    }

    /// Runs a batch one call at a time, in order.
    ///
    /// # Cancel safety
    /// Like [`dispatch`](Self::dispatch).
    pub async fn dispatch_sequential(&self, batch: impl Into<Batch>) -> Vec<Outcome> {
        self.run(batch.into(), Order::OneByOne, &FreshBatch(self)).await
    }

    /// Runs a batch, but returns the earlier result of every call that has already run in this turn (CL-8). Calls are
    /// the same if id, tool and arguments are equal. Calls whose handler never started run now.
    ///
    /// # Cancel safety
    /// Like [`dispatch`](Self::dispatch).
    pub async fn resend(&self, batch: impl Into<Batch>) -> Vec<Outcome> {
        let earlier = self.state.lock().batches.clone();
        self.run(batch.into(), Order::Runs, &ResentBatch { turn: self, earlier }).await
    }

    /// Returns the results of the latest batch so far, one place per call; empty before the first batch, and after one
    /// whose results [are not kept](Self::without_resend). For a caller that cannot wait for the rest: the record of a call
    /// that has not run may still be on its way, and [`Outcome::recorded`] says no more than that it has not failed so
    /// far (SM-4).
    pub fn finished(&self) -> Vec<Option<Outcome>> {
        self.latest().map_or_else(Vec::new, |batch| batch.finished())
    }

    pub(crate) fn latest(&self) -> Option<Arc<BatchState>> {
        self.state.lock().batches.last().cloned()
    }

    /// Cancels the turn's calls, now and in future; other turns of the session continue (SC-1).
    pub fn cancel(&self) {
        self.session.record_cancel(Cancelled::Turn(self.number));
        let batches = {
            let mut state = self.state.lock();
            state.cancelled = true;
            state.batches.clone()
        };
        batches.iter().for_each(|batch| batch.stop(Stop::Cancelled));
    }

    /// Cancels the calls with this id that are in flight in this turn; their siblings continue. Returns `false` when
    /// there is none, because the call has ended or never existed (SC-4).
    pub fn cancel_call(&self, id: &str) -> bool {
        self.session.record_cancel(Cancelled::Calls { turn: Some(self.number), id });
        let open = self.state.lock().open.retain(BatchState::is_open);
        super::cancel_in(&open, id)
    }

    /// Lets go of a batch that has ended, unless its results are kept.
    fn keeps(&self, batch: &Arc<BatchState>) -> bool {
        if !self.keeps {
            self.state.lock().batches.retain(|known| !Arc::ptr_eq(known, batch));
        }
        self.keeps
    }

    fn opened(&self, batch: &Arc<BatchState>) {
        let cancelled = {
            let mut state = self.state.lock();
            state.batches.push(batch.clone());
            state.open.push(batch);
            state.cancelled
        };
        if cancelled {
            batch.stop(Stop::Cancelled);
        }
    }
}

/// A handler that runs on may keep the calls above it, and so their batch; it must not keep their results.
impl Drop for Turn {
    fn drop(&mut self) {
        let batches = std::mem::take(&mut self.state.get_mut().batches);
        let shared = batches.into_iter().filter_map(|batch| Arc::try_unwrap(batch).err());
        shared.for_each(|batch| batch.drop_results());
    }
}

/// Watches a batch whose calls all run.
struct FreshBatch<'a>(&'a Turn);

/// Watches a batch that may be a repetition of an earlier one.
struct ResentBatch<'a> {
    turn: &'a Turn,
    /// The turn's batches before this one.
    earlier: Vec<Arc<BatchState>>,
}

impl Watch for FreshBatch<'_> {
    fn is_cancelled(&self) -> bool {
        self.0.state.lock().cancelled
    }

    fn replay(&self, _: &Call) -> Option<Outcome> {
        None
    }

    fn opened(&self, batch: &Arc<BatchState>) {
        self.0.opened(batch);
    }

    fn keeps(&self, batch: &Arc<BatchState>) -> bool {
        self.0.keeps(batch)
    }
}

impl Watch for ResentBatch<'_> {
    fn is_cancelled(&self) -> bool {
        self.turn.state.lock().cancelled
    }

    fn replay(&self, call: &Call) -> Option<Outcome> {
        self.earlier.iter().find_map(|batch| batch.answer(call))
    }

    fn opened(&self, batch: &Arc<BatchState>) {
        self.turn.opened(batch);
    }

    fn keeps(&self, batch: &Arc<BatchState>) -> bool {
        self.turn.keeps(batch)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Engine, tool_fn};
    use futures::future::join_all;
    use std::time::Duration;
    use toolyard_core::{ToolContext, ToolSpec};

    /// SC-4: a cancel of one call looks only at batches with calls that have no result, however many the turn had.
    #[tokio::test(start_paused = true)]
    async fn a_cancel_looks_at_no_ended_batch() {
        let wait = |cx: ToolContext| async move {
            let millis = cx.call_id().as_str().len() as u64;
            tokio::time::sleep(Duration::from_millis(millis)).await;
            Ok("waited")
        };
        let tool = tool_fn(ToolSpec::read("t"), move |(): (), cx| wait(cx));
        let engine = Engine::builder().tool(tool).build().await.unwrap();
        let turn = engine.session("s").turn();
        let run = |id: &'static str| turn.dispatch(vec![Call::new(id, "t", "{}")]);
        join_all((0..1000).map(|_| run("x"))).await;
        let cancel = async {
            tokio::time::sleep(Duration::from_millis(10)).await;
            assert!(!turn.cancel_call("nobody"));
            assert_eq!(turn.state.lock().open.iter().count(), 1);
            assert_eq!(turn.state.lock().batches.len(), 1002);
            assert!(turn.cancel_call("still running"));
        };
        let (.., last) = tokio::join!(run("x"), cancel, run("still running"));
        assert!(last[0].cancel_requested);
        assert!(!turn.cancel_call("still running"));
        assert_eq!(turn.state.lock().open.iter().count(), 0);
    }
}
