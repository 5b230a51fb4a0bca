//! The state that the batches of a session share.

use crate::{
    agent::{Agent, ForkParts, Numbers, PreparedOptions},
    call::{
        batch::{BatchState, TurnOf},
        engine::EngineCore,
        flight::Flight,
        in_flight::{CallRef, WeakCall},
        records::SessionRecords,
        stop::Stop,
        weak_list::WeakList,
    },
    keys::{KeyBounds, Keys, RetainedResult},
    record::EventPlace,
};
use parking_lot::{Mutex, MutexGuard};
use slab::Slab;
use std::{
    ops::Deref,
    sync::{Arc, Weak},
};
use toolyard_core::{EventKind, SessionId};

/// The engine's side of a session or of a fork.
pub(crate) struct SessionCore {
    /// What its calls need of it.
    agent: Agent,
    pub(crate) engine: Arc<EngineCore>,
    /// The idempotency keys of its tree.
    keys: Arc<Keys<Arc<Flight>, RetainedResult>>,
    /// The session it was forked from, and how.
    parent: Option<Parent>,
    open: Mutex<Open>,
    /// What it has left with the recorder, if there is one.
    pub(super) records: Option<Box<SessionRecords>>,
}

/// A fork's link to its parent.
struct Parent {
    session: Arc<SessionCore>,
    /// Its index among the forks of that session.
    place: usize,
    /// The call whose handler made it.
    made_by: Option<WeakCall>,
}

/// What is in flight.
#[derive(Default)]
struct Open {
    batches: WeakList<BatchState>,
    forks: Slab<ForkPlace>,
    stopped: Option<Stop>,
    /// Where its cancel came from, if it has been cancelled, whatever stopped it first. Of several, the deepest.
    cancelled_at: Option<Depth>,
}

/// The fork depth of a session.
type Depth = u8;

/// A place among the forks of a session.
struct ForkPlace {
    /// The name that the fork was given.
    name: Option<Arc<str>>,
    /// `None` while the fork is being made. Once it cannot be upgraded, another thread is announcing its end.
    core: Option<Weak<SessionCore>>,
}

impl ForkPlace {
    fn use_of(&self) -> PlaceUse {
        let Some(core) = &self.core else { return PlaceUse::Taken(None) };
        match core.upgrade() {
            None => PlaceUse::Ending,
            Some(core) if core.has_outlived_its_call() => PlaceUse::Over(core),
            Some(core) => PlaceUse::Taken(Some(core)),
        }
    }
}

/// Whether a place among forks, and its name, is still somebody's. What is held is to be dropped outside of locks.
enum PlaceUse {
    Taken(Option<Arc<SessionCore>>),
    /// The call that made its fork is over, and the fork with it.
    Over(Arc<SessionCore>),
    /// The fork is gone, and its place is about to be.
    Ending,
}

/// How often a fork gives way to the end of another one, whose name it is to have. That takes as long as it takes to emit an
/// event.
const GIVES_WAY_MAX: usize = 100_000;

/// The name of a fork is taken: its parent has another fork of that name.
pub(crate) struct NameTaken;

impl Deref for SessionCore {
    type Target = Agent;

    fn deref(&self) -> &Agent {
        &self.agent
    }
}

impl SessionCore {
    /// Opens a root session. Runs no code of the embedder.
    pub(crate) fn open(
        engine: &Arc<EngineCore>,
        number: u64,
        id: SessionId,
        mut options: PreparedOptions,
        numbers: Arc<Numbers>,
    ) -> Arc<Self> {
        let records = options
            .terms
            .take()
            .map(|terms| SessionRecords::new(terms, options.is_named, options.is_resumed));
        Arc::new(Self {
            records,
            agent: Agent::root_of(&engine.services, number, id, options, numbers),
            engine: engine.clone(),
            keys: Arc::new(Keys::new(KeyBounds::default())),
            parent: None,
            open: Mutex::default(),
        })
    }

    /// Forks `parent`: see [`Agent::fork`].
    pub(crate) fn fork(
        parent: &Arc<Self>,
        parts: ForkParts,
        made_by: Option<CallRef>,
    ) -> Result<Arc<Self>, NameTaken> {
        let place = parent.take_place(parts.name.clone())?;
        let records = parent
            .records
            .as_ref()
            .map(|above| SessionRecords::new(parts.terms(), parts.name.is_some(), above.is_resumed));
        let agent = parent.agent.fork(parts, made_by.as_ref().and_then(|call| call.batch.allowance()));
        let made_by = made_by.map(|call| call.at().downgrade());
        let fork = Arc::new(Self {
            agent,
            engine: parent.engine.clone(),
            keys: parent.keys.clone(),
            parent: Some(Parent { session: parent.clone(), place, made_by }),
            open: Mutex::default(),
            records,
        });
        fork.record_opening();
        let (stopped, cancelled_at) = {
            let mut open = parent.open_now();
            open.forks[place].core = Some(Arc::downgrade(&fork));
            (open.stopped, open.cancelled_at)
        };
        parent.emit_lazily(|| EventKind::AgentForked { child: fork.path.to_string() }, EventPlace::default);
        if let Some(why) = stopped {
            fork.stop_from(cancelled_at.unwrap_or(fork.depth), why);
        }
        Ok(fork)
    }

    /// Takes a place among the forks, unless the name is taken (SM-8).
    fn take_place(&self, name: Option<Arc<str>>) -> Result<usize, NameTaken> {
        for _ in 0..GIVES_WAY_MAX {
            match self.try_place(name.clone()) {
                Some(taken) => return taken,
                None => std::thread::yield_now(),
            }
        }
        Err(NameTaken)
    }

