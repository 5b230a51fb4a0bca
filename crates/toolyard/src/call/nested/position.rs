//! Where a batch that a handler dispatched is in the tree of calls.

use crate::call::{engine::EngineCore, in_flight::CallRef};
use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize},
};
use tokio::time::Instant;
use toolyard_admission::EntryId;

/// The position of a batch that a handler dispatched.
pub(crate) struct Nested {
    /// The call whose handler dispatched it.
    pub(crate) call: CallRef,
    /// Its number among that handler's dispatches.
    pub(crate) child: usize,
    /// The nearest lease entry above it in its own engine; entry ids are only unique within an engine.
    pub(crate) lineage: Option<EntryId>,
    /// Whether a call above it has a lease entry, in any engine.
    pub(crate) is_under_lease: bool,
    pub(crate) depth: u32,
    /// The instant by which the call, and with it its own calls, must have ended (V3).
    pub(crate) deadline: Option<Instant>,
    /// How many runs have a call that is not quiescent.
    pub(super) active_runs: AtomicUsize,
    /// Whether a call of it has been listed as a zombie.
    pub(super) has_zombies: AtomicBool,
    pub(super) settled_reported: AtomicBool,
}

impl Nested {
    /// For a batch in this engine.
    pub(crate) fn new(call: CallRef, child: usize, runs: usize, engine: &Arc<EngineCore>) -> Self {
        let above = call.batch.nested.as_deref();
        let started = call.at().started();
        // A flight has the latest deadline of all its callers.
        let flight = call.at().flight_run_by();
        let deadline =
            flight.map_or(started.and_then(|started| started.deadline), |flight| flight.deadline());
        let holds_lease = started.is_some_and(|started| started.held.lineage(None).is_some());
        Self {
            lineage: lineage_in(engine, &call),
            is_under_lease: holds_lease || above.is_some_and(|above| above.is_under_lease),
            deadline,
            depth: above.map_or(0, |above| above.depth).saturating_add(1),
            call,
            child,
            active_runs: AtomicUsize::new(runs),
            has_zombies: AtomicBool::new(false),
            settled_reported: AtomicBool::new(false),
        }
    }
}

/// The nearest lease entry in this engine, of the call or of one above it.
fn lineage_in(engine: &Arc<EngineCore>, mut call: &CallRef) -> Option<EntryId> {
    loop {
        let above = call.batch.nested.as_deref();
        if Arc::ptr_eq(engine, &call.batch.session.engine) {
            let ancestors = above.and_then(|above| above.lineage);
            return call.at().started().map_or(ancestors, |call| call.held.lineage(ancestors));
        }
        call = &above?.call; // a handler of another engine dispatched here
    }
}
