//! Watches over a handler: its result, its panic, its time, and its end when it is told to stop.

use super::SandboxError;
use futures::FutureExt;
use std::{any::Any, future::Future, panic::AssertUnwindSafe, pin::pin, time::Duration};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use toolyard_core::{Tool, ToolError, ToolOutput};

/// The bounds of one attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The attempt timeout, for the message.
    pub(super) timeout: Duration,
    /// When it is over; `None` for a handler without one.
    pub(super) deadline: Option<Instant>,
    /// How long a handler has to stop after a cancel (SC-5).
    pub(super) grace: Duration,
}

/// What came of an attempt.
pub(super) enum Verdict {
    /// The handler's own word.
    Done(Result<ToolOutput, ToolError>),
    /// It panicked.
    Panicked(Box<dyn Any + Send>),
    /// It took longer than this.
    TimedOut(Duration),
    /// It was told to stop and did not within its grace.
    Abandoned(Duration),
    /// It was not started.
    Sandbox(SandboxError),
}

impl Verdict {
    /// Whether the engine stopped waiting for the handler.
    pub(super) fn gave_up(&self) -> bool {
        matches!(self, Self::TimedOut(_) | Self::Abandoned(_))
    }

    fn from_result(result: Result<Result<ToolOutput, ToolError>, Box<dyn Any + Send>>) -> Self {
        result.map_or_else(Self::Panicked, Self::Done)
    }
}

/// Drives a handler to its verdict.
///
/// The handler is asked first each time (SC-7): what is done counts, whatever happened in the same instant.
pub(super) async fn supervise(
    result: impl Future<Output = Result<Result<ToolOutput, ToolError>, Box<dyn Any + Send>>>,
    tool: &dyn Tool,
    cancel: &CancellationToken,
    bounds: &Bounds,
) -> Verdict {
    let mut result = pin!(result);
    // Most handlers of a busy engine are done at their first poll: those pay for no timer.
    if let Some(done) = (&mut result).now_or_never() {
        return Verdict::from_result(done);
    }
    tokio::select! {
        biased;
        done = &mut result => return Verdict::from_result(done),
        () = cancel.cancelled() => {}
        () = at(bounds.deadline) => return Verdict::TimedOut(bounds.timeout),
    }
    // Told to stop: the tool's own way of stopping runs beside the handler, and both have the grace.
    let mut stop = pin!(AssertUnwindSafe(tool.cancel()).catch_unwind().fuse());
    let mut grace = pin!(tokio::time::sleep(bounds.grace));
    loop {
        tokio::select! {
            biased;
            done = &mut result => return Verdict::from_result(done),
            _ = &mut stop, if !futures::future::FusedFuture::is_terminated(&*stop) => {}
            () = &mut grace => return Verdict::Abandoned(bounds.grace),
        }
    }
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
