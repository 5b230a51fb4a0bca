//! Quiescence: calls are counted down in their runs, and a nested batch reports what it has reached to the call above
//! it.
//!
//! ```text
//!   call ended     ──► its run ──► the driver: the next run, or the end
//!   call quiescent ──► its run ──► its batch ──► the call that dispatched the batch ──► its run ──► ...
//! ```

use crate::call::{
    batch::BatchState,
    in_flight::{CallRef, InFlight},
    nested::{parking::Parking, report::Report},
    run::{Counted, Run, Step},
};
use std::{future::poll_fn, sync::atomic::Ordering, task::Poll};

/// What a batch has reached.
#[derive(Debug, Clone, Copy)]
enum Reached {
    /// All its calls are quiescent or listed zombies.
    Settled,
    /// All its calls are quiescent.
    Quiescent,
}

impl BatchState {
    fn act_on(&self, counted: Counted) {
        if counted.ended && self.run_has_ended() {
            self.announce_end();
        }
        if counted.ended || counted.quiescent {
            self.driver.wake();
        }
    }

    /// What a nested batch reaches by this step, if anything.
    fn reached_by(&self, counted: Counted) -> Option<Reached> {
        let nested = self.nested.as_ref()?;
        if counted.quiescent && nested.active_runs.fetch_sub(1, Ordering::AcqRel) == 1 {
            return Some(Reached::Quiescent);
        }
        let settled = nested.has_zombies.load(Ordering::Acquire)
            && self.runs.iter().all(Run::is_settled)
            && !nested.settled_reported.swap(true, Ordering::AcqRel);
        settled.then_some(Reached::Settled)
    }

    /// Reports to the call above what this batch has reached, and so on for the calls above that. A loop, not
    /// recursion: handlers may nest deeply.
    fn propagate(&self, reached: Reached, pending: &mut Vec<(CallRef, Report)>) {
        let (mut batch, mut reached) = (self, reached);
        while let Some(nested) = &batch.nested {
            let report = match reached {
                Reached::Settled => nested.call.child_settled(nested.child),
                Reached::Quiescent => nested.call.child_quiescent(nested.child),
            };
            let Some(report) = report else { return };
            batch = &nested.call.batch;
            batch.at(nested.call.index).collect_with_flight(report, pending);
            match batch.at(nested.call.index).apply_report(report) {
                Some(next) => reached = next,
                None => return,
            }
        }
    }

    /// Reports that a dispatch of a handler is over without a batch.
    pub(crate) fn dispatch_quiescent(&self, call: &CallRef, child: usize) {
        if let Some(report) = call.child_quiescent(child) {
            self.at(call.index).report_up(report);
        }
    }

    /// Waits until every call of the run has its result.
    pub(crate) async fn run_ended(&self, run: usize) {
        self.until(|| self.runs[run].is_ended()).await;
    }

    /// Whether every call of the run is quiescent.
    pub(crate) fn is_quiescent(&self, run: usize) -> bool {
        self.runs[run].is_quiescent()
    }

    /// Waits until every call of the run is quiescent.
    pub(crate) async fn run_quiescent(&self, run: usize) {
        self.until(|| self.is_quiescent(run)).await;
    }

    /// Waits until every call of the run is quiescent or a listed zombie.
    pub(crate) async fn run_settled(&self, run: usize) {
        self.until(|| self.runs[run].is_settled()).await;
    }

    /// Waits until `is_so`. Only the driver of the batch may call this, because it has one waker.
    pub(crate) async fn until(&self, is_so: impl Fn() -> bool) {
        poll_fn(|cx| {
            if is_so() {
                return Poll::Ready(());
            }
            self.driver.register(cx.waker());
            // It may have become true before the waker was registered.
            if is_so() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

impl CallRef {
    /// Lets a parked handler continue with the units it was granted.
    pub(crate) fn resumed(&self) {
        self.at().known_parking().resumed(self);
        if let Some(report) = self.next_report() {
            self.at().report_up(report);
        }
    }
}

impl<'a> InFlight<'a> {
    /// Counts a call down. The last call of a run wakes the driver, and the last result of the batch ends the turn.
    pub(crate) fn count_down(self, ok: bool, step: Step) {
        if !ok {
            self.batch.failed.fetch_add(1, Ordering::Relaxed);
        }
        let counted = self.run_of().count_down(step);
        self.batch.act_on(counted);
        if let Some(reached) = self.batch.reached_by(counted) {
            let mut pending = Vec::new();
            self.batch.propagate(reached, &mut pending);
            report_all(pending);
        }
    }

    /// Counts what a call of this batch, or something under it, has reached; returns what the batch reaches by it.
    fn apply_report(self, report: Report) -> Option<Reached> {
        let run = self.run_of();
        let counted = match report {
            Report::Listed => {
                if let Some(nested) = &self.batch.nested {
                    nested.has_zombies.store(true, Ordering::Release);
                }
                run.list();
                self.batch.driver.wake();
                Counted { ended: false, quiescent: false }
            }
            Report::Quiescent => run.count_down(Step::Quiescent),
            Report::ListedQuiescent => run.count_down_listed(),
        };
        self.batch.act_on(counted);
        self.batch.reached_by(counted)
    }

    /// Reports that a call of this batch has settled or become quiescent.
    pub(crate) fn report_up(self, report: Report) {
        let mut pending = Vec::new();
        self.report_up_with(report, &mut pending);
        report_all(pending);
    }

    fn report_up_with(self, report: Report, pending: &mut Vec<(CallRef, Report)>) {
        self.collect_with_flight(report, pending);
        if let Some(reached) = self.apply_report(report) {
            self.batch.propagate(reached, pending);
        }
    }

    /// The parking of a call, opened for a dispatch if need be; `None` if the handler is over.
    pub(crate) fn open_parking(self) -> Option<&'a Parking> {
        self.slot().open_parking()
    }

    /// The parking of a call, if it has one.
    pub(crate) fn parking(self) -> Option<&'a Parking> {
        self.slot().parking()
    }

    /// The parking of a call that is known to have one.
    pub(crate) fn known_parking(self) -> &'a Parking {
        self.parking().expect("a call in the lineage has a parking until it is removed")
    }

    /// Notes that a handler is over; returns its parking, if it has one.
    pub(crate) fn close_parking(self) -> Option<&'a Parking> {
        self.slot().close_parking()
    }
}

/// Reports for calls that become quiescent with a flight, and for those that do so with them. A loop, not recursion,
/// as above.
fn report_all(mut pending: Vec<(CallRef, Report)>) {
    while let Some((call, report)) = pending.pop() {
        call.at().report_up_with(report, &mut pending);
    }
}
