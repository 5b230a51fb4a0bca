//! A turn as it is served: what it is, how far it is, and what came of it.
//!
//! ```text
//!   streaming ─► running ─► ended
//!        └► broken ─► running ─┤       a stream that broke off goes on when its response is sent whole (CL-8)
//!                              └► suspended       it goes on in the next life of the server (SM-10)
//! ```

use crate::wall;
use parking_lot::Mutex;
use std::{
    collections::BTreeSet,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{sync::Notify, time::interval};
use toolyard::{AgentPath, Outcome, Turn};
use toolyard_wire::{Format, Message};

/// How often a cancel is brought that comes before its call.
const CANCEL_AGAIN: Duration = Duration::from_millis(10);

/// How far a turn is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The model is still writing it.
    Streaming,
    /// The stream broke off before its end.
    Broken,
    /// All of its calls are known, and some have not ended.
    Running,
    /// The server ends before it: it goes on in the next life (SM-10).
    Suspended,
    /// Every call has its result.
    Ended,
}

/// What came of a turn.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) message: Message,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) ended_ms: u64,
    /// About how many bytes its results take, with the arguments of its calls.
    pub(super) bytes: usize,
}

/// How far a turn was at one moment.
#[derive(Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) phase: Phase,
    pub(crate) format: Format,
    pub(crate) calls: usize,
    pub(crate) is_cancelled: bool,
    pub(crate) ended: Option<&'a Ended>,
}

/// One turn of a session.
#[derive(Debug)]
pub(crate) struct ServedTurn {
    pub(crate) number: u64,
    pub(crate) agent: AgentPath,
    pub(crate) started_ms: u64,
    state: Mutex<State>,
    /// Set under the lock of its state. It is part of the turn: both are forgotten together, when neither is in a cache any more.
    ended: OnceLock<Ended>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    format: Format,
    calls: usize,
    is_cancelled: bool,
    /// Whether what came of a stream that broke off has run.
    is_settled: bool,
    /// The calls whose cancel is brought until it reaches them.
    cancelling: BTreeSet<u32>,
    /// `None` once it has ended, or goes on no more.
    turn: Option<Arc<Turn>>,
    /// Its response, if it has come again: with what only its sender knows of it.
    message: Option<Message>,
}

impl ServedTurn {
    pub(crate) fn new(turn: Arc<Turn>, agent: AgentPath, phase: Phase, format: Format, calls: usize) -> Self {
        let number = turn.number();
        let state = State {
            phase,
            format,
            calls,
            is_cancelled: turn.is_cancelled(),
            is_settled: false,
            cancelling: BTreeSet::new(),
            turn: Some(turn),
            message: None,
        };
        Self {
            number,
            agent,
            started_ms: wall::now_ms(),
            state: Mutex::new(state),
            ended: OnceLock::new(),
            changed: Notify::new(),
        }
    }

    /// The same as it began then, in an earlier life of the server.
    pub(crate) fn begun_at(self, started_ms: u64) -> Self {
        Self { started_ms, ..self }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    /// How far it is.
    pub(crate) fn seen(&self) -> Seen<'_> {
        let state = self.state.lock();
        let State { phase, format, calls, is_cancelled, .. } = *state;
        Seen { phase, format, calls, is_cancelled, ended: self.ended() }
    }

    pub(crate) fn calls(&self) -> usize {
        self.state.lock().calls
    }

    /// Notes how much of it has been read of the stream.
    pub(crate) fn grows(&self, format: Format, calls: usize) {
        let mut state = self.state.lock();
        (state.format, state.calls) = (format, calls);
    }

    /// The turn of the engine, while it has not ended.
    pub(crate) fn engine_turn(&self) -> Option<Arc<Turn>> {
        self.state.lock().turn.clone()
    }

    /// Moves on from one phase to another; `false` if it is in none of these.
    pub(crate) fn moves(&self, from: &[Phase], to: Phase) -> bool {
        let mut state = self.state.lock();
        let may = from.contains(&state.phase);
        if may {
            state.phase = to;
        }
        drop(state);
        self.changed.notify_waiters();
        may
    }

    /// Its results are known, since then.
    pub(crate) fn end(&self, message: Message, outcomes: Vec<Outcome>, ended_ms: u64) {
        let bytes = outcomes.iter().map(weight).sum();
        let turn = {
            let mut state = self.state.lock();
            let message = state.message.take().unwrap_or(message);
            let ended = Ended { message, outcomes, ended_ms, bytes };
            state.calls = ended.outcomes.len();
            state.phase = Phase::Ended;
            self.ended.set(ended).expect("a turn ends once");
            state.turn.take()
        };
        drop(turn); // outside of the lock
        self.changed.notify_waiters();
    }

