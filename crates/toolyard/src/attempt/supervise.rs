//! Watches over a handler: its result, its panic, its time, and its end when it is told to stop.

use super::SandboxError;
use crate::engine::EngineCore;
use futures::{FutureExt, future::FusedFuture};
use std::{
    any::Any,
    future::{Future, poll_fn},
    panic::AssertUnwindSafe,
    pin::{Pin, pin},
    sync::atomic::Ordering,
    task::Poll,
    time::Duration,
};
use tokio::time::{Instant, sleep_until};
use toolyard_core::{CallScope, Tool, ToolError, ToolOutput};

/// The bounds of one attempt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The attempt timeout, for the message.
    pub(super) timeout: Duration,
    /// When it is over; `None` for a handler without one.
    pub(super) deadline: Option<Instant>,
}

/// How a handler is told to stop.
pub(super) struct Told<'a> {
    pub(super) tool: &'a dyn Tool,
    pub(super) scope: &'a dyn CallScope,
    /// Knows the grace, and when a drain leaves no more of it (SC-5, SC-8).
    pub(super) engine: &'a EngineCore,
}

/// What came of an attempt.
pub(super) enum Verdict {
    /// The handler's own word. Its error is boxed: a verdict is moved through several hands of the task.
    Done(Result<ToolOutput, Box<ToolError>>),
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

    fn from_result(result: Caught) -> Self {
        result.map_or_else(Self::Panicked, |done| Self::Done(done.map_err(Box::new)))
    }
}

/// What a handler ends with, its panic caught.
type Caught = Result<Result<ToolOutput, ToolError>, Box<dyn Any + Send>>;

/// Drives a handler to its verdict.
///
/// The handler is asked first each time (SC-7): what is done counts, whatever happened in the same instant.
pub(super) async fn supervise(
    result: impl Future<Output = Caught> + Send,
    told: &Told<'_>,
    bounds: &Bounds,
) -> Verdict {
    let mut result = pin!(result);
    match futures::poll!(&mut result) {
        Poll::Ready(done) => Verdict::from_result(done),
        // Most handlers of a busy engine are done at their first poll: those pay for no timer and no room for
        // one in their task.
        Poll::Pending => Box::pin(watch(result, told, bounds)).await,
    }
}

/// Goes on with a handler that has been polled once.
async fn watch(
    mut result: Pin<&mut (impl Future<Output = Caught> + Send)>,
    told: &Told<'_>,
    bounds: &Bounds,
) -> Verdict {
    let mut just_polled = true;
    let mut result = poll_fn(|cx| match std::mem::take(&mut just_polled) {
        true => Poll::Pending,
        false => result.as_mut().poll(cx),
    });
    tokio::select! {
        biased;
        done = &mut result => return Verdict::from_result(done),
        () = told.scope.cancel_token().cancelled() => {}
        () = at(bounds.deadline) => return Verdict::TimedOut(bounds.timeout),
    }
    // Told to stop: the tool's own way of stopping runs beside the handler, and both have the grace.
    let mut stop = pin!(AssertUnwindSafe(async { told.tool.cancel().await }).catch_unwind().fuse());
    let told_at = told.engine.clock.now();
    let mut grace = pin!(tokio::time::sleep(told.engine.grace));
    loop {
        tokio::select! {
            biased;
            done = &mut result => return Verdict::from_result(done),
            _ = &mut stop, if !stop.is_terminated() => {}
            () = &mut grace => break,
            () = told.engine.abandon.cancelled() => break,
        }
    }
    told.engine.abandoned.fetch_add(1, Ordering::Relaxed);
    Verdict::Abandoned(told.engine.clock.now().duration_since(told_at))
}

async fn at(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
