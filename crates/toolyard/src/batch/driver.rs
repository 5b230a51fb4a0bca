//! Plays the runs of a batch in order and hands back one result per call.
//!
//! The driver waits for runs, never for permits: it puts every call of a run in line, and whoever gives a
//! permit back starts the next call. So a waiting call costs a place in line and no task, and no message and
//! no wake-up of the driver stands between two calls.

use super::admit::{OrEnd, ZOMBIE_WAIT};
use super::census::Census;
use super::ledger::Slot;
use super::rest::Nested;
use super::router;
use super::run::Run;
use super::state::{BatchState, TurnOf, index};
use super::stop::Stop;
use crate::{
    attempt::Attempt, config::OnSerialFailure, gate::Cleared, nesting::Entered, registry::Table,
    session::SessionCore,
};
use futures::FutureExt;
use smallvec::SmallVec;
use std::sync::Arc;
use tokio::time::Instant;
use toolyard_core::{Batch, Call, CallError, EventKind, Outcome, Placement};

/// In which order the calls of a batch go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// By runs (CL-3).
    Runs,
    /// Every call alone: what a batch by runs is compared with.
    OneByOne,
}

/// Whoever follows a batch from outside: a turn.
pub(crate) trait Watch: Send + Sync {
    /// Whether the batch is to be stopped before it has begun.
    fn is_cancelled(&self) -> bool;

    /// The result of a call that was answered before.
    fn replay(&self, call: &Call) -> Option<Outcome>;

    /// The batch has been told of and its first call has yet to go.
    fn opened(&self, batch: &Arc<BatchState>);
}

/// A batch to be run, and how.
pub(crate) struct Dispatch<'a> {
    pub(crate) session: &'a Arc<SessionCore>,
    pub(crate) turn: TurnOf,
    pub(crate) order: Order,
    /// Who follows it; its results are kept for them.
    pub(crate) watch: Option<&'a dyn Watch>,
    pub(crate) origin: Origin<'a>,
}

/// Who dispatches a batch.
#[derive(Clone, Copy)]
pub(crate) enum Origin<'a> {
    /// Somebody outside of all calls.
    Outside,
    /// A handler, which is parked for it.
    Nested(&'a Entered),
    /// A handler that may not: its calls are answered with this.
    Refused(Stop),
}

impl Dispatch<'_> {
    /// Runs a batch to its end.
    ///
    /// Cancel safety: dropping the future cancels the batch; calls that run have their grace in the background
    /// (CC-6b).
    pub(crate) async fn run(self, batch: Batch) -> Vec<Outcome> {
        let (batch, early) = self.open(batch).await;
        let mut guard = StopOnDrop { batch: &batch, armed: true };
        announce(&batch, early);
        // From here on others can stop it: not before every call has been told of.
        if let Some(watch) = self.watch {
            watch.opened(&batch);
        }
        batch.session.register(&batch);
        match self.origin {
            Origin::Outside => {}
            Origin::Nested(entered) => entered.nest().attach(entered.call(), entered.child(), &batch),
            Origin::Refused(why) => batch.stop(why),
        }
        batch.ask();
        for run in 0..batch.runs() {
            begin(&batch, run);
            finish(&batch, run).await;
        }
        guard.armed = false;
        drop(guard);
        if self.watch.is_some() { batch.copies() } else { BatchState::collect(batch) }
    }

    /// Leads every call through the gate, in call order, and forms the runs.
    async fn open(&self, batch: Batch) -> (Arc<BatchState>, Vec<(u32, Early)>) {
        let table = self.session.engine.registry.table();
        let census = Census::of(&batch, &self.session.engine.gate.limits);
        let mut early = Vec::new();
        let mut slots = Vec::with_capacity(batch.len());
        for (at, call) in batch.into_iter().enumerate() {
            match self.pass(&call, at, &census, &table).await {
                Ok(work) => slots.push(Slot::cleared(call, work)),
                Err(Early::Refused(error)) => {
                    let known = table.contains_key(&call.name);
                    slots.push(Slot::refused(call, known));
                    early.push((index(at), Early::Refused(error)));
                }
                Err(Early::Replayed(outcome)) => {
                    slots.push(Slot::replayed(call, &outcome));
                    early.push((index(at), Early::Replayed(outcome)));
                }
            }
        }
        let runs: SmallVec<[Run; 2]> = match self.order {
            Order::Runs => router::runs(slots.iter().map(|slot| slot.routing)).map(Run::new).collect(),
            Order::OneByOne => router::one_by_one(slots.len()).map(Run::new).collect(),
        };
        let nested = match self.origin {
            Origin::Nested(entered) => {
                Some(Box::new(Nested::new(entered.call().clone(), entered.child(), runs.len())))
            }
            Origin::Outside | Origin::Refused(_) => None,
        };
        let batch = BatchState::new(self.session.clone(), self.turn, nested, slots, runs);
        (batch, early)
    }

    /// Leads one call through the gate.
    async fn pass(&self, call: &Call, at: usize, census: &Census, table: &Table) -> Result<Cleared, Early> {
        census.check(call, at)?;
        if let Some(outcome) = self.watch.and_then(|watch| watch.replay(call)) {
            return Err(Early::Replayed(outcome));
        }
        let gate = &self.session.engine.gate;
        if gate.hooks.is_some() {
            // Hooks take time: a stop in the meantime is not to wait for those of the calls to come.
            if self.watch.is_some_and(Watch::is_cancelled) || self.session.is_stopped() {
                return Err(Early::Refused(Stop::Cancelled.error()));
            }
            gate.before(call, &self.session.caller()).await?;
        }
        Ok(gate.check(call, table, self.session)?)
    }
}