    /// What came of it, if it has ended.
    pub(crate) fn ended(&self) -> Option<&Ended> {
        self.ended.get()
    }

    /// Waits for its results.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn until_ended(&self) -> &Ended {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(ended) = self.ended() {
                return ended;
            }
            changed.await;
        }
    }

    /// Its calls that have not ended go on in the next life of the server. It can still be cancelled.
    pub(crate) fn suspend(&self) {
        self.state.lock().phase = Phase::Suspended;
        self.changed.notify_waiters();
    }

    /// Its response has come again, before it has ended.
    pub(crate) fn comes_again(&self, message: Message) {
        let mut state = self.state.lock();
        if state.turn.is_some() {
            state.message = Some(message);
        }
    }

    /// Waits until it has ended or is suspended.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(crate) async fn until_over(&self) {
        self.until(|state| matches!(state.phase, Phase::Ended | Phase::Suspended)).await;
    }

    /// Waits for another turn, until that has ended or goes on no more, or this one is cancelled (HT-3).
    pub(crate) async fn until_its_turn(&self, after: &Self) {
        tokio::select! {
            () = after.until(State::goes_on_no_more) => {}
            () = self.until(|state| state.is_cancelled) => {}
        }
    }

    /// What came of its stream, which broke off, has run.
    pub(crate) fn settle(&self) {
        self.state.lock().is_settled = true;
        self.changed.notify_waiters();
    }

    /// Waits until what came of its stream, which broke off, has run.
    pub(crate) async fn until_settled(&self) {
        self.until(|state| state.is_settled).await;
    }

    async fn until(&self, is_so: impl Fn(&State) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            if is_so(&self.state.lock()) {
                return;
            }
            changed.await;
        }
    }

    /// The results so far, one place per call that is known.
    pub(crate) fn outcomes(&self) -> Vec<Option<Outcome>> {
        let turn = self.engine_turn();
        match (self.ended(), turn) {
            (Some(ended), _) => ended.outcomes.iter().cloned().map(Some).collect(),
            (None, Some(turn)) => turn.finished(),
            (None, None) => Vec::new(),
        }
    }

    /// Cancels its calls; `false` if it has ended.
    pub(crate) fn cancel(&self) -> bool {
        let Some(turn) = self.engine_turn() else { return false };
        self.state.lock().is_cancelled = true;
        turn.cancel();
        self.changed.notify_waiters();
        true
    }

    /// Cancels one of its calls, if that has not ended. A cancel that comes before its call has passed the gate, or while
    /// the turn waits for another one, reaches it later.
    pub(crate) fn cancel_call(self: Arc<Self>, index: u32) {
        if self.has_cancelled(index) || !self.state.lock().cancelling.insert(index) {
            return;
        }
        tokio::spawn(async move {
            let mut again = interval(CANCEL_AGAIN);
            while !self.has_cancelled(index) {
                again.tick().await;
            }
        });
    }

    /// Whether one of its calls is cancelled by now, or has ended.
    fn has_cancelled(&self, index: u32) -> bool {
        let Some(turn) = self.engine_turn() else { return true };
        let has_ended =
            |outcomes: &[Option<Outcome>]| outcomes.get(index as usize).is_some_and(Option::is_some);
        // What is suspended has no other end in this life: that it is cancelled is recorded.
        turn.cancel_call_at(index as usize) || has_ended(&turn.finished()) || self.phase() == Phase::Suspended
    }
}

impl State {
    fn goes_on_no_more(&self) -> bool {
        self.turn.is_none() || self.phase == Phase::Suspended
    }
}

impl ServedTurn {
    /// Whether it has ended, or goes on no more.
    pub(crate) fn is_over(&self) -> bool {
        self.state.lock().goes_on_no_more()
    }

    /// Lets go of a turn whose stream broke off, or that is suspended: its session closes, so that it does not go on.
    pub(crate) fn let_go(&self) {
        let turn = {
            let mut state = self.state.lock();
            if matches!(state.phase, Phase::Broken | Phase::Suspended) { state.turn.take() } else { None }
        };
        drop(turn); // outside of the lock
        self.changed.notify_waiters();
    }
}

/// About how many bytes a result takes, with the arguments of its call, which are kept too.
fn weight(outcome: &Outcome) -> usize {
    let result = match &outcome.status {
        Ok(output) => output.footprint(),
        Err(error) => error.footprint(),
    };
    size_of::<Outcome>() + result + outcome.arguments.size()
}
