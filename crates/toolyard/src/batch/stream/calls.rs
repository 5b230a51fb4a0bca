//! The calls of an open batch, as its holder, its task and its turn share them.
//!
//! ```text
//!   pushed ─► waiting ─► a piece: has passed the gate ─► results, which the holder takes
//!               │          │                              or copies, if the turn keeps them
//!               └──────────┴─ a stop and a cancel reach both
//! ```

use super::{Owner, answers::StreamAnswers};
use crate::{
    call::{BatchState, Entered, SessionCore, Stop, index, vanished_error},
    record::{Cancelled, EventPlace, Foundation},
};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::{BTreeSet, VecDeque},
    future::poll_fn,
    sync::Arc,
    task::{Context, Poll, Waker},
};
use toolyard_core::{Call, CallError, EventKind, Outcome, Routing};

/// Everything that was pushed into an open batch. It keeps neither the task nor the span of the batch, so that a turn may
/// keep it.
pub(crate) struct StreamCalls {
    pub(super) session: Arc<SessionCore>,
    pub(super) turn: u64,
    pub(super) number: u64,
    /// Whether it is a turn, which it announces; otherwise it is a part of one.
    is_turn: bool,
    /// What its calls build on, if there is a recorder.
    pub(super) foundation: Foundation,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What has been pushed and not taken in. If the stream's task is dropped, it is answered from here (SC-3).
    waiting: VecDeque<Call>,
    /// No more calls come.
    input_is_over: bool,
    /// The key by which its caller knows the request that has brought it whole.
    request: Option<Arc<str>>,
    /// Who takes calls in, while it waits for more.
    intake: Option<Waker>,
    /// Those that were cancelled one by one, by their index.
    cancelled: BTreeSet<u32>,
    /// What has been taken in.
    pieces: Vec<Piece>,
    taken_in: u32,
    /// Stands for the waiting calls: what the handler dispatches meanwhile returns no earlier than they (CC-6).
    ahead: Option<Entered>,
    stopped: Option<Stop>,
    holder: Holder,
    /// Whether a turn keeps the results.
    is_kept: bool,
    /// Whether outputs are given away one by one.
    gives_away: bool,
    /// Every call has its result, and there will be no more.
    is_over: bool,
}

struct Piece {
    batch: Arc<BatchState>,
    /// Keeps the handler parked for it; `None` without a handler, or once its results are no longer awaited.
    entered: Option<Entered>,
}

/// Where the holder of an open batch is.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Holder {
    #[default]
    Waits,
    /// It has dropped the batch.
    HasLeft,
    HasResults,
}

impl StreamCalls {
    /// No calls so far.
    pub(super) fn new(
        session: Arc<SessionCore>,
        turn: u64,
        number: u64,
        owner: Owner,
        foundation: Foundation,
    ) -> Arc<Self> {
        let state = State { is_kept: owner == Owner::Turn { keeps: true }, ..State::default() };
        let is_turn = owner != Owner::Handler;
        Arc::new(Self { session, turn, number, is_turn, foundation, state: Mutex::new(state) })
    }

    /// What its calls build on.
    pub(crate) fn foundation(&self) -> Foundation {
        self.foundation.clone()
    }

