//! The state that the batches of a session share.

use super::approvals::Approvals;
use super::fork::ForkPolicy;
use super::in_flight::InFlight;
use super::options::PreparedOptions;
use super::permissions::Permissions;
use super::shared_questions::SharedQuestions;
use super::tree::{Numbers, Tree};
use super::units::{ConcurrentPool, Resized, ToolUnits};
use crate::{
    admission::{LeaseId, Need, Reach, UnitId},
    batch::{BatchState, Flight, ResultRoom, Stop, TurnOf},
    budget::Allowance,
    engine::EngineCore,
    keys::{KeptResult, Keys},
    nesting::{self, CallGone, CallRef},
    redact::GivenMarks,
    registry::ToolEntry,
    unwind::Contained,
};
use slab::Slab;
use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak},
};
use toolyard_core::{
    AgentPath, Budget, CallId, Caller, Event, EventKind, LimitScope, PathScope, Placement, Resources,
    SessionId, ToolClass,
};

/// The place of an event in its session.
#[derive(Debug, Default)]
pub(crate) struct EventPlace {
    pub(crate) turn: Option<u64>,
    pub(crate) batch: Option<u64>,
    pub(crate) run: Option<u32>,
    pub(crate) call_id: Option<CallId>,
    pub(crate) index: Option<u32>,
    pub(crate) attempt: Option<u32>,
}

/// The engine's side of a session or of a fork.
pub(crate) struct SessionCore {
    pub(crate) id: SessionId,
    pub(crate) agent: AgentPath,
    pub(crate) engine: Arc<EngineCore>,
    /// The session it was forked from, and how.
    parent: Option<Parent>,
    /// The fork depth; 0 for the root session.
    pub(crate) depth: u8,
    tree: Arc<Tree>,
    pub(crate) resources: Arc<Resources>,
    pub(crate) scope: Option<Contained<Arc<dyn PathScope>>>,
    /// What it may do, within the policy.
    pub(crate) permissions: Arc<Permissions>,
    concurrent: Arc<ConcurrentPool>,
    max_in_flight: Option<NonZeroUsize>,
    cap: Option<UnitId>,
    /// What its calls draw on besides the allowances of its turns.
    allowance: Option<Arc<Allowance>>,
    tools: ToolUnits,
    announced: Once,
    open: Mutex<Open>,
}

/// A fork's link to its parent.
struct Parent {
    session: Arc<SessionCore>,
    /// Its index among the forks of that session.
    place: usize,
    /// The call whose handler made it.
    made_by: Option<(Weak<BatchState>, u32)>,
}

/// What is in flight.
#[derive(Default)]
struct Open {
    batches: InFlight<BatchState>,
    forks: Slab<Weak<SessionCore>>,
    stopped: Option<Stop>,
}

impl SessionCore {
    /// Opens a root session. Runs no code of the embedder.
    pub(crate) fn open(
        engine: &Arc<EngineCore>,
        number: u64,
        id: SessionId,
        options: PreparedOptions,
        numbers: Arc<Numbers>,
    ) -> Arc<Self> {
        let admission = &engine.admission;
        let PreparedOptions { max_in_flight, tree_cap, weight, budgets, resources, scope, permissions } =
            options;
        let results_max = engine.gate.limits.results_session_bytes_max;
        let tree = Tree::new(number, tree_cap, weight, budgets, numbers, results_max, admission);
        Arc::new(Self {
            id,
            agent: AgentPath::root(),
            engine: engine.clone(),
            parent: None,
            depth: 0,
            allowance: tree.spending.agent([]),
            tree,
            resources,
            scope,
            permissions,
            concurrent: ConcurrentPool::new(admission.clone()),
            max_in_flight,
            cap: max_in_flight.map(|max| admission.open_session(max.get())),
            tools: ToolUnits::new(admission.clone(), Reach::Agent),
            announced: Once::new(),
            open: Mutex::default(),
        })
    }

