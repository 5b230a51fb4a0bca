//! One turn of a session: a batch that can be cancelled and resent on its own.
//!
//! ```text
//!   dispatch ─────► a batch ──┐
//!   open_batch ───► pieces ───┼─► results, kept ─► resend: what has run is answered from them
//!   resend ───────► a batch ──┘
//!                   └─ cancel, cancel_call, cancel_call_at reach what has no result
//! ```

mod batches;
mod resend;

use crate::{
    batch::{
        Dispatch, DrivenBatch, OpenBatch, Order, Origin, Outcomes, Owner, StreamCalls, TakenUp, Watch,
        dispatch_nested,
    },
    budget::Allowance,
    call::{BatchState, SessionCore, Stop, TurnOf, span},
    config::RECORD_WAIT,
    record::{Cancelled, RecordError},
};
use batches::{CallCancel, TurnBatch, TurnBatches};
use parking_lot::Mutex;
use resend::{FreshBatch, ResentBatch, TakenUpBatch};
use std::{fmt, sync::Arc};
use toolyard_core::{Batch, Outcome};

/// One turn of a session.
///
/// A turn takes one batch at a time, as a whole or [call by call](Self::open_batch). A second batch beside it is
/// independent, like any other batch of the session, but a cancel reaches both.
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

impl Turn {
    pub(super) fn new(session: Arc<SessionCore>) -> Self {
        let number = session.next_turn();
        let allowance = session.turn_allowance();
        Self { session, number, allowance, keeps: true, state: Mutex::default() }
    }

    /// A turn that an earlier life of the engine has left open.
    pub(super) fn taken_up(
        session: Arc<SessionCore>,
        number: u64,
        is_cancelled: bool,
        latest: Option<u64>,
    ) -> Self {
        let allowance = session.turn_allowance();
        let state = TurnBatches::taken_up(is_cancelled, latest);
        Self { session, number, allowance, keeps: true, state: Mutex::new(state) }
    }

