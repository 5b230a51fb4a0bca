//! A batch whose calls arrive while the model still writes them (CL-5).
//!
//! ```text
//!   push ─► feed ─► intake: gate, first events, questions ─► player: runs, one after another ─► results
//!                   a piece of the batch at a time            a run may go on over several pieces
//! ```
//!
//! Each piece is a [`BatchState`] of its own. The pieces share one batch number and count their calls and runs as one
//! batch, so that the results do not show that the calls arrived one by one. A call starts as soon as no earlier call
//! of another run is unfinished, whatever is still to come.

use super::driver::{begin, skips_rest, wait_for_zombies, zombies_until};
use super::intake::{Dispatch, Order, Origin, StreamPrefix};
use crate::{
    budget::Allowance,
    call::{BatchState, CallGone, CallRef, Entered, SessionCore, Stop, TurnOf, index, span, vanished_error},
    record::{Cancelled, EventPlace, Foundation, Pending},
};
use futures::future::{Either, select};
use parking_lot::{Mutex, MutexGuard};
use std::{collections::HashSet, fmt, pin::pin, sync::Arc};
use tokio::sync::{mpsc, oneshot};
use toolyard_core::{Batch, Call, CallError, EventKind, Outcome, Routing};
use tracing::Span;

/// How many waiting calls are taken in together, at most.
const PIECE_MAX: usize = 256;

/// A batch that is still being written.
///
/// Calls are pushed as they are decoded and start as soon as the order of the batch allows. The results are those of
/// the same batch given at once (CL-5).
///
/// A handler that opens one is parked while its calls are in flight, and [`finish`](Self::finish) returns once the
/// handler holds its permits again (CC-6).
///
/// Dropping it cancels the batch: waiting calls end at once, running calls have their grace in the background
/// (CC-6b).
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use toolyard::{Call, Engine, ToolContext, ToolSpec, tool_fn};
/// let echo = tool_fn(ToolSpec::pure("echo"), |args: serde_json::Value, _: ToolContext| async { Ok(args) });
/// let engine = Engine::builder().tool(echo).build().await.unwrap();
/// let batch = engine.session("demo").open_batch();
/// batch.push(Call::new("a", "echo", "{}")); // runs while the next one is being decoded
/// batch.push(Call::new("b", "echo", "{}"));
/// let outcomes = batch.finish().await;
/// assert_eq!(outcomes.len(), 2);
/// assert_eq!(outcomes[1].call_id.as_str(), "b");
/// # }
/// ```
pub struct OpenBatch {
    stream: Arc<Stream>,
    /// `None` once it is finished.
    feed: Option<mpsc::UnboundedSender<Call>>,
    done: Option<oneshot::Receiver<()>>,
}

/// The state that intake, player and holder of an open batch share.
struct Stream {
    session: Arc<SessionCore>,
    turn: u64,
    allowance: Option<Arc<Allowance>>,
    number: u64,
    order: Order,
    /// The call whose handler opened it.
    caller: Result<Option<CallRef>, CallGone>,
    /// The span it was opened in.
    span: Span,
    /// What its calls build on, if there is a recorder.
    foundation: Foundation,
    /// Whether it can be resumed in another life of the engine (SM-10).
    may_be_resumed: bool,
    state: Mutex<StreamState>,
}

#[derive(Default)]
struct StreamState {
    /// Every call, as it was pushed. If the stream's task is dropped, calls that it has not taken in are answered
    /// from here (SC-3).
    pushed: Vec<Call>,
    pieces: Vec<Piece>,
    /// Stands for the calls that have been pushed and not taken in: what the handler dispatches meanwhile returns no
    /// earlier than they (CC-6).
    ahead: Option<Entered>,
    stopped: Option<Stop>,
    /// Its results are no longer awaited.
    left: bool,
}

struct Piece {
    batch: Arc<BatchState>,
    /// Keeps the handler parked for it; `None` without a handler, or once its results are no longer awaited.
    entered: Option<Entered>,
}

impl OpenBatch {
    pub(crate) fn new(session: &Arc<SessionCore>, order: Order) -> Self {
        let caller = session.caller_call();
        let (turn, number) = (session.next_turn(), session.next_batch());
        let stream = Arc::new(Stream {
            session: session.clone(),
            turn,
            allowance: session.turn_allowance(),
            number,
            may_be_resumed: matches!(caller, Ok(None)) && session.may_be_resumed(),
            foundation: session.record_stream(turn, number, order == Order::OneByOne, caller.as_ref().ok()),
            order,
            span: span::here(caller.as_ref().ok().and_then(Option::as_ref)),
            caller,
            state: Mutex::default(),
        });
        let (feed, calls) = mpsc::unbounded_channel();
        let (done_sender, done) = oneshot::channel();
        stream.emit(|| EventKind::TurnStarted { calls: None });
        let playing = play(stream.clone(), calls);
        session.engine.tasks.spawn(async move {
            playing.await;
            let _ = done_sender.send(()); // the holder may be gone
        });
        Self { stream, feed: Some(feed), done: Some(done) }
    }

