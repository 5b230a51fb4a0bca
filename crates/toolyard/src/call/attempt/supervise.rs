//! Supervises a handler: its result, its panic, and its end when `watch.rs` signals one.

use crate::{
    call::attempt::{
        backend::{Execution, Failure, SandboxError},
        host::LostThread,
        watch::{BoundReached, Signal, Watch},
    },
    tasks::{Caught, Panic, caught},
};
use futures::{
    FutureExt,
    future::{Either, FusedFuture},
    ready,
};
use std::{
    future::{Future, poll_fn},
    pin::{Pin, pin},
    sync::atomic::Ordering,
    task::Poll,
    time::Duration,
};
use tokio::{
    task::{
        coop::{consume_budget, has_budget_remaining},
        unconstrained,
    },
    time::sleep,
};
use toolyard_core::ToolOutput;

/// How an attempt ended.
pub(crate) enum Verdict {
    /// The handler returned, or its sandbox failed.
    Done(Result<ToolOutput, Box<Failure>>),
    /// It panicked.
    Panicked(Panic),
    /// It took longer than this; with the output it returned within its timeout grace, if it has one.
    TimedOut(Duration, ToolOutput),
    /// Its call's deadline passed.
    PastDeadline,
    /// It could not resume: what it needs is held by zombies (CC-6c).
    Starved,
    /// It was told to stop and had not after this long, when it was abandoned.
    Abandoned(Duration),
    /// No thread had taken it up when its call stopped waiting for that.
    NotTaken(Withdrawn),
    /// It was not started: the sandbox cannot do what the grant asks.
    Refused(SandboxError),
}

/// The part of the sandbox in the end of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SandboxPart {
    /// None: the attempt ended otherwise.
    None,
    /// It cannot do what the grant asks.
    Refused,
    /// It failed.
    Failed { started: bool },
}

impl Verdict {
    /// Whether handler code could have started.
    pub(crate) fn has_run(&self) -> bool {
        match self {
            Self::NotTaken(_) | Self::Refused(_) => false,
            Self::Done(Err(failure)) => !matches!(**failure, Failure::Sandbox { started: false, .. }),
            _ => true,
        }
    }

    /// What part the sandbox has in it.
    #[inline]
    pub(crate) fn of_sandbox(&self) -> SandboxPart {
        match self {
            Self::Refused(_) => SandboxPart::Refused,
            Self::Done(Err(failure)) => match **failure {
                Failure::Sandbox { started, .. } => SandboxPart::Failed { started },
                Failure::Tool(_) => SandboxPart::None,
            },
            _ => SandboxPart::None,
        }
    }

    /// Whether the handler itself says that it changed nothing.
    pub(crate) fn has_no_side_effect(&self) -> bool {
        let Self::Done(Err(failure)) = self else { return false };
        matches!(&**failure, Failure::Tool(error) if error.has_no_side_effect())
    }

    /// Whether the engine stopped waiting for the handler.
    pub(crate) fn stopped_waiting(&self) -> bool {
        matches!(self, Self::TimedOut(..) | Self::PastDeadline | Self::Starved | Self::Abandoned(_))
    }

    /// The verdict once something of the handler's was dropped. The first panic is the call's; a lost thread is none.
    #[inline(always)]
    pub(crate) fn after_drop(self, panic: Option<Panic>) -> Self {
        match (self, panic) {
            (verdict, None) => verdict,
            (Self::Panicked(first), Some(second)) if !first.is::<LostThread>() => {
                Self::Panicked(first.before(second))
            }
            (_, Some(panic)) => Self::Panicked(panic),
        }
    }

    #[inline(always)]
    fn from_result(result: HandlerResult) -> Self {
        match result {
            Ok(done) => Self::Done(done),
            Err(panic) if panic.is::<Withdrawn>() => Self::NotTaken(Withdrawn::Stopped),
            Err(panic) => Self::Panicked(panic),
        }
    }
}

/// Why a handler was withdrawn that no thread had taken up. Also the panic payload of one whose thread came too late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Withdrawn {
    /// Its call was told to stop.
    Stopped,
    /// None took it up within the attempt timeout, which is this long.
    TimedOut(Duration),
    /// The deadline of its call passed.
    PastDeadline,
}

impl Withdrawn {
    fn by(signal: &Signal) -> Self {
        match signal {
            Signal::Over(BoundReached::TimedOut(limit)) | Signal::TimedOut { limit, .. } => {
                Self::TimedOut(*limit)
            }
            Signal::Over(BoundReached::PastDeadline) => Self::PastDeadline,
            // A handler that has not started has nothing to resume.
            Signal::Over(BoundReached::Starved) | Signal::Stop => Self::Stopped,
        }
    }
}

/// What a handler ends with, with its panic caught.
type HandlerResult = Result<Result<ToolOutput, Box<Failure>>, Panic>;

