//! Watches over a handler: its result, its panic, its time, and its end when it is told to stop.

use super::{Execution, SandboxError, backend::NotTaken};
use crate::{
    batch::{BatchState, Stop},
    nesting::Clock,
};
use futures::{
    FutureExt,
    future::{BoxFuture, FusedFuture},
    ready,
};
use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::atomic::Ordering,
    task::Poll,
    time::Duration,
};
use tokio::{
    task::{coop::has_budget_remaining, unconstrained},
    time::{Instant, sleep, sleep_until},
};
use toolyard_core::{ToolError, ToolOutput};

/// The bounds of one attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The attempt timeout, for the message.
    pub(super) timeout: Duration,
    /// When it is over; `None` for a handler without one. It moves while the handler is parked.
    pub(super) cut_at: Option<Instant>,
    /// When the call has to have ended; this does not move.
    pub(super) deadline: Option<Instant>,
}

/// Why a call ends whose handler goes on for others.
#[derive(Debug, Clone, Copy)]
pub(super) enum Parting {
    /// Its caller has called it off.
    Cancelled,
    /// Its deadline has passed.
    PastDeadline,
}

/// What came of an attempt.
pub(super) enum Verdict {
    /// The handler's own word. Its error is boxed: a verdict is moved through several hands of the task.
    Done(Result<ToolOutput, Box<ToolError>>),
    /// It panicked.
    Panicked(Box<dyn Any + Send>),
    /// It took longer than this; with what it put out when it was told so, where it has a grace for that.
    TimedOut(Duration, ToolOutput),
    /// Its call's deadline passed.
    PastDeadline,
    /// It could not go on: what it needs again is held by handlers that were given up (CC-6c).
    Starved,
    /// It was told to stop and did not within its grace.
    Abandoned(Duration),
    /// No thread had taken it up when it was told to stop.
    NotTaken,
    /// It was not started.
    Sandbox(SandboxError),
}

impl Verdict {
    /// Whether handler code could have started.
    pub(super) fn has_run(&self) -> bool {
        !matches!(self, Self::NotTaken | Self::Sandbox(_))
    }

    /// Whether the handler itself says that it changed nothing.
    pub(super) fn has_no_side_effect(&self) -> bool {
        matches!(self, Self::Done(Err(error)) if error.has_no_side_effect())
    }

    /// Whether the engine stopped waiting for the handler.
    pub(super) fn gave_up(&self) -> bool {
        matches!(self, Self::TimedOut(..) | Self::PastDeadline | Self::Starved | Self::Abandoned(_))
    }

    fn from_result(result: Caught) -> Self {
        match result {
            Ok(done) => Self::Done(done.map_err(Box::new)),
            Err(panic) if panic.is::<NotTaken>() => Self::NotTaken,
            Err(panic) => Self::Panicked(panic),
        }
    }
}

/// What a handler ends with, its panic caught.
type Caught = Result<Result<ToolOutput, ToolError>, Box<dyn Any + Send>>;