    /// Forks `parent` (CL-7). Pools and tool limits open only when they are first needed.
    pub(super) fn fork(parent: &Arc<Self>, policy: ForkPolicy, made_by: Option<CallRef>) -> Arc<Self> {
        let (engine, tree) = (parent.engine.clone(), parent.tree.clone());
        let agent = AgentPath::from(format!("{}/{}", parent.agent, tree.numbers.next_fork()));
        let max_in_flight = policy.max_in_flight.or(parent.max_in_flight);
        let concurrent = match policy.shares_concurrent {
            true => parent.concurrent.clone(),
            false => ConcurrentPool::new(engine.admission.clone()),
        };
        // A sub-agent made by a handler also draws on the turn of that handler's call, which may be another session's.
        let above = made_by.as_ref().and_then(|call| call.batch.allowance());
        let allowance = tree.spending.agent(above.into_iter().chain(parent.allowance.as_ref()));
        let place = parent.open_now().forks.insert(Weak::new());
        let made_by = made_by.map(|call| (Arc::downgrade(&call.batch), call.index));
        let fork = Arc::new(Self {
            id: parent.id.clone(),
            agent,
            parent: Some(Parent { session: parent.clone(), place, made_by }),
            depth: parent.depth + 1,
            resources: parent.resources.clone(),
            scope: parent.scope.clone(),
            permissions: parent.permissions.fork(policy.narrowing),
            concurrent,
            max_in_flight,
            cap: max_in_flight.map(|max| engine.admission.open_session(max.get())),
            tools: ToolUnits::new(engine.admission.clone(), Reach::Agent),
            announced: Once::new(),
            open: Mutex::default(),
            allowance,
            tree,
            engine,
        });
        let stopped = {
            let mut open = parent.open_now();
            open.forks[place] = Arc::downgrade(&fork);
            open.stopped
        };
        parent.emit_lazily(|| EventKind::AgentForked { child: fork.agent.to_string() }, EventPlace::default);
        if let Some(why) = stopped {
            fork.stop(why);
        }
        fork
    }

    /// The call that owns what is dispatched and forked here: the call whose handler runs on this task, else the call
    /// whose handler made this fork (CC-7b). It may have ended, and owns it all the same: then it is refused.
    ///
    /// # Errors
    /// [`CallGone`] if that call ended so long ago that its batch is gone.
    pub(crate) fn caller_call(&self) -> Result<Option<CallRef>, CallGone> {
        if let Some(call) = nesting::current() {
            return Ok(Some(call));
        }
        match self.parent.as_ref().and_then(|parent| parent.made_by.as_ref()) {
            None => Ok(None),
            Some((batch, index)) => {
                let batch = batch.upgrade().ok_or(CallGone)?;
                Ok(Some(CallRef { batch, index: *index }))
            }
        }
    }

    /// Whether it knows of a tool.
    pub(crate) fn sees(&self, entry: &ToolEntry) -> bool {
        self.permissions.sees(entry, self.depth)
    }

    /// The answers remembered in its tree, and the questions that wait for one.
    pub(crate) fn approvals(&self) -> &Arc<Approvals> {
        &self.tree.approvals
    }

    /// The open questions that calls of the tree share.
    pub(crate) fn questions(&self) -> &Arc<SharedQuestions> {
        &self.tree.questions
    }

    /// The number of the root session of its tree.
    pub(crate) fn root(&self) -> u64 {
        self.tree.root
    }

    /// Announces the session once, before any other event of it.
    pub(crate) fn announce(&self) {
        self.announced.call_once(|| self.emit_lazily(|| EventKind::SessionOpened, EventPlace::default));
    }