/// Drives a handler to its verdict.
///
/// The handler is polled first each time (SC-7): a result counts, whatever else happened in the same instant. Most
/// handlers of a busy engine are done at their first poll: they pay for no timer, and the task has no room for one.
/// The rare endings, by a stop or with a timeout grace, are boxed, so that a handler that waits needs no room for
/// them.
///
/// A handler may use up its task's coop budget in every poll. Signals are polled all the same, but not after a poll
/// for which no budget was left: then the handler may be done without having been able to see it.
pub(crate) fn supervise<'a>(
    handler: Pin<&'a mut (impl Future<Output = HandlerResult> + Send)>,
    execution: &'a Execution<'a>,
) -> impl Future<Output = Verdict> + Send {
    let (mut handler, mut watch) = (Some(handler), Watch::default());
    let mut leaving = None;
    poll_fn(move |cx| {
        if let Some(running) = &mut handler {
            let had_budget = has_budget_remaining();
            if let Poll::Ready(done) = running.as_mut().poll(cx) {
                return Poll::Ready(Verdict::from_result(done));
            }
            if !had_budget {
                ready!(pin!(consume_budget()).poll(cx)); // the task is polled again at once
            }
            let signal = pin!(unconstrained(poll_fn(|cx| watch.poll(execution, cx))));
            let signal = ready!(signal.poll(cx));
            if execution.withdraw() {
                return Poll::Ready(Verdict::NotTaken(Withdrawn::by(&signal)));
            }
            let (running, watch) =
                (handler.take().expect("the handler was polled just above"), std::mem::take(&mut watch));
            leaving = Some(Box::pin(match signal {
                Signal::Over(reached) => return Poll::Ready(reached.verdict()),
                Signal::Stop => Either::Left(stop(running, execution, watch)),
                Signal::TimedOut { limit, grace } => {
                    Either::Right(wait_for_grace(running, execution, limit, grace))
                }
            }));
        }
        leaving.as_mut().expect("a handler that is not running is being left").as_mut().poll(cx)
    })
}

/// Tells a handler to stop, and gives it its grace.
async fn stop(
    mut result: impl Future<Output = HandlerResult> + Unpin,
    execution: &Execution<'_>,
    mut watch: Watch,
) -> Verdict {
    let engine = execution.attempt.engine();
    execution.call().request_stop();
    // The tool's own `cancel` runs beside the handler, within the same grace.
    let mut stop = pin!(unconstrained(execution.stop()).fuse());
    let told_at = engine.clock.now();
    let mut grace = pin!(unconstrained(sleep(engine.grace)));
    loop {
        tokio::select! {
            biased;
            done = &mut result => return Verdict::from_result(done),
            () = &mut stop, if !stop.is_terminated() => {}
            () = &mut grace => break,
            _ = unconstrained(poll_fn(|cx| watch.poll_time(execution, cx))) => break,
            () = engine.abandon.cancelled() => break,
        }
    }
    engine.abandoned.fetch_add(1, Ordering::Relaxed);
    Verdict::Abandoned(engine.clock.now().duration_since(told_at))
}

impl Execution<'_> {
    /// Calls the tool's own `cancel`, and logs its answer in the call's span. A panic changes nothing else (SC-5).
    async fn stop(&self) {
        let answer = match caught(|| self.tool.cancel()) {
            Ok(cancel) => Caught::new(cancel).await,
            Err(panic) => Err(panic),
        };
        let (tool, attempt) = (self.attempt.work().entry.name(), self.attempt.number());
        match answer {
            Ok(stopped_cleanly) => {
                tracing::info!(tool, attempt, stopped_cleanly, "a tool was asked to stop its handler");
            }
            Err(panic) => {
                let redactor = self.attempt.engine().redactor.as_ref();
                panic.log("a tool panicked when it was asked to stop its handler", Some(tool), redactor);
            }
        }
    }
}

/// Gives a timed-out handler the grace it asked for to put its work in order (SC-5). The attempt has timed out in any
/// case; what the handler still returns is kept.
async fn wait_for_grace(
    mut result: impl Future<Output = HandlerResult> + Unpin,
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
            done = &mut result => return Verdict::TimedOut(limit, into_output(done)),
            () = &mut stop, if !stop.is_terminated() => {}
            () = &mut grace => return Verdict::TimedOut(limit, nothing()),
            () = execution.attempt.engine().abandon.cancelled() => {
                return Verdict::TimedOut(limit, nothing());
            }
        }
    }
}

/// The output of a handler.
fn into_output(done: HandlerResult) -> ToolOutput {
    match done {
        Ok(Ok(output)) => output,
        Ok(Err(failure)) => match *failure {
            Failure::Tool(error) => error.output().cloned().unwrap_or_else(nothing),
            Failure::Sandbox { .. } => nothing(),
        },
        Err(_) => nothing(),
    }
}

fn nothing() -> ToolOutput {
    ToolOutput::parts(Vec::new())
}

impl BoundReached {
    fn verdict(self) -> Verdict {
        match self {
            Self::TimedOut(limit) => Verdict::TimedOut(limit, nothing()),
            Self::PastDeadline => Verdict::PastDeadline,
            Self::Starved => Verdict::Starved,
        }
    }
}
