//! The time that a call computes: that of the thread which polls it, poll by poll.

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

/// A future that is measured. A guest hands its thread back at each tick, so each poll is short.
pub(crate) struct Measured<F> {
    work: Pin<Box<F>>,
    spent: Duration,
    most: Option<Duration>,
}

/// How a measured future ended.
pub(crate) enum Done<T> {
    /// By itself.
    Result(T),
    /// It had spent all its time.
    Spent,
}

impl<F> Measured<F> {
    /// Measures this work, and ends it when it has spent `most`.
    pub(crate) fn new(work: F, most: Option<Duration>) -> Self {
        Self { work: Box::pin(work), spent: Duration::ZERO, most }
    }

    /// What was spent by now.
    pub(crate) fn spent(&self) -> Duration {
        self.spent
    }
}

impl<F: Future> Future for Measured<F> {
    type Output = Done<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let before = now();
        let polled = self.work.as_mut().poll(cx);
        self.spent += now().saturating_sub(before);
        match polled {
            Poll::Ready(result) => Poll::Ready(Done::Result(result)),
            Poll::Pending if self.most.is_some_and(|most| self.spent >= most) => Poll::Ready(Done::Spent),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// The time that this thread has computed.
#[cfg(unix)]
fn now() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Where there is no clock of a thread's own, the time that passes: never less than what it computes.
#[cfg(not(unix))]
fn now() -> Duration {
    static START: std::sync::OnceLock<tokio::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(tokio::time::Instant::now).elapsed()
}
