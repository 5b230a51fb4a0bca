//! What the batches of a session share.

use super::SessionOptions;
use crate::{
    admission::{LeaseId, Need, Scope, UnitId},
    batch::{BatchState, Stop},
    engine::EngineCore,
    registry::ToolEntry,
};
use foldhash::HashMap;
use slab::Slab;
use std::sync::{
    Arc, Mutex, MutexGuard, Once, PoisonError, Weak,
    atomic::{AtomicU64, Ordering},
};
use toolyard_core::{
    AgentPath, CallId, Caller, Event, EventKind, PathScope, Resources, SessionId, ToolClass,
};

use crate::events::Sequence;

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

/// A session from inside.
pub(crate) struct SessionCore {
    pub(crate) id: SessionId,
    pub(crate) agent: AgentPath,
    pub(crate) engine: Arc<EngineCore>,
    /// The session's number in the engine: names may repeat, numbers do not.
    pub(crate) number: u64,
    /// The number of the root session of its tree.
    pub(crate) root: u64,
    pub(crate) resources: Arc<Resources>,
    pub(crate) scope: Option<Arc<dyn PathScope>>,
    serial: LeaseId,
    concurrent: UnitId,
    cap: Option<UnitId>,
    tools: Mutex<HashMap<Arc<str>, ToolUnit>>,
    numbers: Arc<Numbers>,
    announced: Once,
    open: Mutex<Open>,
}

/// What is counted under a session's name: a session that is opened while another of its name closes goes on from
/// there, so the numbers in its events never come twice.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    sequence: Sequence,
    turns: AtomicU64,
    batches: AtomicU64,
}

/// What bounds a tool's calls in this agent.
#[derive(Clone, Copy)]
struct ToolUnit {
    id: UnitId,
    width: usize,
}

/// The batches in the air.
#[derive(Default)]
struct Open {
    batches: Slab<Weak<BatchState>>,
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
        let most = options.max_in_flight.or(engine.max_in_flight);
        Arc::new(Self {
            id,
            agent: AgentPath::root(),
            engine: engine.clone(),
            number,
            root: number,
            resources: match options.resources.is_empty() {
                true => engine.resources.clone(),
                false => Arc::new(engine.resources.overlaid(&options.resources)),
            },
            scope: options.scope.or_else(|| engine.scope.clone()),
            serial: admission.open_lease(Scope::Tree),
            concurrent: admission.open_class(ToolClass::Concurrent),
            cap: most.map(|most| admission.open_session(most.get())),
            tools: Mutex::default(),
            numbers,
            announced: Once::new(),
            open: Mutex::default(),
        })
    }

    /// Tells that the session has been opened, before anything else of it and once.
    pub(crate) fn announce(&self) {
        self.announced.call_once(|| self.emit_lazily(|| EventKind::SessionOpened, Where::default));
    }

    pub(crate) fn caller(&self) -> Caller<'_> {
        Caller::new(&self.id, &self.agent)
    }

    pub(crate) fn next_turn(&self) -> u64 {
        self.numbers.turns.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn next_batch(&self) -> u64 {
        self.numbers.batches.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What a call of this tool needs to run (CC-1).
    pub(crate) fn need(&self, entry: &ToolEntry, class: ToolClass) -> Need {
        let tool = entry.spec().max_concurrency.map(|most| self.tool_unit(entry, most.get()));
        match class {
            ToolClass::Read => Need::of(self.engine.read, tool, self.cap),
            ToolClass::Serial => Need::serial(self.serial, tool, self.cap),
            ToolClass::Concurrent => Need::of(self.concurrent, tool, self.cap),
        }
    }

    /// The unit that bounds a tool in this agent, opened with its first call and as wide as the tool that has
    /// the name now says: one that was replaced has no word on it any more (CL-8).
    fn tool_unit(&self, entry: &ToolEntry, width: usize) -> UnitId {
        let admission = &self.engine.admission;
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(unit) = tools.get_mut(entry.name()) else {
            let id = admission.open_tool(width);
            tools.insert(entry.shared_name(), ToolUnit { id, width });
            return id;
        };
        let id = unit.id;
        if unit.width == width || !self.engine.registry.is_current(entry) {
            return id;
        }
        // Resized under the lock, that the width noted is the one in force; started outside of it.
        unit.width = width;
        let granted = admission.resize_unit(id, width);
        drop(tools);
        granted.start();
        id
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
        let now = self.engine.clock.now();
        let mut event = Event::new(self.id.clone(), self.agent.clone(), kind);
        event.wall_ms = self.engine.clock.wall_ms(now);
        event.mono_us = self.engine.clock.mono_us(now);
        (event.turn, event.batch, event.run) = (place.turn, place.batch, place.run);
        (event.call_id, event.index, event.attempt) = (place.call_id, place.index, place.attempt);
        self.numbers.sequence.publish(&self.engine.bus, event);
    }

    fn open_batches(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a batch where a cancel of the session finds it, until [`forget`](Self::forget) is told its place; a
    /// session that was cancelled stops it at once.
    pub(crate) fn register(&self, batch: &Arc<BatchState>) {
        let stopped = {
            let mut open = self.open_batches();
            batch.registered_at(open.batches.insert(Arc::downgrade(batch)));
            open.stopped
        };
        if let Some(why) = stopped {
            batch.stop(why);
        }
    }

    pub(crate) fn forget(&self, place: usize) {
        self.open_batches().batches.remove(place);
    }

    /// The batches in the air.
    pub(crate) fn batches(&self) -> Vec<Arc<BatchState>> {
        self.open_batches().batches.iter().filter_map(|(_, batch)| batch.upgrade()).collect()
    }

    /// Whether the session takes no more batches.
    pub(crate) fn is_stopped(&self) -> bool {
        self.open_batches().stopped.is_some()
    }

    /// Stops every batch, those in the air and those to come.
    pub(crate) fn stop(&self, why: Stop) {
        self.open_batches().stopped.get_or_insert(why);
        self.batches().iter().for_each(|batch| batch.stop(why));
    }
}

impl Drop for SessionCore {
    fn drop(&mut self) {
        self.emit_lazily(|| EventKind::SessionClosed, Where::default);
        let tools = std::mem::take(self.tools.get_mut().unwrap_or_else(PoisonError::into_inner));
        let units = tools.into_values().map(|unit| unit.id).chain([self.concurrent]).chain(self.cap);
        self.engine.admission.close_units(units);
        self.engine.admission.close_lease(self.serial);
        self.engine.forget(&self.id);
    }
}
