//! What the batches of a session share.

use super::SessionOptions;
use super::approvals::Approvals;
use super::flying::Flying;
use super::fork::ForkPolicy;
use super::may::May;
use super::tree::{Numbers, Tree};
use super::units::{ConcurrentPool, ToolUnits};
use crate::{
    admission::{LeaseId, Need, UnitId},
    batch::{BatchState, Flight, KeptResult, Stop, TurnOf},
    budget::Allowance,
    engine::EngineCore,
    keys::Keys,
    nesting::{self, CallRef},
    registry::ToolEntry,
};
use slab::Slab;
use std::{
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak},
};
use toolyard_core::{
    AgentPath, Budget, CallId, Caller, Event, EventKind, LimitScope, PathScope, Resources, SessionId,
    ToolClass,
};

/// Where in a session an event belongs.
#[derive(Debug, Default)]
pub(crate) struct Where {
    pub(crate) turn: Option<u64>,
    pub(crate) batch: Option<u64>,
    pub(crate) run: Option<u32>,
    pub(crate) call_id: Option<CallId>,
    pub(crate) index: Option<u32>,
    pub(crate) attempt: Option<u32>,
}

/// A session, or a fork of one, from inside.
pub(crate) struct SessionCore {
    pub(crate) id: SessionId,
    pub(crate) agent: AgentPath,
    pub(crate) engine: Arc<EngineCore>,
    /// What it is a fork of.
    parent: Option<Parent>,
    /// How deep a fork it is; 0 for the session itself.
    pub(crate) depth: u8,
    tree: Arc<Tree>,
    pub(crate) resources: Arc<Resources>,
    pub(crate) scope: Option<Arc<dyn PathScope>>,
    /// What it may, beside what the policy says.
    pub(crate) may: Arc<May>,
    concurrent: Arc<ConcurrentPool>,
    max_in_flight: Option<NonZeroUsize>,
    cap: Option<UnitId>,
    /// What its calls draw on beside what its turns have.
    allowance: Option<Arc<Allowance>>,
    tools: ToolUnits,
    announced: Once,
    open: Mutex<Open>,
}

/// What a fork hangs under.
struct Parent {
    session: Arc<SessionCore>,
    /// Its place among the forks of that session.
    place: usize,
    /// The call whose handler made it.
    made_by: Option<(Weak<BatchState>, u32)>,
}

/// What is in the air.
#[derive(Default)]
struct Open {
    batches: Flying<BatchState>,
    forks: Slab<Weak<SessionCore>>,
    stopped: Option<Stop>,
}

impl SessionCore {
    pub(crate) fn open(
        engine: &Arc<EngineCore>,
        number: u64,
        id: SessionId,
        options: SessionOptions,
        numbers: Arc<Numbers>,
    ) -> Arc<Self> {
        let admission = &engine.admission;
        let max_in_flight = options.max_in_flight.or(engine.max_in_flight);
        let tree_cap = options.tree_max_in_flight.or(engine.tree_max_in_flight);
        let budgets = options.budgets.unwrap_or(engine.budgets);
        let scope = options.scope.or_else(|| engine.scope.clone());
        let root = scope.as_deref().map(PathScope::root);
        let confirmations = options.confirmations.as_ref().unwrap_or(&engine.gate.confirmations);
        let confirmations = (options.confirmations.is_some() || confirmations.trusts_any())
            .then(|| confirmations.clone().in_workspace(root));
        let may = May::root(engine.gate.capabilities.as_ref(), options.narrowing, confirmations);
        let tree = Tree::new(number, tree_cap, options.priority.weight(), budgets, numbers, admission);
        Arc::new(Self {
            id,
            agent: AgentPath::root(),
            engine: engine.clone(),
            parent: None,
            depth: 0,
            allowance: tree.spending.agent(None),
            tree,
            resources: match options.resources.is_empty() {
                true => engine.resources.clone(),
                false => Arc::new(engine.resources.overlaid(&options.resources)),
            },
            scope,
            may: Arc::new(may),
            concurrent: ConcurrentPool::new(admission.clone()),
            max_in_flight,
            cap: max_in_flight.map(|most| admission.open_session(most.get())),
            tools: ToolUnits::new(admission.clone()),
            announced: Once::new(),
            open: Mutex::default(),
        })
    }