    /// Adds a call, which may start before the caller's next await.
    ///
    /// A call whose arguments are cut off, because the stream broke, is answered `invalid_input`. Calls over the
    /// bound of a batch are answered `overloaded` (CC-4).
    pub fn push(&self, call: Call) {
        // From here on the handler has dispatched calls, even if they are taken in after its end (RT-7).
        let ahead = self.stream.enter_ahead();
        let surplus = {
            let mut state = self.stream.state();
            state.pushed.push(call.clone());
            if state.ahead.is_none() { std::mem::replace(&mut state.ahead, ahead) } else { ahead }
        };
        drop(surplus); // outside of the lock
        if let Some(feed) = &self.feed {
            let _ = feed.send(call); // if the task is gone, `collect` answers it
        }
    }

    /// How many calls have been pushed.
    pub fn len(&self) -> usize {
        self.stream.state().pushed.len()
    }

    /// Whether no call has been pushed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The results so far, one place per call.
    pub fn finished(&self) -> Vec<Option<Outcome>> {
        let stopped = self.stream.stopped();
        let state = self.stream.state();
        let mut finished: Vec<_> = state.pieces.iter().flat_map(|piece| piece.batch.finished()).collect();
        // Calls that have not been taken in have no result yet, but after a stop it is known what it will be.
        let to_come = state.pushed.get(finished.len()..).unwrap_or_default();
        let answer = |call: &Call, why: Stop| self.stream.unaccepted_outcome(call, why.error());
        finished.extend(to_come.iter().map(|call| stopped.map(|why| answer(call, why))));
        finished
    }

    /// Cancels its calls, those still to come included. [`finish`](Self::finish) still returns their results.
    pub fn cancel(&self) {
        self.stream.session.record_cancel(Cancelled::Turn(self.stream.turn));
        self.stream.stop(Stop::Cancelled);
    }

    /// Ends the input and waits for the results, one per call, in the order in which the calls were pushed (CL-4).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the batch.
    pub async fn finish(mut self) -> Vec<Outcome> {
        drop(self.feed.take());
        if let Some(done) = &mut self.done
            && done.await.is_err()
        {
            self.stream.recover_from_loss().await;
        }
        self.done = None;
        let outcomes = self.stream.collect();
        if let Ok(Some(call)) = &self.stream.caller
            && let Some(parking) = call.at().parking()
        {
            parking.until_held().await;
        }
        outcomes
    }
}

impl Drop for OpenBatch {
    fn drop(&mut self) {
        if self.done.is_some() {
            self.stream.session.record_cancel(Cancelled::Batch(self.stream.number));
            self.stream.stop(Stop::Cancelled);
            self.stream.leave();
        }
    }
}

impl fmt::Debug for OpenBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenBatch").field("calls", &self.len()).finish_non_exhaustive()
    }
}