/// Drives a handler to its verdict.
///
/// The handler is asked first each time (SC-7): what is done counts, whatever happened in the same instant. Most handlers
/// of a busy engine are done at their first poll: those pay for no timer, and no task has room for one. What few handlers
/// come to is boxed again: those that wait have room for the rest alone.
///
/// A handler may use up what its task may do at once, in each poll anew. What stops it is looked at all the same; but not
/// in a poll in which the handler itself had nothing to use up: it may be done and not have seen it.
pub(super) fn supervise<'a>(
    handler: Pin<&'a mut (impl Future<Output = Caught> + Send)>,
    execution: &'a Execution<'a>,
) -> impl Future<Output = Verdict> + Send {
    let (mut handler, mut signal) = (Some(handler), None);
    let mut leaving: Option<BoxFuture<'a, Verdict>> = None;
    poll_fn(move |cx| {
        if let Some(running) = &mut handler {
            let had_budget = has_budget_remaining();
            if let Poll::Ready(done) = running.as_mut().poll(cx) {
                return Poll::Ready(Verdict::from_result(done));
            }
            let signal = signal.get_or_insert_with(|| Box::pin(wait_for_signal(execution)));
            let said = ready!(match had_budget {
                true => pin!(unconstrained(signal.as_mut())).poll(cx),
                false => signal.as_mut().poll(cx), // it is polled again at once
            });
            let running = handler.take().expect("it was there just now");
            leaving = Some(match said {
                Signal::Over(cut) => return Poll::Ready(cut.verdict()),
                Signal::Stop { deadline } => Box::pin(stop(running, execution, deadline)),
                Signal::TimedOut { limit, grace } => Box::pin(put_in_order(running, execution, limit, grace)),
            });
        }
        leaving.as_mut().expect("a handler that does not run is leaving").as_mut().poll(cx)
    })
}

/// Why a handler that runs is to run no longer.
enum Signal {
    /// It has had its time, and no grace.
    Over(Cut),
    /// Its call is cancelled; it has to have ended by then.
    Stop { deadline: Option<Instant> },
    /// It took longer than this, and has that to put its work in order.
    TimedOut { limit: Duration, grace: Duration },
}

async fn wait_for_signal(execution: &Execution<'_>) -> Signal {
    let mut deadline = execution.attempt.bounds().deadline;
    loop {
        let bounds = Bounds { deadline, ..execution.attempt.bounds() };
        tokio::select! {
            biased;
            () = execution.told_to_stop() => match execution.cancelled() {
                // Those who still wait have deadlines of their own.
                None if execution.leaves(Parting::Cancelled) => deadline = None,
                _ => return Signal::Stop { deadline },
            },
            cut = time_is_up(execution, bounds) => match (cut, execution.timeout_grace()) {
                (Cut::TimedOut(limit), Some(grace)) => return Signal::TimedOut { limit, grace },
                (Cut::PastDeadline, _) if execution.leaves(Parting::PastDeadline) => deadline = None,
                (cut, _) => return Signal::Over(cut),
            },
        }
    }
}

/// Tells a handler to stop, and gives it its grace.
async fn stop(
    mut result: impl Future<Output = Caught> + Unpin,
    execution: &Execution<'_>,
    deadline: Option<Instant>,
) -> Verdict {
    let engine = execution.attempt.engine();
    let bounds = Bounds { deadline, ..execution.attempt.bounds() };
    execution.batch().tell(execution.index());
    // The tool's own way of stopping runs beside the handler, and both have the grace.
    let mut stop = pin!(unconstrained(execution.stop()).fuse());
    let told_at = engine.clock.now();
    let mut grace = pin!(unconstrained(sleep(engine.grace)));
    loop {
        tokio::select! {
            biased;
            done = &mut result => return Verdict::from_result(done),
            () = &mut stop, if !stop.is_terminated() => {}
            () = &mut grace => break,
            _ = unconstrained(time_is_up(execution, bounds)) => break,
            () = engine.abandon.cancelled() => break,
        }
    }
    engine.abandoned.fetch_add(1, Ordering::Relaxed);
    Verdict::Abandoned(engine.clock.now().duration_since(told_at))
}

impl Execution<'_> {
    fn batch(&self) -> &BatchState {
        &self.attempt.call.batch
    }

    fn index(&self) -> u32 {
        self.attempt.call.index
    }

    /// Waits until it is told to stop.
    fn told_to_stop(&self) -> impl Future<Output = ()> {
        self.batch().told_to_stop(self.index())
    }

    /// How long it may go on when it has timed out, told to stop (SC-5).
    fn timeout_grace(&self) -> Option<Duration> {
        self.attempt.work().entry.spec().timeout_grace
    }

    /// Why it has been told to stop, if it has.
    fn cancelled(&self) -> Option<Stop> {
        self.batch().cancelled(self.index())
    }

    /// The call has to end. `true`: others wait for what its handler does, so it ends alone (ID-4).
    fn leaves(&self, why: Parting) -> bool {
        let (batch, index) = (self.batch(), self.index());
        batch.flight_run_by(index).is_some() && batch.detach(index, || self.attempt.parting(why))
    }

    /// The tool's own way of stopping.
    async fn stop(&self) {
        // What it says is for nobody; a panic of it is its own.
        let _ = AssertUnwindSafe(async { self.tool.cancel().await }).catch_unwind().await;
    }
}

