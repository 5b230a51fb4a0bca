//! Plays the runs of a batch in order and returns one result per call.
//!
//! The driver waits for runs, never for permits: it enqueues every call of a run, and whatever releases a permit
//! starts the next call. So a waiting call costs a place in the queue and no task, and between two calls there is
//! neither a message nor a wake-up of the driver.

use super::intake::Dispatch;
use crate::{
    call::{Attempt, BatchState, Job, Next, Stop, index},
    config::{OnSerialFailure, ZOMBIE_WAIT},
};
use futures::{
    FutureExt,
    future::{BoxFuture, Either, select},
};
use std::{pin::pin, sync::Arc};
use tokio::time::Instant;
use toolyard_core::{Batch, Outcome, Placement};

impl Dispatch<'_> {
    /// Runs a batch to its end.
    ///
    /// Cancel safety: dropping the future cancels the batch; running calls have their grace in the background
    /// (CC-6b).
    pub(crate) async fn run(self, batch: Batch) -> Vec<Outcome> {
        let batch = self.launch(batch, None).await;
        let mut guard = StopOnDrop::new(&batch);
        for run in 0..batch.runs() {
            begin(&batch, run);
            batch.run_ended(run).await;
            if batch.is_open()
                && let Some(why) = await_quiescence(&batch, run).await
            {
                batch.stop(why);
            }
        }
        guard.disarm();
        drop(guard);
        if batch.session.engine.recorder.is_some() {
            ends_recorded(&batch).await;
        }
        let turn_keeps = self.watch.is_some_and(|watch| watch.keeps(&batch));
        if turn_keeps { batch.copies() } else { BatchState::collect(batch) }
    }
}

/// Waits until the results may be given.
#[cold]
#[inline(never)]
fn ends_recorded(batch: &BatchState) -> BoxFuture<'_, ()> {
    Box::pin(batch.ends_recorded(batch.session.engine.reply_until(batch.nested.is_some())))
}

/// The nesting depth below which calls run in place. It is bounded because a handler that runs in place polls the
/// calls it dispatches on its own stack, and handlers may nest deeply.
const IN_PLACE_DEPTH_MAX: u32 = 8;

/// Cancels the batch when its caller drops the future.
pub(super) struct StopOnDrop<'a> {
    batch: &'a BatchState,
    armed: bool,
}

impl<'a> StopOnDrop<'a> {
    pub(super) fn new(batch: &'a BatchState) -> Self {
        Self { batch, armed: true }
    }

    pub(super) fn disarm(&mut self) {
        self.armed = false;
    }
}

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            if self.batch.session.engine.recorder.is_some() && self.batch.is_open() {
                self.batch.record_leaving();
            }
            self.batch.stop(Stop::Cancelled);
        }
    }
}

/// Starts every call of a run, or enqueues it.
pub(super) fn begin(batch: &Arc<BatchState>, run: usize) {
    let ready_at = batch.session.engine.clock.now();
    // The caller may be outside of tokio, which a handler that runs in place must not notice.
    let mut entered = None;
    for index in batch.calls_of(run).map(index) {
        let Some(work) = batch.at(index).cleared() else { continue };
        if work.entry.spec().placement == Placement::Inline && batch.depth() < IN_PLACE_DEPTH_MAX {
            entered.get_or_insert_with(|| {
                batch.driver.runs();
                batch.session.engine.tasks.enter()
            });
            begin_inline(batch, index, ready_at);
        } else {
            batch.at(index).start_or_wait(ready_at);
        }
    }
}

/// Runs a call in place up to its first wait (SC-2).
fn begin_inline(batch: &Arc<BatchState>, index: u32, ready_at: Instant) {
    let Some(mut attempt) = batch.at(index).admit(ready_at) else { return };
    let mut attempt = Box::pin(async move {
        let next = attempt.run().await.and_then(Next::taken);
        drop(attempt);
        next.into_iter().for_each(Attempt::spawn);
    });
    // Polled with a waker that does nothing: if it has to wait, its own task polls it again and registers a real one.
    if attempt.as_mut().now_or_never().is_none() {
        batch.session.engine.tasks.spawn(attempt);
    }
}

/// Waits until a run that has ended is quiescent, or until every call of the batch has its result, so that nothing is
/// left to start. Returns the reason if the runs behind it must not start. Not needed for the last run of a batch.
async fn await_quiescence(batch: &Arc<BatchState>, run: usize) -> Option<Stop> {
    // Boxed, because few batches get here and the others need no room for it.
    if !batch.is_quiescent(run) && Box::pin(runs_into_zombies(batch, run)).await {
        return Some(Stop::Zombie);
    }
    skips_rest(batch, run)
}

/// Gives the handlers of a run time to stop while something waits behind it; returns whether it still waits for them
/// after that.
async fn runs_into_zombies(batch: &Arc<BatchState>, run: usize) -> bool {
    let is_over = pin!(batch.until(|| !batch.is_open()));
    let waited = pin!(wait_for_zombies(batch, run, zombies_until()));
    // On one task, whose waker they share: a batch has one.
    match select(is_over, waited).await {
        Either::Left(_) => false,
        Either::Right((still_run, _)) => still_run,
    }
}

/// When a run that begins to wait for zombies now has waited long enough.
pub(super) fn zombies_until() -> Instant {
    Instant::now() + ZOMBIE_WAIT
}

/// Gives abandoned handlers time to stop; returns whether some still run after it (CL-3).
pub(super) async fn wait_for_zombies(batch: &Arc<BatchState>, run: usize, until: Instant) -> bool {
    let tasks = &batch.session.engine.tasks;
    if tasks.timeout_at(until, batch.run_quiescent(run)).await.is_some() {
        return false;
    }
    // A handler that has not been abandoned yet still has its grace, and settles within it.
    batch.run_settled(run).await;
    !batch.is_quiescent(run)
}

/// The reason to skip the runs behind this one: it has failed and that is configured (CL-4), or calls of it may have been
/// suspended, and what is behind them must not start before them (SM-10).
pub(super) fn skips_rest(batch: &BatchState, run: usize) -> Option<Stop> {
    if batch.is_left_to_another_life() {
        return Some(Stop::ShuttingDown);
    }
    let skip = batch.session.engine.on_serial_failure == OnSerialFailure::SkipRest;
    (skip && batch.serial_failed(run)).then_some(Stop::Predecessor)
}