    /// The same; `None` while the end of the last fork of this name is being announced.
    fn try_place(&self, name: Option<Arc<str>>) -> Option<Result<usize, NameTaken>> {
        let mut held = Vec::new(); // dropped after the lock is released: a fork's end takes it too
        let mut open = self.open_now();
        let (mut is_taken, mut is_ending) = (false, false);
        for (_, fork) in open.forks.iter().filter(|(_, fork)| name.is_some() && fork.name == name) {
            match fork.use_of() {
                PlaceUse::Taken(core) => {
                    is_taken = true;
                    held.extend(core);
                }
                PlaceUse::Over(core) => held.push(core),
                PlaceUse::Ending => is_ending = true,
            }
        }
        match (is_taken, is_ending) {
            (true, _) => Some(Err(NameTaken)),
            (false, true) => None,
            (false, false) => Some(Ok(open.forks.insert(ForkPlace { name, core: None }))),
        }
    }

    /// The fork of this name, unless it has outlived the call that made it (SM-8).
    pub(crate) fn fork_named(&self, name: &str) -> Option<Arc<Self>> {
        let (_, forks) = self.in_flight();
        forks.into_iter().find(|fork| fork.path.name() == name && !fork.has_outlived_its_call())
    }

    /// Whether the handler whose call made it has ended: the fork has ended with it.
    fn has_outlived_its_call(&self) -> bool {
        self.made_by().is_some_and(|call| !call.upgrade().is_some_and(|call| call.runs()))
    }

    /// The session it was forked from.
    pub(super) fn parent(&self) -> Option<&Self> {
        Some(&self.parent.as_ref()?.session)
    }

    /// The call whose handler made it, if it is the fork of one.
    pub(super) fn made_by(&self) -> Option<&WeakCall> {
        self.parent.as_ref()?.made_by.as_ref()
    }

    /// A turn with this number, of which the batch is all.
    pub(crate) fn turn_of(&self, number: u64) -> TurnOf {
        TurnOf { number, is_whole: true, allowance: self.turn_allowance() }
    }

    /// The idempotency keys of its tree.
    pub(crate) fn keys(&self) -> &Keys<Arc<Flight>, RetainedResult> {
        &self.keys
    }

    fn open_now(&self) -> MutexGuard<'_, Open> {
        self.open.lock()
    }

    /// Registers a batch so that a cancel of the session reaches it. If the session has already been stopped, so is
    /// the batch.
    pub(crate) fn register(&self, batch: &Arc<BatchState>) {
        let (stopped, cancelled_at) = {
            let mut open = self.open_now();
            open.batches.push(batch);
            (open.stopped, open.cancelled_at)
        };
        if let Some(why) = stopped.filter(|why| reaches(*why, cancelled_at, batch)) {
            batch.stop(why);
        }
    }

    /// The batches in flight, including those of its forks.
    pub(crate) fn batches(&self) -> Vec<Arc<BatchState>> {
        let (mut batches, mut forks) = self.in_flight();
        // A loop instead of recursion, here and below: forks have bounded depth, but there may be any number side by
        // side.
        while let Some(fork) = forks.pop() {
            let (more, below) = fork.in_flight();
            batches.extend(more);
            forks.extend(below);
        }
        batches
    }

    fn in_flight(&self) -> (Vec<Arc<BatchState>>, Vec<Arc<Self>>) {
        let open = self.open_now();
        let batches = open.batches.iter().collect();
        let forks = open.forks.iter().filter_map(|(_, fork)| fork.core.as_ref()?.upgrade()).collect();
        (batches, forks)
    }

    /// Why the session takes no more batches; `None` while it does.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.open_now().stopped
    }

    /// Stops every batch, present and future, here and in every fork (SC-1).
    pub(crate) fn stop(&self, why: Stop) {
        self.stop_from(self.depth, why);
    }

    /// Passes on a stop of the session above it, or of itself, at this depth.
    fn stop_from(&self, depth: Depth, why: Stop) {
        let mut forks = self.stop_own(depth, why);
        while let Some(fork) = forks.pop() {
            forks.extend(fork.stop_own(depth, why));
        }
    }

    fn stop_own(&self, depth: Depth, why: Stop) -> Vec<Arc<Self>> {
        let cancelled_at = (why == Stop::Cancelled).then_some(depth);
        {
            let mut open = self.open_now();
            open.stopped.get_or_insert(why);
            open.cancelled_at = open.cancelled_at.max(cancelled_at);
        }
        let (batches, forks) = self.in_flight();
        let reached = batches.iter().filter(|batch| reaches(why, cancelled_at, batch));
        reached.for_each(|batch| batch.stop(why));
        forks
    }
}

/// Whether a stop of its session applies to this batch. A cancel leaves batches to a flight that it reaches itself.
fn reaches(why: Stop, cancelled_at: Option<Depth>, batch: &BatchState) -> bool {
    why != Stop::Cancelled || !cancelled_at.is_some_and(|depth| batch.is_left_to_a_flight(depth))
}

impl Drop for SessionCore {
    fn drop(&mut self) {
        self.agent.close();
        match &self.parent {
            Some(Parent { session, place, .. }) => {
                session.emit_lazily(
                    || EventKind::AgentJoined { child: self.path.to_string() },
                    EventPlace::default,
                );
                session.open_now().forks.remove(*place);
            }
            None => {
                self.emit_lazily(|| EventKind::SessionClosed, EventPlace::default);
                self.engine.forget(&self.id);
            }
        }
    }
}