    /// A fork of `parent` (CL-7). It opens nothing before it needs it.
    pub(super) fn fork(parent: &Arc<Self>, policy: ForkPolicy, made_by: Option<CallRef>) -> Arc<Self> {
        let (engine, tree) = (parent.engine.clone(), parent.tree.clone());
        let agent = AgentPath::from(format!("{}/{}", parent.agent, tree.numbers.next_fork()));
        let max_in_flight = policy.max_in_flight.or(parent.max_in_flight);
        let concurrent = match policy.shares_concurrent {
            true => parent.concurrent.clone(),
            false => ConcurrentPool::new(engine.admission.clone()),
        };
        // What the handler that makes it may spend in its turn is what its sub-agent may.
        let above = made_by.as_ref().and_then(|call| call.batch.allowance().cloned());
        let allowance = tree.spending.agent(above.as_ref().or(parent.allowance.as_ref()));
        let place = parent.open_now().forks.insert(Weak::new());
        let made_by = made_by.map(|call| (Arc::downgrade(&call.batch), call.index));
        let fork = Arc::new(Self {
            id: parent.id.clone(),
            agent,
            parent: Some(Parent { session: parent.clone(), place, made_by }),
            depth: parent.depth + 1,
            resources: parent.resources.clone(),
            scope: parent.scope.clone(),
            may: parent.may.fork(policy.narrowing),
            concurrent,
            max_in_flight,
            cap: max_in_flight.map(|most| engine.admission.open_session(most.get())),
            tools: ToolUnits::new(engine.admission.clone()),
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
        parent.emit_lazily(|| EventKind::AgentForked { child: fork.agent.to_string() }, Where::default);
        if let Some(why) = stopped {
            fork.stop(why);
        }
        fork
    }

    /// The call that what is dispatched here belongs to: that of the handler whose task this is, else that of the
    /// handler which made this fork (CC-7b).
    pub(crate) fn caller_call(&self) -> Option<CallRef> {
        nesting::current().or_else(|| {
            let (batch, index) = self.parent.as_ref()?.made_by.as_ref()?;
            let call = CallRef { batch: batch.upgrade()?, index: *index };
            call.runs().then_some(call)
        })
    }

    /// Whether it knows of a tool.
    pub(crate) fn sees(&self, entry: &ToolEntry) -> bool {
        self.may.sees(entry, self.depth)
    }

    /// What was answered in its tree for more than one call.
    pub(crate) fn approvals(&self) -> &Arc<Approvals> {
        &self.tree.approvals
    }

    /// The number of the root session of its tree.
    pub(crate) fn root(&self) -> u64 {
        self.tree.root
    }

    /// Tells that the session has been opened, before anything else of it and once.
    pub(crate) fn announce(&self) {
        self.announced.call_once(|| self.emit_lazily(|| EventKind::SessionOpened, Where::default));
    }

    pub(crate) fn caller(&self) -> Caller<'_> {
        Caller::new(&self.id, &self.agent).in_role(self.may.role())
    }

    pub(crate) fn next_turn(&self) -> u64 {
        self.tree.numbers.next_turn()
    }

    /// A whole turn of this number.
    pub(crate) fn turn_of(&self, number: u64) -> TurnOf {
        TurnOf { number, is_whole: true, allowance: self.turn_allowance() }
    }

    /// What a new turn may spend.
    pub(crate) fn turn_allowance(&self) -> Option<Arc<Allowance>> {
        self.tree.spending.turn(self.allowance.as_ref())
    }

    /// What is left of what its calls draw on, but for turns and tools.
    pub(crate) fn budget_left(&self) -> Budget {
        self.allowance.as_ref().map_or(Budget::UNLIMITED, |allowance| allowance.left_in_all())
    }

    /// What the calls of its tree that have a key came to.
    pub(crate) fn keys(&self) -> &Keys<Arc<Flight>, Arc<KeptResult>> {
        &self.tree.keys
    }

    /// What the calls of a tool may spend.
    pub(crate) fn tool_allowance(&self, entry: &ToolEntry) -> Option<Arc<Allowance>> {
        self.tree.spending.tool(entry)
    }

    pub(crate) fn next_batch(&self) -> u64 {
        self.tree.numbers.next_batch()
    }

    /// What a call of this tool needs to run (CC-1).
    pub(crate) fn need(&self, entry: &ToolEntry, class: ToolClass) -> Need {
        let tool = entry.spec().max_concurrency.map(|most| self.tool_unit(entry, most));
        let need = match class {
            ToolClass::Read => Need::of(self.engine.read, tool, self.cap),
            ToolClass::Serial => Need::serial(self.serial_scope(entry), tool, self.cap),
            ToolClass::Concurrent => Need::of(self.concurrent.unit(), tool, self.cap),
        };
        match self.tree.cap {
            None => need,
            Some(cap) => need.in_tree(cap),
        }
    }

    /// The lease of a serial call: of its tool's named scope, else of the tree (CC-8).
    fn serial_scope(&self, entry: &ToolEntry) -> LeaseId {
        entry.spec().serial_scope.as_ref().map_or(self.tree.serial, |name| self.engine.scopes.lease(name))
    }

    fn tool_unit(&self, entry: &ToolEntry, most: NonZeroUsize) -> UnitId {
        let units = match entry.spec().limit_scope {
            LimitScope::Agent => &self.tools,
            LimitScope::Tree => &self.tree.tools,
            LimitScope::Engine => &self.engine.tools,
        };
        units.unit(entry, most.get(), &self.engine)
    }

    /// Emits an event of this session, built only if anybody would see it.
    #[inline]
    pub(crate) fn emit_lazily(&self, kind: impl FnOnce() -> EventKind, place: impl FnOnce() -> Where) {
        if self.engine.bus.is_listening() {
            self.emit(kind(), place());
        }
    }

    // Out of the way of those to whom nobody listens.
    #[inline(never)]
    fn emit(&self, kind: EventKind, place: Where) {
        let mut event = Event::new(self.id.clone(), self.agent.clone(), kind);
        (event.turn, event.batch, event.run) = (place.turn, place.batch, place.run);
        (event.call_id, event.index, event.attempt) = (place.call_id, place.index, place.attempt);
        self.tree.numbers.sequence.publish(&self.engine.bus, &self.engine.clock, event);
    }

    fn open_now(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a batch where a cancel of the session finds it; a session that was cancelled stops it at once.
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

    /// The batches in the air, those of its forks included.
    pub(crate) fn batches(&self) -> Vec<Arc<BatchState>> {
        let (mut batches, mut forks) = self.in_air();
        // A loop and no recursion, here and below: forks are at most so deep, but any number wide.
        while let Some(fork) = forks.pop() {
            let (more, below) = fork.in_air();
            batches.extend(more);
            forks.extend(below);
        }
        batches
    }

    fn in_air(&self) -> (Vec<Arc<BatchState>>, Vec<Arc<Self>>) {
        let open = self.open_now();
        let batches = open.batches.in_air().collect();
        let forks = open.forks.iter().filter_map(|(_, fork)| fork.upgrade()).collect();
        (batches, forks)
    }

    /// Why the session takes no more batches, if it takes none.
    pub(crate) fn stopped(&self) -> Option<Stop> {
        self.open_now().stopped
    }

    /// Stops every batch, those in the air and those to come, here and in every fork (SC-1).
    pub(crate) fn stop(&self, why: Stop) {
        let mut forks = self.stop_own(why);
        while let Some(fork) = forks.pop() {
            forks.extend(fork.stop_own(why));
        }
    }

    fn stop_own(&self, why: Stop) -> Vec<Arc<Self>> {
        self.open_now().stopped.get_or_insert(why);
        let (batches, forks) = self.in_air();
        batches.iter().filter(|batch| reaches(why, batch)).for_each(|batch| batch.stop(why));
        forks
    }
}

/// Whether a stop of its session is for this batch.
fn reaches(why: Stop, batch: &BatchState) -> bool {
    why != Stop::Cancelled || !batch.is_left_to_a_flight()
}

impl Drop for SessionCore {
    fn drop(&mut self) {
        self.engine.admission.close_units(self.cap);
        match &self.parent {
            Some(Parent { session, place, .. }) => {
                session.open_now().forks.remove(*place);
                session
                    .emit_lazily(|| EventKind::AgentJoined { child: self.agent.to_string() }, Where::default);
            }
            None => {
                self.emit_lazily(|| EventKind::SessionClosed, Where::default);
                self.engine.forget(&self.id);
            }
        }
    }
}