/// Gives a handler that ran into its timeout the time it asked for to put its work in order (SC-5). The attempt has
/// timed out, whatever comes of that; what it still puts out is kept.
async fn put_in_order(
    mut result: impl Future<Output = Caught> + Unpin,
    execution: &Execution<'_>,
    limit: Duration,
    grace: Duration,
) -> Verdict {
    execution.cx.cancel_own();
    let mut stop = pin!(unconstrained(execution.stop()).fuse());
    let mut grace = pin!(unconstrained(sleep(grace)));
    loop {
        tokio::select! {
            biased;
            done = &mut result => return Verdict::TimedOut(limit, put_out(done)),
            () = &mut stop, if !stop.is_terminated() => {}
            () = &mut grace => return Verdict::TimedOut(limit, nothing()),
            () = execution.attempt.engine().abandon.cancelled() => {
                return Verdict::TimedOut(limit, nothing());
            }
        }
    }
}

/// What a handler has put out.
fn put_out(done: Caught) -> ToolOutput {
    match done {
        Ok(Ok(output)) => output,
        Ok(Err(error)) => ToolOutput::parts(error.content().to_vec()),
        Err(_) => nothing(),
    }
}

fn nothing() -> ToolOutput {
    ToolOutput::parts(Vec::new())
}

/// What a handler has no more time for.
enum Cut {
    /// The attempt: it took longer than this.
    TimedOut(Duration),
    /// Its call: the deadline has passed.
    PastDeadline,
    /// Going on: what it needs again is held by handlers that were given up (CC-6c).
    Starved,
}

impl Cut {
    fn verdict(self) -> Verdict {
        match self {
            Self::TimedOut(limit) => Verdict::TimedOut(limit, nothing()),
            Self::PastDeadline => Verdict::PastDeadline,
            Self::Starved => Verdict::Starved,
        }
    }
}

/// Waits until the attempt has used up its time, whose clock stands still while the handler is parked, or until its
/// call's deadline has passed, whose clock does not (V3).
fn time_is_up(execution: &Execution<'_>, bounds: Bounds) -> impl Future<Output = Cut> {
    // Made when there is one: a timer far away is no timer.
    let mut cut = bounds.cut_at.map(|at| Box::pin(sleep_until(at)));
    let mut deadline = bounds.deadline.map(|at| Box::pin(sleep_until(at)));
    poll_fn(move |cx| {
        if deadline.as_mut().is_some_and(|timer| timer.as_mut().poll(cx).is_ready()) {
            return Poll::Ready(Cut::PastDeadline);
        }
        let clock = execution.batch().nest_of(execution.index()).map(|nest| nest.clock(cx.waker()));
        let stood = match clock {
            None => Duration::ZERO,
            Some(Clock::Runs(stood)) => stood,
            Some(Clock::Stands) => return Poll::Pending,
            Some(Clock::Starved) => return Poll::Ready(Cut::Starved),
        };
        let (Some(timer), Some(cut_at)) = (&mut cut, bounds.cut_at) else { return Poll::Pending };
        let cut_at = cut_at + stood;
        if timer.deadline() != cut_at {
            timer.as_mut().reset(cut_at);
        }
        timer.as_mut().poll(cx).map(|()| Cut::TimedOut(bounds.timeout))
    })
}