/// A result that a call has before its run begins.
enum Early {
    Refused(CallError),
    /// The turn has answered this very call before (CL-8).
    Replayed(Outcome),
}

impl From<CallError> for Early {
    fn from(error: CallError) -> Self {
        Self::Refused(error)
    }
}

/// Cancels the batch when its caller leaves.
struct StopOnDrop<'a> {
    batch: &'a BatchState,
    armed: bool,
}

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.batch.stop(Stop::Cancelled);
        }
    }
}

/// Tells that the calls came in, and ends those that have their result already.
fn announce(batch: &Arc<BatchState>, early: Vec<(u32, Early)>) {
    batch.emit_turn(|| EventKind::TurnStarted { calls: batch.slots.len() });
    if batch.slots.is_empty() {
        batch.emit_turn(|| EventKind::TurnEnded { ok: 0, failed: 0 });
    }
    let mut early = early.into_iter().peekable();
    for index in 0..index(batch.slots.len()) {
        batch.emit(index, None, || EventKind::Received {
            tool_name: batch.shown_name(index),
            bytes: batch.call(index).arguments.size(),
        });
        match early.next_if(|(at, _)| *at == index) {
            None => {}
            Some((_, Early::Refused(error))) => {
                batch.end_unstarted(index, || error);
            }
            Some((_, Early::Replayed(outcome))) => batch.end_replayed(index, outcome),
        }
    }
}

/// Lets every call of a run go.
fn begin(batch: &Arc<BatchState>, run: usize) {
    let ready_at = batch.session.engine.clock.now();
    let has_hooks = batch.session.engine.gate.hooks.is_some();
    // The caller may be outside of tokio, and a handler that runs in place need not know.
    let mut entered = None;
    for index in batch.calls_of(run).map(index) {
        let Some(work) = batch.cleared(index) else { continue };
        if has_hooks {
            batch.clone().go_after_hook(index);
        } else if work.entry.spec().placement == Placement::Inline {
            entered.get_or_insert_with(|| batch.session.engine.tasks.enter());
            begin_inline(batch, index, ready_at);
        } else {
            batch.go(index, ready_at);
        }
    }
}

/// Runs a call in place as far as its first wait (SC-2).
fn begin_inline(batch: &Arc<BatchState>, index: u32, ready_at: Instant) {
    let Some((permit, timing)) = batch.admit(index, ready_at) else { return };
    let mut attempt = Box::pin(Attempt::new(batch.clone(), index, permit, timing).run());
    // Polled without a task: should it wait, its task polls it again and is the one that is woken.
    if attempt.as_mut().now_or_never().is_none() {
        batch.session.engine.tasks.spawn(attempt);
    }
}

impl BatchState {
    /// Lets a call go whose run has begun: it asks for its permits and starts, or waits in line.
    pub(super) fn go(self: &Arc<Self>, index: u32, ready_at: Instant) {
        if let Some((permit, timing)) = self.admit(index, ready_at) {
            self.spawn(index, permit, timing);
        }
    }

    /// Lets a call go after the hook before its permits.
    pub(super) fn go_after_hook(self: Arc<Self>, index: u32) {
        if !self.may_go(index) {
            return;
        }
        let or_end = OrEnd::new(&self, index);
        let tasks = self.session.engine.tasks.clone();
        tasks.spawn(async move {
            let engine = &self.session.engine;
            engine.gate.starting(self.call(index), &self.caller()).await;
            self.go(index, engine.clock.now());
            or_end.disarm();
        });
    }
}

/// Waits for the end of a run: until every call has its result and, where calls are left to start, until
/// nothing of it runs.
async fn finish(batch: &Arc<BatchState>, run: usize) {
    batch.run_ended(run).await;
    if batch.is_open() && batch.run_quiescent(run).now_or_never().is_none() {
        wait_for_zombies(batch, run).await;
    }
    let skip = batch.session.engine.on_serial_failure == OnSerialFailure::SkipRest;
    if skip && batch.serial_failed(run) {
        batch.stop(Stop::Predecessor);
    }
}

/// Gives handlers that were given up their time to stop; if they do not take it, the batch ends (CL-3).
async fn wait_for_zombies(batch: &Arc<BatchState>, run: usize) {
    let wait = {
        // A caller outside of tokio has no timer of its own.
        let _runtime = batch.session.engine.tasks.enter();
        tokio::time::timeout(ZOMBIE_WAIT, batch.run_quiescent(run))
    };
    if wait.await.is_err() {
        // What is not given up yet has its grace and comes to rest.
        batch.run_settled(run).await;
        if batch.run_quiescent(run).now_or_never().is_none() {
            batch.stop(Stop::Zombie);
        }
    }
}
