//! Quiescence: calls are counted down in their runs, and a nested batch reports what it has reached to the call above
//! it.
//!
//! ```text
//!   call ended     ──► its run ──► the driver: the next run, or the end
//!   call quiescent ──► its run ──► its batch ──► the call that dispatched the batch ──► its run ──► ...
//! ```

use super::run::{Counted, Run, Step};
use super::state::BatchState;
use crate::{
    admission::EntryId,
    engine::EngineCore,
    nesting::{CallRef, Nest, Up},
};
use std::{
    future::poll_fn,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Poll,
};
use tokio::time::Instant;

/// The position of a batch that a handler dispatched.
pub(super) struct Nested {
    /// The call whose handler dispatched it.
    pub(super) call: CallRef,
    /// Its number among that handler's dispatches.
    pub(super) child: usize,
    /// The nearest lease entry above it in its own engine; entry ids are only unique within an engine.
    pub(super) lineage: Option<EntryId>,
    /// Whether a call above it has a lease entry, in any engine.
    pub(super) is_under_lease: bool,
    pub(super) depth: u8,
    /// The instant by which the call, and with it its own calls, must have ended (V3).
    pub(super) deadline: Option<Instant>,
    /// How many runs have a call that is not quiescent.
    active_runs: AtomicUsize,
    /// Whether a call of it has been listed as a zombie.
    has_zombies: AtomicBool,
    settled_told: AtomicBool,
}

impl Nested {
    /// For a batch in this engine.
    pub(super) fn new(call: CallRef, child: usize, runs: usize, engine: &Arc<EngineCore>) -> Self {
        let above = call.batch.nested.as_deref();
        let started = call.batch.started(call.index);
        // A flight has the latest deadline of all its callers.
        let flight = call.batch.flight_run_by(call.index);
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
            settled_told: AtomicBool::new(false),
        }
    }
}

/// The nearest lease entry in this engine, of the call or of one above it.
fn lineage_in(engine: &Arc<EngineCore>, mut call: &CallRef) -> Option<EntryId> {
    loop {
        let above = call.batch.nested.as_deref();
        if Arc::ptr_eq(engine, &call.batch.session.engine) {
            let ancestors = above.and_then(|above| above.lineage);
            return call.batch.started(call.index).map_or(ancestors, |call| call.held.lineage(ancestors));
        }
        call = &above?.call; // a handler of another engine dispatched here
    }
}

/// What a batch has reached.
#[derive(Debug, Clone, Copy)]
enum Came {
    /// All its calls are quiescent or listed zombies.
    Settled,
    /// All its calls are quiescent.
    ToRest,
}