impl Stream {
    fn state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock()
    }

    fn emit(&self, kind: impl FnOnce() -> EventKind) {
        let place =
            || EventPlace { turn: Some(self.turn), batch: Some(self.number), ..EventPlace::default() };
        self.session.emit_lazily(kind, place);
    }

    /// Why its calls must not start any more, if so.
    fn stopped(&self) -> Option<Stop> {
        self.state().stopped.or_else(|| self.session.stopped())
    }

    /// Stops the calls taken in so far and those still to come.
    fn stop(&self, why: Stop) {
        let (first, pieces) = {
            let mut state = self.state();
            let first = state.stopped.is_none();
            state.stopped.get_or_insert(why);
            (first, state.pieces.iter().map(|piece| piece.batch.clone()).collect::<Vec<_>>())
        };
        if first && why == Stop::Cancelled {
            self.emit(|| EventKind::TurnCancelled);
        }
        pieces.iter().for_each(|batch| batch.stop(why));
    }

    /// Enters a dispatch for calls to be pushed, unless one stands for earlier ones that have not been taken in yet.
    fn enter_ahead(&self) -> Option<Entered> {
        let caller = self.caller.as_ref().ok()?.as_ref()?;
        if self.state().ahead.is_some() {
            return None;
        }
        Entered::new(caller).ok() // otherwise the calls are refused when they are taken in
    }

    /// Notes that its results are no longer awaited: the handler's next dispatch waits until its calls have settled
    /// (CC-6b), those that have yet to be taken in included.
    fn leave(&self) {
        let (entered, ahead): (Vec<_>, _) = {
            let mut state = self.state();
            state.left = true;
            let ahead = state.ahead.as_ref().map(|ahead| (ahead.call().clone(), ahead.child()));
            (state.pieces.iter_mut().map(|piece| piece.entered.take()).collect(), ahead)
        };
        drop(entered); // outside of the lock
        if let Some((call, child)) = ahead {
            call.at().known_parking().cancel_child(child);
        }
    }

    /// Makes up for a task that was dropped: ends waiting calls, and waits for the running ones to end (SC-3).
    async fn recover_from_loss(&self) {
        self.stop(Stop::Failed);
        let (ahead, pieces): (_, Vec<_>) = {
            let mut state = self.state();
            (state.ahead.take(), state.pieces.iter().map(|piece| piece.batch.clone()).collect())
        };
        drop(ahead); // outside of the lock; nothing takes its calls in any more
        for batch in pieces {
            for run in 0..batch.runs() {
                batch.run_ended(run).await;
            }
        }
        self.announce_end();
    }

    /// Takes calls in, as one piece.
    async fn accept(&self, calls: Vec<Call>, earlier: &mut StreamPrefix) -> Arc<BatchState> {
        let ids: Vec<_> = calls.iter().map(|call| call.id.clone()).collect();
        let entered = match &self.caller {
            Ok(caller) => caller.as_ref().map(Entered::new),
            Err(CallGone) => Some(Err(Stop::Orphaned)),
        };
        let (origin, refused) = match &entered {
            None => (Origin::Outside, None),
            Some(Ok(entered)) => (Origin::Nested(entered), None),
            Some(Err(why)) => (Origin::Refused(*why), Some(*why)),
        };
        if let Some(Ok(entered)) = &entered {
            // What has been stopped does not start and need not wait; it may itself be what others wait for.
            entered.parking().until_dropped_settled_or(|| self.stopped().is_some()).await;
        }
        let turn = TurnOf { number: self.turn, is_whole: false, allowance: self.allowance.clone() };
        let (session, order, span) = (&self.session, self.order, self.span.clone());
        let dispatch = Dispatch { session, turn, order, watch: None, origin, span, can_be_resumed: true };
        let batch = dispatch.launch(Batch::new(calls), Some(earlier)).await;
        earlier.ids.extend(ids);
        earlier.calls += index(batch.slots.len());
        earlier.last_run = batch.last_run();
        drop(self.ahead_of(earlier.calls));
        if let Some(Ok(entered)) = &entered {
            entered.park();
        }
        let mut entered = entered.and_then(Result::ok);
        let stopped = {
            let mut state = self.state();
            let awaited = if state.left { None } else { entered.take() };
            state.pieces.push(Piece { batch: batch.clone(), entered: awaited });
            state.stopped.or(refused)
        };
        drop(entered); // outside of the lock
        if let Some(why) = stopped {
            batch.stop(why);
        }
        batch
    }

    /// What stands for the calls that have not been taken in, if there are none once this many have been.
    fn ahead_of(&self, taken_in: u32) -> Option<Entered> {
        let mut state = self.state();
        if state.pushed.len() > taken_in as usize { None } else { state.ahead.take() }
    }

    /// The outcome of a call that was never taken in.
    fn unaccepted_outcome(&self, call: &Call, error: CallError) -> Outcome {
        let mut outcome = Outcome::new(call, Routing::ShortCircuit, Err(error.not_started()));
        BatchState::redact(self.session.engine.results_redactor.as_ref(), [&mut outcome]);
        outcome
    }

    /// Every result, in the order of the calls.
    fn collect(&self) -> Vec<Outcome> {
        let StreamState { pushed, pieces, .. } = std::mem::take(&mut *self.state());
        let mut outcomes: Vec<_> = pieces.into_iter().flat_map(|piece| piece.results()).collect();
        let lost = pushed.get(outcomes.len()..).unwrap_or_default();
        let lost = lost.iter().map(|call| self.unaccepted_outcome(call, vanished_error(0)));
        outcomes.extend(lost.collect::<Vec<_>>());
        outcomes
    }
}

impl Piece {
    fn results(self) -> Vec<Outcome> {
        BatchState::collect(self.batch)
    }
}

