//! A batch whose calls come while the model still writes them (CL-5).
//!
//! ```text
//!   push ─► feed ─► intake: gate, first events, questions ─► player: runs, one after another ─► results
//!                   a piece of the batch at a time            a run may go on over several pieces
//! ```
//!
//! Each piece that comes in is a [`BatchState`] of its own; together they have one number, one row of indexes and
//! one row of runs, so that nobody can tell from the results that the calls came one by one. A call starts as
//! soon as no earlier call of another run is left, whatever is still to come.

use super::driver::{begin, rest};
use super::intake::{Dispatch, Earlier, Order, Origin};
use super::state::{BatchState, TurnOf, index, vanished};
use super::stop::Stop;
use crate::{
    budget::Allowance,
    nesting::{CallRef, Entered},
    session::{SessionCore, Where},
    telemetry,
};
use futures::future::join_all;
use std::{
    collections::HashSet,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::{mpsc, oneshot};
use toolyard_core::{Batch, Call, CallError, EventKind, Outcome, Routing};
use tracing::Span;

/// How many calls that wait to come in are taken in together.
const PIECE_MAX: usize = 256;

/// A batch that is still being written: calls are pushed as they are decoded and start as soon as the order of
/// the batch allows, with the results of the same batch given at once (CL-5).
///
/// A handler that opens one is parked while calls of it are in the air, and [`finish`](Self::finish) yields when it
/// holds its permits again (CC-6).
///
/// Dropping it cancels the batch: calls that wait end at once, calls that run have their grace in the background
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

/// What intake, player and holder of an open batch share.
struct Stream {
    session: Arc<SessionCore>,
    turn: u64,
    allowance: Option<Arc<Allowance>>,
    number: u64,
    order: Order,
    /// The call whose handler opened it.
    caller: Option<CallRef>,
    /// The span it was opened in.
    span: Span,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Every call, as it was pushed: what has not come in when its task vanishes is answered from here (SC-3).
    pushed: Vec<Call>,
    pieces: Vec<Piece>,
    stopped: Option<Stop>,
    /// Nobody awaits it any more.
    left: bool,
}

struct Piece {
    batch: Arc<BatchState>,
    /// Keeps the handler parked for it; `None` when nobody awaits it any more.
    entered: Option<Entered>,
}

impl OpenBatch {
    pub(crate) fn new(session: &Arc<SessionCore>, order: Order) -> Self {
        let caller = session.caller_call();
        let stream = Arc::new(Stream {
            session: session.clone(),
            turn: session.next_turn(),
            allowance: session.turn_allowance(),
            number: session.next_batch(),
            order,
            span: telemetry::here(caller.as_ref()),
            caller,
            state: Mutex::default(),
        });
        let (feed, calls) = mpsc::unbounded_channel();
        let (tell_done, done) = oneshot::channel();
        stream.emit(|| EventKind::TurnStarted { calls: None });
        let playing = play(stream.clone(), calls);
        session.engine.tasks.spawn(async move {
            playing.await;
            let _ = tell_done.send(()); // nobody may wait any more
        });
        Self { stream, feed: Some(feed), done: Some(done) }
    }

    /// Adds a call. It may start before this returns to its caller's next wait.
    ///
    /// Arguments that are half a JSON text, because the stream broke, make that call's `invalid_input`. Calls over
    /// the bound of a batch are answered `overloaded` (CC-4).
    pub fn push(&self, call: Call) {
        self.stream.state().pushed.push(call.clone());
        if let Some(feed) = &self.feed {
            let _ = feed.send(call); // with its task gone, it is answered at the end
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

    /// The results there are by now, one place per call.
    pub fn finished(&self) -> Vec<Option<Outcome>> {
        let stopped = self.stream.stopped();
        let state = self.stream.state();
        let mut finished: Vec<_> = state.pieces.iter().flat_map(|piece| piece.batch.finished()).collect();
        // Those that have yet to come in are answered when they do; if they are not to go, how is known.
        let to_come = state.pushed.get(finished.len()..).unwrap_or_default();
        let answer = |call: &Call, why: Stop| self.stream.unplayed(call, why.error());
        finished.extend(to_come.iter().map(|call| stopped.map(|why| answer(call, why))));
        finished
    }

    /// Cancels its calls, now and from now on. Their results are still to be had from [`finish`](Self::finish).
    pub fn cancel(&self) {
        self.stream.stop(Stop::Cancelled);
    }

    /// No more calls come: waits for the results, one per call, in the order in which they were pushed (CL-4).
    ///
    /// # Cancel safety
    /// Dropping the future cancels the batch.
    pub async fn finish(mut self) -> Vec<Outcome> {
        drop(self.feed.take());
        if let Some(done) = &mut self.done
            && done.await.is_err()
        {
            self.stream.lost().await;
        }
        self.done = None;
        let outcomes = self.stream.collect();
        if let Some(call) = &self.stream.caller
            && let Some(nest) = call.batch.nest_of(call.index)
        {
            nest.until_held().await;
        }
        outcomes
    }
}

impl Drop for OpenBatch {
    fn drop(&mut self) {
        if self.done.is_some() {
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
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn emit(&self, kind: impl FnOnce() -> EventKind) {
        let place = || Where { turn: Some(self.turn), batch: Some(self.number), ..Where::default() };
        self.session.emit_lazily(kind, place);
    }

    /// Why its calls are not to go any more.
    fn stopped(&self) -> Option<Stop> {
        self.state().stopped.or_else(|| self.session.stopped())
    }

    /// Stops what came in and what is to come.
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

    /// Nobody awaits its results any more: what the handler dispatches next waits for its calls (CC-6b).
    fn leave(&self) {
        let entered: Vec<_> = {
            let mut state = self.state();
            state.left = true;
            state.pieces.iter_mut().map(|piece| piece.entered.take()).collect()
        };
        drop(entered); // outside of the lock
    }

    /// Its task is gone. Ends what waits for it, and waits for the end of what runs (SC-3).
    async fn lost(&self) {
        self.stop(Stop::Failed);
        let pieces: Vec<_> = self.state().pieces.iter().map(|piece| piece.batch.clone()).collect();
        for batch in pieces {
            for run in 0..batch.runs() {
                batch.run_ended(run).await;
            }
        }
        self.tell_end();
    }

    /// Takes some calls in.
    async fn take_in(&self, calls: Vec<Call>, earlier: &mut Earlier) -> Arc<BatchState> {
        let ids: Vec<_> = calls.iter().map(|call| call.id.clone()).collect();
        let entered = self.caller.as_ref().map(Entered::new);
        let (origin, refused) = match &entered {
            None => (Origin::Outside, None),
            Some(Ok(entered)) => (Origin::Nested(entered), None),
            Some(Err(why)) => (Origin::Refused(*why), Some(*why)),
        };
        if let Some(Ok(entered)) = &entered {
            entered.nest().until_none_is_dropped().await;
        }
        let turn = TurnOf { number: self.turn, is_whole: false, allowance: self.allowance.clone() };
        let (session, order, span) = (&self.session, self.order, self.span.clone());
        let dispatch = Dispatch { session, turn, order, watch: None, origin, span };
        let batch = dispatch.launch(Batch::new(calls), Some(earlier)).await;
        if let Some(Ok(entered)) = &entered {
            entered.park();
        }
        earlier.ids.extend(ids);
        earlier.calls += index(batch.slots.len());
        earlier.last_run = batch.last_run();
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

    /// The outcome of a call that never came in.
    fn unplayed(&self, call: &Call, error: CallError) -> Outcome {
        let mut outcome = Outcome::new(call, Routing::ShortCircuit, Err(error.not_started()));
        BatchState::shown(self.session.engine.redactor.as_ref(), [&mut outcome]);
        outcome
    }

    /// Every result, in the order of the calls.
    fn collect(&self) -> Vec<Outcome> {
        let State { pushed, pieces, .. } = std::mem::take(&mut *self.state());
        let mut outcomes: Vec<_> = pieces.into_iter().flat_map(|piece| piece.results()).collect();
        let lost = pushed.get(outcomes.len()..).unwrap_or_default();
        let lost = lost.iter().map(|call| self.unplayed(call, vanished(0)));
        outcomes.extend(lost.collect::<Vec<_>>());
        outcomes
    }
}

impl Piece {
    fn results(self) -> Vec<Outcome> {
        BatchState::collect(self.batch)
    }
}

/// Takes calls in and plays their runs, until all have come and ended.
async fn play(stream: Arc<Stream>, mut calls: mpsc::UnboundedReceiver<Call>) {
    let (to_player, pieces) = mpsc::unbounded_channel();
    let intake = async {
        let to_player = to_player; // dropped at the end, that the player knows of it
        let mut earlier = Earlier { number: stream.number, ids: HashSet::new(), calls: 0, last_run: None };
        loop {
            let mut piece = Vec::new();
            if calls.recv_many(&mut piece, PIECE_MAX).await == 0 {
                break;
            }
            let _ = to_player.send(stream.take_in(piece, &mut earlier).await);
        }
    };
    tokio::join!(intake, play_runs(&stream, pieces));
    stream.tell_end();
}

/// A run, or the parts of one that came in several pieces.
#[derive(Default)]
struct Parts {
    routing: Option<Routing>,
    parts: Vec<(Arc<BatchState>, usize)>,
}

async fn play_runs(stream: &Stream, mut pieces: mpsc::UnboundedReceiver<Arc<BatchState>>) {
    let mut current = Parts::default();
    while let Some(batch) = pieces.recv().await {
        for run in 0..batch.runs() {
            let routing = batch.routing_of(run);
            if !current.goes_on_with(routing, stream.order) {
                current.rest(stream).await;
                current = Parts { routing: Some(routing), parts: Vec::new() };
                if let Some(why) = stream.stopped() {
                    // The stop goes from piece to piece, and may not have come to this one.
                    batch.stop(why);
                }
            }
            begin(&batch, run);
            current.parts.push((batch.clone(), run));
        }
    }
    current.end().await;
}

impl Parts {
    fn goes_on_with(&self, routing: Routing, order: Order) -> bool {
        order == Order::Runs && self.routing.is_some_and(|last| super::router::goes_on(last, Some(routing)))
    }

    /// Waits until every call has its result.
    async fn end(&self) {
        for (batch, run) in &self.parts {
            batch.run_ended(*run).await;
        }
    }

    /// Waits until nothing of it runs, or those behind it are not to go.
    async fn rest(&self, stream: &Stream) {
        self.end().await;
        // Together: each may have to wait for handlers that were given up.
        let rests = join_all(self.parts.iter().map(|(batch, run)| rest(batch, *run))).await;
        if let Some(why) = rests.into_iter().flatten().next() {
            stream.stop(why);
        }
    }
}

impl Stream {
    fn tell_end(&self) {
        self.emit(|| {
            let state = self.state();
            let failed = state.pieces.iter().map(|piece| piece.batch.failed()).sum::<usize>();
            let calls = state.pieces.iter().map(|piece| piece.batch.slots.len()).sum::<usize>();
            EventKind::TurnEnded { ok: calls - failed, failed }
        });
    }
}