    pub(crate) fn caller(&self) -> Caller<'_> {
        Caller::new(&self.id, &self.agent).in_role(self.permissions.role())
    }

    pub(crate) fn next_turn(&self) -> u64 {
        self.tree.numbers.next_turn()
    }

    /// A turn with this number, of which the batch is all.
    pub(crate) fn turn_of(&self, number: u64) -> TurnOf {
        TurnOf { number, is_whole: true, allowance: self.turn_allowance() }
    }

    /// The allowance of a new turn.
    pub(crate) fn turn_allowance(&self) -> Option<Arc<Allowance>> {
        self.tree.spending.turn(self.allowance.as_ref())
    }

    /// Counts a handler of this tree as parked; `false` if `max` of them are (CC-4).
    pub(crate) fn park_in_tree(&self, max: usize) -> bool {
        self.tree.park(max)
    }

    /// Counts one parked handler of this tree less.
    pub(crate) fn unpark_in_tree(&self) {
        self.tree.unpark();
    }

    /// What is left in the allowances that its calls draw on, except those of turns and tools.
    pub(crate) fn budget_left(&self) -> Budget {
        self.allowance.as_ref().map_or(Budget::UNLIMITED, |allowance| allowance.remaining())
    }

    /// The marks that the agents of its tree were given in place of secrets.
    pub(crate) fn given_marks(&self) -> &GivenMarks {
        &self.tree.given_marks
    }

    /// The memory of the results of its tree.
    pub(crate) fn result_room(&self) -> &ResultRoom {
        &self.tree.results
    }

    /// The idempotency keys of its tree.
    pub(crate) fn keys(&self) -> &Keys<Arc<Flight>, Arc<KeptResult>> {
        &self.tree.keys
    }

    /// The allowance of a tool's calls.
    pub(crate) fn tool_allowance(&self, entry: &ToolEntry) -> Option<Arc<Allowance>> {
        self.tree.spending.tool(entry)
    }

    pub(crate) fn next_batch(&self) -> u64 {
        self.tree.numbers.next_batch()
    }

    /// What a call of this tool needs to run (CC-1). If its limit was resized by this, the caller finishes that once it
    /// holds no lock.
    pub(crate) fn need(&self, entry: &ToolEntry, class: ToolClass) -> (Need, Option<Box<Resized<'_>>>) {
        let (tool, resized) = match entry.spec().max_concurrency {
            None => (None, None),
            Some(max) => {
                let (unit, resized) = self.tool_unit(entry, max);
                (Some(unit), resized)
            }
        };
        let need = match class {
            ToolClass::Read => Need::of(self.engine.read, tool, self.cap),
            ToolClass::Serial => Need::serial(self.serial_scope(entry), tool, self.cap),
            ToolClass::Concurrent => Need::of(self.concurrent.unit(), tool, self.cap),
        };
        let need = match entry.spec().placement {
            Placement::Blocking => need.on_thread(self.engine.threads),
            Placement::Task | Placement::Inline => need,
        };
        let need = match self.tree.cap {
            None => need,
            Some(cap) => need.in_tree(cap),
        };
        (need, resized)
    }

    /// The lease of a serial call: its tool's named scope, else the tree's (CC-8).
    fn serial_scope(&self, entry: &ToolEntry) -> LeaseId {
        entry.spec().serial_scope.as_ref().map_or(self.tree.serial, |name| self.engine.scopes.lease(name))
    }

    fn tool_unit(&self, entry: &ToolEntry, max: NonZeroUsize) -> (UnitId, Option<Box<Resized<'_>>>) {
        let units = match entry.spec().limit_scope {
            LimitScope::Agent => &self.tools,
            LimitScope::Tree => &self.tree.tools,
            LimitScope::Engine => &self.engine.tools,
        };
        units.unit(entry, max.get(), &self.engine)
    }

    /// Emits an event of this session, built only if there is a listener.
    #[inline]
    pub(crate) fn emit_lazily(&self, kind: impl FnOnce() -> EventKind, place: impl FnOnce() -> EventPlace) {
        if self.engine.bus.is_listening() {
            self.emit(kind(), place());
        }
    }

    // Kept out of line for engines without listeners.
    #[inline(never)]
    fn emit(&self, mut kind: EventKind, place: EventPlace) {
        if let Some(redactor) = &self.engine.redactor {
            redactor.event(&mut kind);
        }
        if let Some(details) = kind.details_mut() {
            details.cut();
        }
        let mut event = Event::new(self.id.clone(), self.agent.clone(), kind);
        (event.turn, event.batch, event.run) = (place.turn, place.batch, place.run);
        (event.call_id, event.index, event.attempt) = (place.call_id, place.index, place.attempt);
        self.tree.numbers.sequence.publish(&self.engine.bus, &self.engine.clock, event);
    }

    fn open_now(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a batch so that a cancel of the session reaches it. If the session has already been stopped, so is
    /// the batch.
    pub(crate) fn register(&self, batch: &Arc<BatchState>) {
        let stopped = {
            let mut open = self.open_now();
            open.batches.push(batch);
            open.stopped
        };
        if let Some(why) = stopped.filter(|why| reaches(*why, batch)) {
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
        let forks = open.forks.iter().filter_map(|(_, fork)| fork.upgrade()).collect();
        (batches, forks)
    }

    /// Why the session takes no more batches; `None` while it does.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.open_now().stopped
    }

    /// Stops every batch, present and future, here and in every fork (SC-1).
    pub(crate) fn stop(&self, why: Stop) {
        let mut forks = self.stop_own(why);
        while let Some(fork) = forks.pop() {
            forks.extend(fork.stop_own(why));
        }
    }

    fn stop_own(&self, why: Stop) -> Vec<Arc<Self>> {
        self.open_now().stopped.get_or_insert(why);
        let (batches, forks) = self.in_flight();
        batches.iter().filter(|batch| reaches(why, batch)).for_each(|batch| batch.stop(why));
        forks
    }
}

/// Whether a stop of its session applies to this batch. A cancel leaves batches that are left to a flight.
fn reaches(why: Stop, batch: &BatchState) -> bool {
    why != Stop::Cancelled || !batch.is_left_to_a_flight()
}

impl Drop for SessionCore {
    fn drop(&mut self) {
        self.engine.admission.close_units(self.cap);
        match &self.parent {
            Some(Parent { session, place, .. }) => {
                session.open_now().forks.remove(*place);
                session.emit_lazily(
                    || EventKind::AgentJoined { child: self.agent.to_string() },
                    EventPlace::default,
                );
            }
            None => {
                self.emit_lazily(|| EventKind::SessionClosed, EventPlace::default);
                self.engine.forget(&self.id);
            }
        }
    }
}