    /// Announces its start, if it is a turn.
    pub(super) fn announce_start(&self) {
        if self.is_turn {
            self.emit(|| EventKind::TurnStarted { calls: None });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn emit(&self, kind: impl FnOnce() -> EventKind) {
        let place =
            || EventPlace { turn: Some(self.turn), batch: Some(self.number), ..EventPlace::default() };
        self.session.emit_lazily(kind, place);
    }

    /// The number of the batch in its session.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Gives outputs away one by one from now on, unless a turn keeps them. Returns whether it does.
    pub(super) fn gives_away(&self) -> bool {
        let mut state = self.state();
        state.gives_away = !state.is_kept;
        state.gives_away
    }

    /// How many calls have been pushed.
    pub(super) fn len(&self) -> usize {
        let state = self.state();
        state.taken_in as usize + state.waiting.len()
    }

    /// Why its calls must not start any more, if so.
    pub(super) fn stopped(&self) -> Option<Stop> {
        self.state().stopped.or_else(|| self.session.stopped())
    }

    /// Adds a call that has yet to be taken in. Returns `ahead` if one stands for earlier ones already; it is to be dropped
    /// outside of locks.
    pub(super) fn push(&self, call: Call, ahead: Option<Entered>) -> Option<Entered> {
        let (surplus, intake) = {
            let mut state = self.state();
            state.waiting.push_back(call);
            let surplus =
                if state.ahead.is_none() { std::mem::replace(&mut state.ahead, ahead) } else { ahead };
            (surplus, state.intake.take())
        };
        intake.into_iter().for_each(Waker::wake); // outside of the lock
        surplus
    }

    /// Its caller knows the request that has brought it, now that it has come whole.
    pub(super) fn set_request(&self, key: Arc<str>) {
        let before = self.state().request.replace(key);
        drop(before); // outside of the lock
    }

    pub(super) fn request(&self) -> Option<Arc<str>> {
        self.state().request.clone()
    }

    /// No more calls come.
    pub(super) fn end_input(&self) {
        let intake = {
            let mut state = self.state();
            state.input_is_over = true;
            state.intake.take()
        };
        intake.into_iter().for_each(Waker::wake); // outside of the lock
    }

    /// Waits for calls that have not been taken in; gives copies of the first of them, at most so many. Empty at the end of
    /// the input. Those that are given wait until they are [added](Self::add).
    pub(super) async fn next_piece(&self, most: usize) -> Vec<Call> {
        tokio::task::coop::consume_budget().await;
        poll_fn(|cx| self.poll_piece(most, cx)).await
    }

    fn poll_piece(&self, most: usize, cx: &mut Context<'_>) -> Poll<Vec<Call>> {
        let waker = cx.waker().clone(); // may run any code, like the drop of the one before
        let _before;
        let mut state = self.state();
        if !state.waiting.is_empty() || state.input_is_over {
            return Poll::Ready(state.waiting.iter().take(most).cloned().collect());
        }
        _before = state.intake.replace(waker);
        Poll::Pending
    }

    /// Whether something stands for the waiting calls.
    pub(super) fn has_ahead(&self) -> bool {
        self.state().ahead.is_some()
    }

    /// What stands for the waiting calls, if none wait once this many more are taken in.
    pub(super) fn ahead_of(&self, more: usize) -> Option<Entered> {
        let mut state = self.state();
        if state.waiting.len() > more { None } else { state.ahead.take() }
    }

    /// Adds a piece: the calls that have waited longest have passed the gate. Stops it if the batch has been stopped, or
    /// `refused`, and cancels those of its calls that were cancelled while they waited. None of them has started.
    pub(super) fn add(&self, batch: &Arc<BatchState>, mut entered: Option<Entered>, refused: Option<Stop>) {
        let (stopped, cancelled) = {
            let state = &mut *self.state();
            let awaited = if state.holder == Holder::HasLeft { None } else { entered.take() };
            state.waiting.drain(..batch.slots.len());
            state.taken_in += index(batch.slots.len());
            let later = state.cancelled.split_off(&state.taken_in);
            let cancelled = std::mem::replace(&mut state.cancelled, later);
            state.pieces.push(Piece { batch: batch.clone(), entered: awaited });
            (state.stopped.or(refused), cancelled)
        };
        drop(entered); // outside of the lock
        if let Some(why) = stopped {
            batch.stop(why);
        }
        for at in cancelled {
            batch.cancel_call_at(at - batch.base.index);
        }
    }

    /// The pieces so far.
    pub(super) fn pieces(&self) -> Vec<Arc<BatchState>> {
        self.state().pieces.iter().map(|piece| piece.batch.clone()).collect()
    }

    /// Stops the calls taken in so far and those still to come.
    pub(crate) fn stop(&self, why: Stop) {
        let is_news = {
            let mut state = self.state();
            let is_first = state.stopped.is_none();
            state.stopped.get_or_insert(why);
            is_first && !state.is_over
        };
        if is_news && why == Stop::Cancelled {
            self.emit(|| EventKind::TurnCancelled);
        }
        self.pieces().iter().for_each(|batch| batch.stop(why));
    }

    /// Cancels the calls with this id that have no result, waiting ones included. Returns whether there are any.
    pub(crate) fn cancel_calls(&self, id: &str) -> bool {
        let (pieces, waiting) = {
            let state = &mut *self.state();
            let waiting = (state.taken_in..).zip(&state.waiting).filter(|(_, call)| call.id.as_str() == id);
            let waiting: Vec<u32> = waiting.map(|(at, _)| at).collect();
            state.cancelled.extend(&waiting);
            let open = state.pieces.iter().filter(|piece| piece.batch.is_open());
            (open.map(|piece| piece.batch.clone()).collect::<Vec<_>>(), waiting)
        };
        // A recorder does not know of them yet: what it is told of their id is about calls that it knows.
        for index in waiting.iter().copied() {
            self.session.record_cancel(Cancelled::Call { turn: self.turn, batch: self.number, index });
        }
        pieces.iter().map(|batch| batch.cancel_calls(id)).sum::<usize>() > 0 || !waiting.is_empty()
    }

    /// Cancels the call with this index. Returns whether it had been pushed and had no result.
    pub(crate) fn cancel_call_at(&self, at: u32) -> bool {
        let batch = {
            let mut state = self.state();
            if at >= state.taken_in {
                let is_waiting = ((at - state.taken_in) as usize) < state.waiting.len();
                if is_waiting {
                    state.cancelled.insert(at);
                }
                return is_waiting;
            }
            let behind = state.pieces.partition_point(|piece| piece.batch.base.index <= at);
            // A batch whose results have been taken has no pieces left.
            behind.checked_sub(1).map(|piece| state.pieces[piece].batch.clone())
        };
        batch.is_some_and(|batch| batch.cancel_call_at(at - batch.base.index))
    }

    /// Whether it may have calls without a result.
    pub(crate) fn is_open(&self) -> bool {
        !self.state().is_over
    }

    /// The results so far, one place per call.
    pub(crate) fn finished(&self) -> Vec<Option<Outcome>> {
        let stopped = self.stopped();
        let state = self.state();
        let mut finished: Vec<_> = state.pieces.iter().flat_map(|piece| piece.batch.finished()).collect();
        // Calls that have not been taken in have no result yet, but after a stop it is known what it will be.
        let answer = |call: &Call, why: Stop| self.unaccepted_outcome(call, why.error());
        finished.extend(state.waiting.iter().map(|call| stopped.map(|why| answer(call, why))));
        finished
    }

    /// Its results so far, to be found by their calls.
    pub(crate) fn answers(&self) -> StreamAnswers {
        StreamAnswers::of(self.pieces())
    }

    /// Announces its end: every call has its result.
    pub(super) fn announce_end(&self) {
        self.state().is_over = true;
        if !self.is_turn {
            return;
        }
        self.emit(|| {
            let pieces = self.pieces();
            let failed = pieces.iter().map(|batch| batch.failed()).sum::<usize>();
            let calls = pieces.iter().map(|batch| batch.slots.len()).sum::<usize>();
            EventKind::TurnEnded { ok: calls - failed, failed }
        });
    }

    /// Makes up for a task that was dropped: ends waiting calls, and waits for the running ones to end (SC-3).
    pub(super) async fn recover_from_loss(&self) {
        self.stop(Stop::Failed);
        let ahead = self.state().ahead.take();
        drop(ahead); // outside of the lock; nothing takes its calls in any more
        for batch in self.pieces() {
            for run in 0..batch.runs() {
                batch.run_ended(run).await;
            }
        }
        self.announce_end();
    }

    /// The outcome of a call that was never taken in.
    fn unaccepted_outcome(&self, call: &Call, error: CallError) -> Outcome {
        let mut outcome = Outcome::new(call, Routing::ShortCircuit, Err(error.not_started()));
        BatchState::redact(self.session.engine.results_redactor.as_ref(), [&mut outcome]);
        outcome
    }
}

/// Giving the results away, and keeping them.
impl StreamCalls {
    /// The results of the calls that `is_told` does not know, with their places, once every call has ended: those of calls
    /// that were never taken in, because the task was dropped (SC-3).
    pub(super) fn untold(&self, is_told: impl Fn(usize) -> bool) -> Vec<(usize, Outcome)> {
        let state = self.state();
        let taken_in = state.pieces.iter().flat_map(|piece| {
            let base = piece.batch.base.index as usize;
            (0..index(piece.batch.slots.len()))
                .map(move |at| (base + at as usize, piece.batch.finished_at(at)))
        });
        let taken_in = taken_in.filter_map(|(at, outcome)| Some((at, outcome?)));
        let lost = (state.taken_in as usize..).zip(&state.waiting);
        let lost = lost.map(|(at, call)| (at, self.unaccepted_outcome(call, vanished_error(0))));
        taken_in.chain(lost).filter(|(at, _)| !is_told(*at)).collect()
    }

    /// Every result, in the order of the calls: copies, if a turn keeps the results.
    pub(super) fn collect(&self) -> Vec<Outcome> {
        let (is_kept, is_given_away, pieces, lost) = {
            let state = &mut *self.state();
            let kept =
                |piece: &mut Piece| Piece { batch: piece.batch.clone(), entered: piece.entered.take() };
            let pieces: Vec<_> = match state.is_kept {
                true => state.pieces.iter_mut().map(kept).collect(),
                false => std::mem::take(&mut state.pieces),
            };
            let lost = if state.is_kept { state.waiting.clone() } else { std::mem::take(&mut state.waiting) };
            (state.is_kept, state.gives_away, pieces, lost)
        };
        if is_given_away {
            self.holder_is_gone(Holder::HasResults);
            pieces.iter().for_each(|piece| piece.batch.drop_results());
            return Vec::new();
        }
        let results = |piece: Piece| match is_kept {
            true => piece.batch.copies(),
            false => BatchState::collect(piece.batch),
        };
        let mut outcomes: Vec<_> = pieces.into_iter().flat_map(results).collect();
        outcomes.extend(lost.iter().map(|call| self.unaccepted_outcome(call, vanished_error(0))));
        self.holder_is_gone(Holder::HasResults);
        outcomes
    }

    /// Notes that its results are no longer awaited: the handler's next dispatch waits until its calls have settled
    /// (CC-6b), those that have yet to be taken in included.
    pub(super) fn leave(&self) {
        self.holder_is_gone(Holder::HasLeft);
        let (entered, ahead): (Vec<_>, _) = {
            let mut state = self.state();
            let ahead = state.ahead.as_ref().map(|ahead| (ahead.call().clone(), ahead.child()));
            (state.pieces.iter_mut().map(|piece| piece.entered.take()).collect(), ahead)
        };
        drop(entered); // outside of the lock
        if let Some((call, child)) = ahead {
            call.at().known_parking().cancel_child(child);
        }
    }

    /// Whether its results are no longer awaited.
    pub(super) fn is_left(&self) -> bool {
        self.state().holder == Holder::HasLeft
    }

    /// Whether there is nothing left that its turn could want.
    pub(crate) fn is_let_go(&self) -> bool {
        let state = self.state();
        !state.is_kept && state.holder == Holder::HasResults
    }

    /// Its turn is gone: it keeps no results. Those that its holder has yet to take stay.
    pub(crate) fn turn_is_gone(&self) {
        let holder = {
            let mut state = self.state();
            state.is_kept = false;
            state.holder
        };
        if holder != Holder::Waits {
            self.pieces().iter().for_each(|batch| batch.drop_results());
        }
    }

    fn holder_is_gone(&self, how: Holder) {
        let is_kept = {
            let mut state = self.state();
            state.holder = how;
            state.is_kept
        };
        // The turn may have gone while they were copied.
        if !is_kept && how == Holder::HasResults {
            self.pieces().iter().for_each(|batch| batch.drop_results());
        }
    }
}