impl BatchState {
    /// Counts a call down. The last call of a run wakes the driver, and the last result of the batch ends the turn.
    pub(super) fn count_down(&self, index: u32, ok: bool, step: Step) {
        if !ok {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        let counted = self.run_of(index).count_down(step);
        self.act_on(counted);
        if let Some(came) = self.came_to(counted) {
            let mut also = Vec::new();
            self.tell_up(came, &mut also);
            rise_all(also);
        }
    }

    fn act_on(&self, counted: Counted) {
        if counted.ended && self.run_has_ended() {
            self.tell_end();
        }
        if counted.ended || counted.rests {
            self.bell.ring();
        }
    }

    /// What a nested batch reaches by this step, if anything.
    fn came_to(&self, counted: Counted) -> Option<Came> {
        let nested = self.nested.as_ref()?;
        if counted.rests && nested.active_runs.fetch_sub(1, Ordering::AcqRel) == 1 {
            return Some(Came::ToRest);
        }
        let settled = nested.has_zombies.load(Ordering::Acquire)
            && self.runs.iter().all(Run::is_settled)
            && !nested.settled_told.swap(true, Ordering::AcqRel);
        settled.then_some(Came::Settled)
    }

    /// Reports to the call above what this batch has reached, and so on for the calls above that. A loop, not
    /// recursion: handlers nest to any depth.
    fn tell_up(&self, came: Came, also: &mut Vec<(CallRef, Up)>) {
        let (mut batch, mut came) = (self, came);
        while let Some(nested) = &batch.nested {
            let up = match came {
                Came::Settled => nested.call.child_settled(nested.child),
                Came::ToRest => nested.call.child_rests(nested.child),
            };
            let Some(up) = up else { return };
            batch = &nested.call.batch;
            batch.rest_with(nested.call.index, up, also);
            match batch.take_up(nested.call.index, up) {
                Some(next) => came = next,
                None => return,
            }
        }
    }

    /// Counts what a call of this batch, or something under it, has reached; returns what the batch reaches by it.
    fn take_up(&self, index: u32, up: Up) -> Option<Came> {
        let run = self.run_of(index);
        let counted = match up {
            Up::Listed => {
                if let Some(nested) = &self.nested {
                    nested.has_zombies.store(true, Ordering::Release);
                }
                run.list();
                self.bell.ring();
                Counted { ended: false, rests: false }
            }
            Up::Quiescent => run.count_down(Step::Rested),
            Up::ListedRests => run.count_down_listed(),
        };
        self.act_on(counted);
        self.came_to(counted)
    }

    /// Reports that a call of this batch has settled or become quiescent.
    pub(crate) fn rises(&self, index: u32, up: Up) {
        let mut also = Vec::new();
        self.rise(index, up, &mut also);
        rise_all(also);
    }

    fn rise(&self, index: u32, up: Up, also: &mut Vec<(CallRef, Up)>) {
        self.rest_with(index, up, also);
        if let Some(came) = self.take_up(index, up) {
            self.tell_up(came, also);
        }
    }

    /// Reports that a dispatch of a handler is over without a batch.
    pub(crate) fn dispatch_rests(&self, call: &CallRef, child: usize) {
        if let Some(up) = call.child_rests(child) {
            self.rises(call.index, up);
        }
    }

    /// Lets a parked handler of this batch continue with the units it was granted.
    pub(super) fn resumed(self: Arc<Self>, index: u32) {
        let call = CallRef { batch: self, index };
        call.batch.entered_nest(index).resumed(&call);
        if let Some(up) = call.news() {
            call.batch.rises(index, up);
        }
    }

    /// The nest of a call, opened for a dispatch if need be; `None` if the handler is over.
    pub(crate) fn nest(&self, index: u32) -> Option<&Nest> {
        self.slots[index as usize].open_nest()
    }

    /// The nest of a call, if it has one.
    pub(crate) fn nest_of(&self, index: u32) -> Option<&Nest> {
        self.slots[index as usize].nest()
    }

    /// The nest of a call that is known to have one.
    pub(crate) fn entered_nest(&self, index: u32) -> &Nest {
        self.nest_of(index).expect("a call in the lineage has a nest until it is removed")
    }

    /// Notes that a handler is over; returns its nest, if it has one.
    pub(crate) fn close_nest(&self, index: u32) -> Option<&Nest> {
        self.slots[index as usize].close_nest()
    }

    /// Waits until every call of the run has its result.
    pub(super) async fn run_ended(&self, run: usize) {
        self.until(|| self.runs[run].is_ended()).await;
    }

    /// Waits until every call of the run is quiescent.
    pub(super) async fn run_quiescent(&self, run: usize) {
        self.until(|| self.runs[run].is_quiescent()).await;
    }

    /// Waits until every call of the run is quiescent or a listed zombie.
    pub(super) async fn run_settled(&self, run: usize) {
        self.until(|| self.runs[run].is_settled()).await;
    }

    /// Waits until `is_so`. Only the driver of the batch may call this, because the bell has one waker.
    async fn until(&self, is_so: impl Fn() -> bool) {
        poll_fn(|cx| {
            if is_so() {
                return Poll::Ready(());
            }
            self.bell.register(cx.waker());
            // It may have become true before the waker was registered.
            if is_so() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// Reports for calls that become quiescent with a flight, and for those that do so with them. A loop, not recursion,
/// as above.
fn rise_all(mut also: Vec<(CallRef, Up)>) {
    while let Some((call, up)) = also.pop() {
        call.batch.rise(call.index, up, &mut also);
    }
}