/// Takes calls in and plays their runs, until the input ends and every call has ended.
async fn play(stream: Arc<Stream>, mut calls: mpsc::UnboundedReceiver<Call>) {
    let (to_player, pieces) = mpsc::unbounded_channel();
    let intake = async {
        let to_player = to_player; // dropped at the end of the input, which ends the player
        let mut earlier = StreamPrefix {
            number: stream.number,
            ids: HashSet::new(),
            calls: 0,
            last_run: None,
            holds: Arc::default(),
            foundation: stream.foundation.clone(),
            may_be_resumed: stream.may_be_resumed,
        };
        loop {
            let mut piece = Vec::new();
            if calls.recv_many(&mut piece, PIECE_MAX).await == 0 {
                break;
            }
            let _ = to_player.send(stream.accept(piece, &mut earlier).await);
        }
        stream.record_closed(earlier.calls)
    };
    let (closed, ()) = tokio::join!(intake, play_runs(&stream, pieces));
    stream.announce_end();
    if stream.session.engine.recorder.is_some() {
        stream.recorded(closed).await;
    }
}

/// A run of a piece, which may be part of a run over several pieces.
type Part = (Arc<BatchState>, usize);

/// The runs that have begun and may still be waited for.
#[derive(Default)]
struct Begun {
    /// The runs before the latest one, unless they are known to be quiescent. The latest one has begun beside them only
    /// as far as nothing of it had to start.
    ahead: Vec<Part>,
    /// The latest run.
    parts: Vec<Part>,
    /// Its routing.
    routing: Option<Routing>,
}

async fn play_runs(stream: &Stream, mut pieces: mpsc::UnboundedReceiver<Arc<BatchState>>) {
    let mut begun = Begun::default();
    while let Some(batch) = pieces.recv().await {
        for run in 0..batch.runs() {
            begun.make_way(stream, &batch, run).await;
            begin(&batch, run);
            begun.parts.push((batch.clone(), run));
        }
    }
    let last = begun.ahead.iter().chain(&begun.parts);
    for (batch, run) in last {
        batch.run_ended(*run).await;
    }
}

impl Begun {
    fn continues_with(&self, routing: Routing, order: Order) -> bool {
        order == Order::Runs
            && self.routing.is_some_and(|last| super::router::continues_run(last, Some(routing)))
    }

    /// Waits until the next part may begin: until the runs before its own are quiescent, or it has its results without,
    /// because its calls were refused or end while they wait here.
    async fn make_way(&mut self, stream: &Stream, next: &BatchState, run: usize) {
        let routing = next.routing_of(run);
        if !self.continues_with(routing, stream.order) {
            self.ahead.append(&mut self.parts);
            self.routing = Some(routing);
        } else if self.ahead.is_empty() {
            return;
        }
        // On one task, whose waker they share: they may wait for the same piece, which has one.
        let is_clear = match select(pin!(next.run_ended(run)), pin!(quiescence(&self.ahead))).await {
            Either::Left(_) => false,
            Either::Right((why, _)) => {
                why.into_iter().for_each(|why| stream.stop(why));
                true
            }
        };
        if is_clear {
            self.ahead.clear();
        }
        if let Some(why) = stream.stopped() {
            // The stop goes from piece to piece, and may not have reached this one.
            next.stop(why);
        }
    }
}

/// Waits until runs are quiescent. Returns the reason if what is behind them must not start.
async fn quiescence(runs: &[Part]) -> Option<Stop> {
    for (batch, run) in runs {
        batch.run_ended(*run).await;
    }
    // One for all: each may have to wait for zombies.
    let mut until = None;
    for (batch, run) in runs.iter().filter(|(batch, run)| !batch.is_quiescent(*run)) {
        if wait_for_zombies(batch, *run, *until.get_or_insert_with(zombies_until)).await {
            return Some(Stop::Zombie);
        }
    }
    runs.iter().find_map(|(batch, run)| skips_rest(batch, *run))
}

impl Stream {
    /// Gives the record that all calls have been taken, unless the stream has been given up.
    fn record_closed(&self, calls: u32) -> Option<Pending> {
        let is_left = self.state().left;
        if is_left { None } else { self.session.record_closed(self.turn, self.number, calls) }
    }

    /// Waits until the results may be given, for a bounded time. What is not durable by then is marked in its result: if
    /// the end of the batch is not, that is all of them.
    async fn recorded(&self, closed: Option<Pending>) {
        let engine = &self.session.engine;
        let until = engine.reply_until(!matches!(self.caller, Ok(None)));
        let pieces: Vec<_> = self.state().pieces.iter().map(|piece| piece.batch.clone()).collect();
        for batch in &pieces {
            batch.ends_recorded(until).await;
        }
        if let Some(closed) = closed
            && !engine.recorded_for_reply(closed, until).await
        {
            pieces.iter().for_each(|batch| batch.mark_unrecorded());
        }
    }

    fn announce_end(&self) {
        self.emit(|| {
            let state = self.state();
            let failed = state.pieces.iter().map(|piece| piece.batch.failed()).sum::<usize>();
            let calls = state.pieces.iter().map(|piece| piece.batch.slots.len()).sum::<usize>();
            EventKind::TurnEnded { ok: calls - failed, failed }
        });
    }
}