    /// Goes on with a batch of such a turn.
    pub(super) async fn take_up(&self, batch: Batch, is_sequential: bool, taken_up: TakenUp) -> Vec<Outcome> {
        let order = if is_sequential { Order::OneByOne } else { Order::Runs };
        self.run(batch, order, &TakenUpBatch { turn: self, taken_up }).await
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

    fn turn_of(&self, is_whole: bool) -> TurnOf {
        TurnOf { number: self.number, is_whole, allowance: self.allowance.clone() }
    }

    async fn run(&self, batch: Batch, order: Order, watch: &dyn Watch) -> Vec<Outcome> {
        let turn = self.turn_of(true);
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

    /// Runs a batch, and gives each call's result as soon as the call has ended; see
    /// [`Session::dispatch_stream`](super::Session::dispatch_stream). A turn that keeps results for a
    /// [`resend`](Self::resend) keeps copies of these.
    ///
    /// # Cancel safety
    /// Dropping the stream cancels the batch.
    pub fn dispatch_stream(&self, batch: impl Into<Batch>) -> Outcomes {
        let owner = Owner::Turn { keeps: self.keeps };
        Outcomes::new(&self.session, self.turn_of(false), owner, batch.into(), |calls| self.add_open(calls))
    }

    /// Opens a batch of this turn, whose calls are added as the model writes them (CL-5). A cancel of the turn reaches it,
    /// and its results are kept for a [`resend`](Self::resend), like those of a batch that is dispatched. It may be held
    /// longer than the turn.
    ///
    /// # Examples
    /// The stream breaks, and the whole response comes again:
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use toolyard::{Call, Dedupe, Engine, ToolContext, ToolSpec, tool_fn};
    /// let read = tool_fn(ToolSpec::read("read"), |(): (), _: ToolContext| async { Ok("text") });
    /// let engine = Engine::builder().tool(read).build().await.unwrap();
    /// let turn = engine.session("demo").turn();
    /// let calls = ["a", "b"].map(|id| Call::new(id, "read", "{}"));
    /// let batch = turn.open_batch();
    /// assert_eq!(batch.turn(), turn.number());
    /// batch.push(calls[0].clone());
    /// batch.finish().await; // the stream is broken: what it has started comes to its end
    /// let all = turn.resend(calls.to_vec()).await;
    /// assert_eq!(all.iter().map(|outcome| outcome.dedupe).collect::<Vec<_>>(), [Dedupe::Replayed, Dedupe::Fresh]);
    /// # }
    /// ```
    pub fn open_batch(&self) -> OpenBatch {
        self.open(Order::Runs)
    }

    /// Opens a batch like [`open_batch`](Self::open_batch) whose calls run one at a time, in order.
    pub fn open_batch_sequential(&self) -> OpenBatch {
        self.open(Order::OneByOne)
    }

    fn open(&self, order: Order) -> OpenBatch {
        let owner = Owner::Turn { keeps: self.keeps };
        let batch = OpenBatch::new(&self.session, order, self.turn_of(false), owner);
        self.add_open(batch.calls());
        batch
    }

    /// Opens a batch like [`open_batch`](Self::open_batch) that has no task of its own: whoever waits for the ends of its
    /// calls drives it, and lets it go when it wants nothing more of it (CL-5).
    pub fn open_driven(&self) -> DrivenBatch {
        let owner = Owner::Turn { keeps: self.keeps };
        let batch = DrivenBatch::new(&self.session, self.turn_of(false), owner);
        self.add_open(batch.calls());
        batch
    }

    /// A batch was opened: what reaches the turn reaches it.
    fn add_open(&self, calls: &Arc<StreamCalls>) {
        let (is_cancelled, taken) = {
            let mut state = self.state.lock();
            let taken = if self.keeps { Vec::new() } else { state.forget_taken() };
            state.add_open(calls);
            (state.is_cancelled, taken)
        };
        drop(taken); // outside of the lock
        if is_cancelled {
            calls.stop(Stop::Cancelled);
        }
    }

    /// Runs a batch, but returns the earlier result of every call that has already run in this turn (CL-8). Calls are
    /// the same if id, tool and arguments are equal. Calls whose handler never started run now.
    ///
    /// Only a call that has ended has a result: one that is still in flight, in a batch that is not over or in its grace
    /// after its caller has left, runs again beside it, unless both have an idempotency key. So end a batch before it is
    /// sent again: [`finish`](OpenBatch::finish) an open one whose stream broke, and wait for a dispatch.
    ///
    /// # Cancel safety
    /// Like [`dispatch`](Self::dispatch).
    pub async fn resend(&self, batch: impl Into<Batch>) -> Vec<Outcome> {
        self.run(batch.into(), Order::Runs, &ResentBatch::of(self)).await
    }

    /// Waits until the latest batch is durable, for at most 30 s, so that it may be acknowledged to whoever sent it (JR-1).
    /// `None` before a batch has arrived, which it does while its [`dispatch`](Self::dispatch) is polled. An [open
    /// batch](Self::open_batch) has arrived once it is open; whether its calls are durable is not said. Without a recorder
    /// that makes batches durable there is nothing to wait for.
    ///
    /// # Errors
    /// That of the future: [`RecordError`], if it cannot be made durable, or not in time.
    ///
    /// # Cancel safety
    /// Dropping the future withdraws nothing.
    pub fn recorded(&self) -> Option<impl Future<Output = Result<(), RecordError>> + Send + use<>> {
        let foundation = match self.latest()? {
            TurnBatch::Whole(batch) => batch.foundation(),
            TurnBatch::Open(batch) => batch.foundation(),
        };
        let engine = self.session.engine.clone();
        Some(async move {
            let durable = engine.tasks.timeout(RECORD_WAIT, foundation.durable()).await;
            durable.unwrap_or_else(|| Err(RecordError::late()))
        })
    }

    /// Returns the results of the latest batch so far, one place per call; empty before the first batch, and after one
    /// whose results [are not kept](Self::without_resend). For a caller that cannot wait for the rest: the record of a call
    /// that has not run may still be on its way, and [`Outcome::recorded`] says no more than that it has not failed so
    /// far (SM-4).
    pub fn finished(&self) -> Vec<Option<Outcome>> {
        self.latest().map_or_else(Vec::new, |batch| batch.finished())
    }

    fn latest(&self) -> Option<TurnBatch> {
        self.state.lock().latest()
    }

    /// Cancels the turn's calls, now and in future, those still to come in [open batches](Self::open_batch) included;
    /// other turns of the session continue (SC-1).
    pub fn cancel(&self) {
        self.session.record_cancel(Cancelled::Turn(self.number));
        let batches = {
            let mut state = self.state.lock();
            state.is_cancelled = true;
            state.all().to_vec()
        };
        batches.iter().for_each(|batch| batch.stop(Stop::Cancelled));
    }

    /// Cancels the calls with this id that are in flight in this turn; their siblings continue. Returns `false` when
    /// there is none, because the call has ended or never existed (SC-4).
    pub fn cancel_call(&self, id: &str) -> bool {
        self.session.record_cancel(Cancelled::Calls { turn: Some(self.number), id });
        let in_flight = self.state.lock().in_flight();
        in_flight.cancel_calls(id)
    }

    /// Cancels the call with this index in the latest batch, from 0, whatever other calls have its id; its siblings
    /// continue. Returns `false` when it is not in flight, because it has ended, or has not been
    /// [pushed](OpenBatch::push) yet, or the batch has no such call (SC-4). A batch that is dispatched is the latest once
    /// its calls have passed the gate. A cancel that comes before the gate for a call that an earlier life of the engine has
    /// left open, or when a drain has suspended the call, is recorded all the same, and holds: the call ends at the gate.
    ///
    /// # Examples
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// use toolyard::{Call, Engine, ErrorKind, ToolContext, ToolError, ToolSpec, tool_fn};
    /// let wait = tool_fn(ToolSpec::read("wait"), |(): (), cx: ToolContext| async move {
    ///     cx.cancelled().await;
    ///     Err::<&str, _>(ToolError::cancelled("told to stop"))
    /// });
    /// let engine = Engine::builder().tool(wait).build().await.unwrap();
    /// let turn = engine.session("demo").turn();
    /// let batch = turn.open_batch();
    /// batch.push(Call::new("call_1", "wait", "{}"));
    /// assert!(turn.cancel_call_at(0));
    /// assert!(!turn.cancel_call_at(1), "the model has not written it yet");
    /// let outcomes = batch.finish().await;
    /// assert_eq!(outcomes[0].error().unwrap().kind, ErrorKind::Cancelled);
    /// # }
    /// ```
    pub fn cancel_call_at(&self, index: usize) -> bool {
        let Ok(index) = u32::try_from(index) else { return false };
        let Some(cancel) = self.state.lock().cancel_at(index) else { return false };
        let (CallCancel::InFlight { number: batch, .. } | CallCancel::Ahead { number: batch }) = cancel;
        self.session.record_cancel(Cancelled::Call { turn: self.number, batch, index });
        matches!(cancel, CallCancel::InFlight { batch, .. } if batch.cancel_call_at(index))
    }

    /// Whether it was cancelled as a whole, in this life of the engine or an earlier one.
    pub fn is_cancelled(&self) -> bool {
        self.state.lock().is_cancelled
    }

    /// Lets go of a batch that has ended, unless its results are kept.
    fn keeps(&self, batch: &Arc<BatchState>) -> bool {
        if !self.keeps {
            self.state.lock().forget(batch);
        }
        self.keeps
    }

    fn opened(&self, batch: &Arc<BatchState>) {
        let (is_cancelled, cancelled) = {
            let mut state = self.state.lock();
            (state.is_cancelled, state.add_whole(batch))
        };
        if is_cancelled {
            batch.stop(Stop::Cancelled);
        }
        for index in cancelled {
            batch.cancel_call_at(index);
        }
    }

    /// The latest batch, if it was dispatched.
    #[cfg(test)]
    pub(crate) fn latest_whole(&self) -> Option<Arc<BatchState>> {
        match self.latest()? {
            TurnBatch::Whole(batch) => Some(batch),
            TurnBatch::Open(_) => None,
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

#[cfg(test)]
mod tests {
    use crate::{Engine, tool_fn};
    use futures::future::join_all;
    use std::time::Duration;
    use toolyard_core::{Call, ToolContext, ToolSpec};

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
            assert_eq!(turn.state.lock().open_count(), 1);
            assert_eq!(turn.state.lock().all().len(), 1002);
            assert!(turn.cancel_call("still running"));
        };
        let (.., last) = tokio::join!(run("x"), cancel, run("still running"));
        assert!(last[0].cancel_requested);
        assert!(!turn.cancel_call("still running"));
        assert_eq!(turn.state.lock().open_count(), 0);
    }
}
