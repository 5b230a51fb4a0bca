//! Plays the runs of a batch in order and hands back one result per call.
//!
//! The driver waits for runs, never for permits: it puts every call of a run in line, and whoever gives a
//! permit back starts the next call. So a waiting call costs a place in line and no task, and no message and
//! no wake-up of the driver stands between two calls.

use super::census::Census;
use super::ledger::{Phase, Slot};
use super::router;
use super::state::{BatchState, index};
use super::stop::Stop;
use crate::{attempt, config::OnSerialFailure, session::SessionCore};
use std::{sync::Arc, time::Duration};
use toolyard_core::{Batch, CallError, EventKind, Outcome, Placement};

/// How long the next run waits for handlers that were given up (CL-3).
const ZOMBIE_WAIT: Duration = Duration::from_secs(30);

/// In which order the calls of a batch go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// By runs (CL-3).
    Runs,
    /// Every call alone: what a batch by runs is compared with.
    OneByOne,
}

/// Runs a batch to its end.
///
/// Cancel safety: dropping the future cancels the batch; calls that run have their grace in the background
/// (CC-6b).
pub(crate) async fn dispatch(
    session: &Arc<SessionCore>,
    turn: u64,
    batch: Batch,
    order: Order,
) -> Vec<Outcome> {
    dispatch_watched(session, turn, batch, order, |_| {}).await
}

/// As [`dispatch`], and lets the caller see the batch before its first call goes.
pub(crate) async fn dispatch_watched(
    session: &Arc<SessionCore>,
    turn: u64,
    batch: Batch,
    order: Order,
    watch: impl FnOnce(&Arc<BatchState>),
) -> Vec<Outcome> {
    let (batch, refusals) = open(session, turn, batch, order).await;
    let mut guard = StopOnDrop { batch: &batch, armed: true };
    announce(&batch, refusals);
    // From here on others can stop it: not before every call has been told of.
    watch(&batch);
    batch.session.register(&batch);
    batch.ask();
    for run in 0..batch.runs() {
        begin(&batch, run).await;
        finish(&batch, run).await;
    }
    guard.armed = false;
    batch.collect()
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

/// Why a call does not pass the gate, by its index.
type Refusals = Vec<(u32, CallError)>;

/// Leads every call through the gate, in call order, and forms the runs.
async fn open(
    session: &Arc<SessionCore>,
    turn: u64,
    batch: Batch,
    order: Order,
) -> (Arc<BatchState>, Refusals) {
    let table = session.engine.registry.table();
    let gate = &session.engine.gate;
    let census = Census::of(&batch, gate.limits.batch_calls_max);
    let mut refusals = Refusals::new();
    let mut slots = Vec::with_capacity(batch.len());
    for (at, call) in batch.into_iter().enumerate() {
        let passed = match census.check(&call, at) {
            Ok(()) if gate.hooks.is_some() => gate.pass(&call, &table, session).await,
            Ok(()) => gate.check(&call, &table, session),
            Err(error) => Err(error),
        };
        slots.push(match passed {
            Ok(work) => Slot::cleared(call, work),
            Err(error) => {
                refusals.push((index(at), error));
                let known = table.contains_key(&call.name);
                Slot::refused(call, known)
            }
        });
    }
    let runs = match order {
        Order::Runs => router::runs(slots.iter().map(|slot| slot.routing)),
        Order::OneByOne => router::one_by_one(slots.len()),
    };
    for (number, run) in runs.iter().enumerate() {
        slots[run.clone()].iter_mut().for_each(|slot| slot.run = index(number));
    }
    (BatchState::new(session.clone(), turn, slots, runs), refusals)
}

/// Tells that the calls came in, and ends those that the gate refused.
fn announce(batch: &Arc<BatchState>, refusals: Refusals) {
    batch.emit_turn(|| EventKind::TurnStarted { calls: batch.slots.len() });
    let mut refusals = refusals.into_iter().peekable();
    for index in 0..index(batch.slots.len()) {
        batch.emit(index, None, || EventKind::Received {
            tool_name: batch.shown_name(index),
            bytes: match &batch.call(index).arguments {
                toolyard_core::Arguments::Text(text) => text.len(),
                toolyard_core::Arguments::Json(_) => 0,
            },
        });
        if let Some((_, error)) = refusals.next_if(|(refused, _)| *refused == index) {
            batch.end_unstarted(index, || error);
        }
    }
}

/// Lets every call of a run go.
async fn begin(batch: &Arc<BatchState>, run: usize) {
    for at in batch.calls_of(run) {
        let index = index(at);
        {
            let mut phase = batch.slots[at].phase();
            match &mut *phase {
                Phase::Asking { run_begun } => {
                    *run_begun = true;
                    continue;
                }
                Phase::Waiting => {}
                Phase::Queued { .. } | Phase::Started | Phase::Ended(_) => continue,
            }
        }
        if batch.work(index).entry.spec().placement == Placement::Inline {
            begin_inline(batch, index).await;
        } else {
            batch.go(index);
        }
    }
}

/// Runs a call in place as far as its first wait (SC-2).
async fn begin_inline(batch: &Arc<BatchState>, index: u32) {
    let gate = &batch.session.engine.gate;
    gate.starting(batch.call(index), &batch.caller()).await;
    let Some((permit, timing)) = batch.admit(index) else {
        return;
    };
    let mut attempt = Box::pin(attempt::run(batch.clone(), index, permit, timing));
    if futures::poll!(&mut attempt).is_pending() {
        let engine = &batch.session.engine;
        engine.tasks.spawn_on(attempt, &engine.runtime);
    }
}

impl BatchState {
    /// Lets a call go whose run has begun: the hook before its permits, then its permits.
    pub(super) fn go(self: &Arc<Self>, index: u32) {
        let engine = &self.session.engine;
        if engine.gate.hooks.is_none() {
            return self.start_or_wait(index);
        }
        let batch = self.clone();
        engine.tasks.spawn_on(
            async move {
                batch.session.engine.gate.starting(batch.call(index), &batch.caller()).await;
                batch.start_or_wait(index);
            },
            &engine.runtime,
        );
    }

    fn start_or_wait(self: &Arc<Self>, index: u32) {
        if let Some((permit, timing)) = self.admit(index) {
            self.spawn(index, permit, timing);
        }
    }
}

/// Waits for the end of a run: for the last one until every call has its result, for the others until
/// nothing of them runs.
async fn finish(batch: &Arc<BatchState>, run: usize) {
    batch.run_ended(run).await;
    // Behind a stop nothing is left to start, so there is nothing to wait for.
    if run + 1 == batch.runs() || batch.stopped.get().is_some() {
        return;
    }
    if tokio::time::timeout(ZOMBIE_WAIT, batch.run_quiescent(run)).await.is_err() {
        batch.stop(Stop::Zombie);
    }
    let skip = batch.session.engine.on_serial_failure == OnSerialFailure::SkipRest;
    if skip && batch.serial_failed(run) {
        batch.stop(Stop::Predecessor);
    }
}
