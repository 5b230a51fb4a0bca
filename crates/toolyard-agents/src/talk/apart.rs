//! Calls that wait for the calls they name, and for no others (AG-3).

use crate::{observe::Observer, recorded::Recorded};
use futures::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use std::{
    collections::{HashMap, HashSet, VecDeque},
    future::{pending, ready},
    sync::Arc,
};
use toolyard::{Call, CallId, Outcome, Session, Turn};

/// How many run at once.
const RUNNING_MAX: usize = 16;

/// The calls of an agent that stand outside of its batches.
pub(super) struct Apart {
    session: Session,
    observer: Observer,
    recorded: Option<Arc<dyn Recorded>>,
    waiting: Vec<Waiting>,
    /// Those that wait for nothing, and have yet to be begun.
    ready: VecDeque<Call>,
    running: FuturesUnordered<BoxFuture<'static, Outcome>>,
    /// Each running call is a turn of its own.
    turns: HashMap<CallId, Turn>,
}

struct Waiting {
    call: Call,
    /// The calls that have no answer yet.
    on: HashSet<CallId>,
}

impl Apart {
    pub(super) fn new(session: Session, observer: Observer, recorded: Option<Arc<dyn Recorded>>) -> Self {
        Self {
            session,
            observer,
            recorded,
            waiting: Vec::new(),
            ready: VecDeque::new(),
            running: FuturesUnordered::new(),
            turns: HashMap::new(),
        }
    }

    /// Takes a call that waits for these, which have no answer yet.
    pub(super) fn take(&mut self, call: Call, on: HashSet<CallId>) {
        match on.is_empty() {
            true => self.ready.push_back(call),
            false => self.waiting.push(Waiting { call, on }),
        }
    }

    fn start(&mut self, call: Call) {
        let recorded = self.recorded.as_ref();
        if let Some(outcome) = recorded.and_then(|recorded| recorded.answer(self.session.agent(), &call)) {
            return self.running.push(Box::pin(ready(outcome)));
        }
        let turn = self.session.turn().without_resend();
        let mut batch = turn.open_driven();
        self.observer.given(&call, batch.number(), 0);
        self.turns.insert(call.id.clone(), turn);
        batch.push(call);
        self.running.push(Box::pin(async move {
            let (_, outcome) = batch.next_end().await;
            batch.let_go(); // what is left is the engine's affair
            outcome
        }));
    }

    /// A call has been answered, for which others may wait.
    pub(super) fn answered(&mut self, id: &CallId) {
        self.turns.remove(id);
        if self.waiting.is_empty() {
            return;
        }
        for waiting in &mut self.waiting {
            waiting.on.remove(id);
        }
        let (ready, waiting) =
            std::mem::take(&mut self.waiting).into_iter().partition(|waiting| waiting.on.is_empty());
        self.waiting = waiting;
        self.ready.extend(Vec::into_iter(ready).map(|ready| ready.call));
    }

    /// How many run.
    pub(super) fn running(&self) -> usize {
        self.running.len()
    }

    /// Begins those that may, so that at most so many run.
    pub(super) fn fill(&mut self, calls_max: usize) {
        while self.running.len() < RUNNING_MAX.min(calls_max)
            && let Some(call) = self.ready.pop_front()
        {
            self.start(call);
        }
    }

    /// Waits for the next call that ends; for ever if none runs.
    ///
    /// # Cancel safety
    /// Dropping the future loses nothing.
    pub(super) async fn next_ended(&mut self) -> Outcome {
        match self.running.next().await {
            Some(outcome) => outcome,
            None => pending().await,
        }
    }

    /// Cancels a call; returns it if it has waited, and so has yet to be answered.
    pub(super) fn cancel(&mut self, id: &CallId) -> Option<Call> {
        if let Some(at) = self.waiting.iter().position(|waiting| waiting.call.id == *id) {
            return Some(self.waiting.remove(at).call);
        }
        if let Some(at) = self.ready.iter().position(|ready| ready.id == *id) {
            return self.ready.remove(at);
        }
        if let Some(turn) = self.turns.get(id) {
            turn.cancel();
        }
        None
    }

    /// Cancels all calls, which are still answered; returns those that have waited.
    pub(super) fn stop(&mut self) -> Vec<Call> {
        self.turns.values().for_each(|turn| turn.cancel());
        self.not_begun()
    }

    /// Cancels all calls, which nobody waits for any more; returns those that have waited.
    pub(super) fn leave(&mut self) -> Vec<Call> {
        self.running.clear();
        self.turns.clear();
        self.not_begun()
    }

    fn not_begun(&mut self) -> Vec<Call> {
        self.waiting.drain(..).map(|waiting| waiting.call).chain(self.ready.drain(..)).collect()
    }
}
