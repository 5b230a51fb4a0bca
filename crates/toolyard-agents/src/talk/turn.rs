//! The open batches of an agent, one after another (AG-3).
//!
//! ```text
//!   calls ─► queue ─► open batch ─► each end, as it comes
//!            └ waits: after `turn_end`, after 1 000 calls, behind an id that the batch has had; and while many are in
//!              the engine, or the agent does not read, so that one agent's results do not take the room of others
//! ```

use super::{CALLS_OPEN_MAX, known::BYTES_OPEN_MAX};
use crate::{observe::Observer, recorded::Recorded};
use foldhash::fast::RandomState;
use std::{
    collections::{HashSet, VecDeque},
    future::pending,
    sync::Arc,
};
use toolyard::{Call, CallId, DrivenBatch, Outcome, Session, Turn};

/// How many calls are in the engine at once.
const IN_ENGINE_MAX: usize = 64;

/// The turns of an agent: the one whose batch is open, and what comes after it.
pub(super) struct Turns {
    session: Session,
    observer: Observer,
    recorded: Option<Arc<dyn Recorded>>,
    open: Option<OpenTurn>,
    queue: VecDeque<Queued>,
    /// What is answered as it was in an earlier life.
    replayed: VecDeque<Outcome>,
}

/// What waits for the end of the open batch.
enum Queued {
    Call(Call),
    TurnEnd,
}

/// A turn whose batch takes calls.
struct OpenTurn {
    turn: Turn,
    batch: DrivenBatch,
    /// The ids of its calls: in a batch each comes once (CL-8).
    ids: HashSet<CallId, RandomState>,
    /// How many bytes of arguments it has: they are kept until it ends.
    bytes: usize,
    answered: usize,
    /// Whether it takes no more calls.
    is_closed: bool,
}

impl OpenTurn {
    fn begin(session: &Session) -> Self {
        let turn = session.turn().without_resend();
        let batch = turn.open_driven();
        Self { turn, batch, ids: HashSet::default(), bytes: 0, answered: 0, is_closed: false }
    }

    fn running(&self) -> usize {
        self.ids.len() - self.answered
    }

    fn takes(&self, id: &CallId, calls_max: usize) -> bool {
        !self.is_closed
            && self.ids.len() < CALLS_OPEN_MAX
            && self.bytes < BYTES_OPEN_MAX
            && self.running() < calls_max.min(IN_ENGINE_MAX)
            && !self.ids.contains(id)
    }
}

impl Turns {
    pub(super) fn new(session: Session, observer: Observer, recorded: Option<Arc<dyn Recorded>>) -> Self {
        let (queue, replayed) = (VecDeque::new(), VecDeque::new());
        Self { session, observer, recorded, open: None, queue, replayed }
    }

    /// Takes a call that is in order.
    pub(super) fn take(&mut self, call: Call) {
        self.queue.push_back(Queued::Call(call));
    }

    fn push(&mut self, call: Call) {
        let open = self.open.get_or_insert_with(|| OpenTurn::begin(&self.session));
        self.observer.given(&call, open.batch.number(), open.batch.len());
        open.ids.insert(call.id.clone());
        open.bytes += call.arguments.size();
        open.batch.push(call);
    }

    /// What comes from now on waits until all that has come is answered.
    pub(super) fn end_turn(&mut self) {
        match (&mut self.open, self.queue.is_empty()) {
            (None, true) => {}
            (Some(open), true) => open.is_closed = true,
            (_, false) if matches!(self.queue.back(), Some(Queued::TurnEnd)) => {}
            (_, false) => self.queue.push_back(Queued::TurnEnd),
        }
    }

    /// Waits for the next call that ends; for ever if none runs.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn next_ended(&mut self) -> Outcome {
        if let Some(outcome) = self.replayed.pop_front() {
            return outcome;
        }
        let Some(open) = &mut self.open else { return pending().await };
        let (_, outcome) = open.batch.next_end().await;
        open.answered += 1;
        if open.answered == open.ids.len() {
            // What is left is the engine's affair.
            self.open.take().into_iter().for_each(|open| open.batch.let_go());
        }
        outcome
    }

    /// How many calls are in the engine, or are answered without it.
    pub(super) fn running(&self) -> usize {
        self.open.as_ref().map_or(0, OpenTurn::running) + self.replayed.len()
    }

    /// Answers a call as an earlier life has, if that is recorded; returns it otherwise.
    fn replay(&mut self, call: Call) -> Option<Call> {
        let recorded = self.recorded.as_ref();
        match recorded.and_then(|recorded| recorded.answer(self.session.agent(), &call)) {
            Some(outcome) => {
                self.replayed.push_back(outcome);
                None
            }
            None => Some(call),
        }
    }

    /// Gives the open batch what has waited for it, so that at most so many calls are in the engine.
    pub(super) fn fill(&mut self, calls_max: usize) {
        while calls_max > 0
            && let Some(next) = self.queue.pop_front()
        {
            match next {
                Queued::TurnEnd => {
                    if let Some(open) = &mut self.open {
                        open.is_closed = true;
                    }
                }
                Queued::Call(call)
                    if !self.replayed.is_empty() && self.running() >= calls_max.min(IN_ENGINE_MAX) =>
                {
                    return self.queue.push_front(Queued::Call(call));
                }
                Queued::Call(call)
                    if self.open.as_ref().is_none_or(|open| open.takes(&call.id, calls_max)) =>
                {
                    if let Some(call) = self.replay(call) {
                        self.push(call);
                    }
                }
                waits @ Queued::Call(_) => return self.queue.push_front(waits),
            }
        }
    }

    /// Cancels a call; returns it if it has waited for its turn, and so has yet to be answered.
    pub(super) fn cancel(&mut self, id: &CallId) -> Option<Call> {
        let is_it = |queued: &Queued| matches!(queued, Queued::Call(call) if call.id == *id);
        if let Some(at) = self.queue.iter().position(is_it) {
            return self.queue.remove(at).and_then(Queued::call);
        }
        if let Some(open) = &self.open {
            open.turn.cancel_call(id.as_str());
        }
        None
    }

    /// Cancels all calls, which are still answered; returns those that have waited for their turn.
    pub(super) fn stop(&mut self) -> Vec<Call> {
        if let Some(open) = &self.open {
            open.turn.cancel();
        }
        self.queue.drain(..).filter_map(Queued::call).collect()
    }

    /// Cancels all calls, which nobody waits for any more; returns those that have waited for their turn.
    pub(super) fn leave(&mut self) -> Vec<Call> {
        self.open = None;
        self.replayed.clear();
        self.queue.drain(..).filter_map(Queued::call).collect()
    }
}

impl Queued {
    fn call(self) -> Option<Call> {
        match self {
            Self::Call(call) => Some(call),
            Self::TurnEnd => None,
        }
    }
}
