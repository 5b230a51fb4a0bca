//! Panics in code of the embedder: each is caught where that code is called or dropped.
//!
//! A panic that meets another on its way ends the process. So two values of an embedder are never dropped in one
//! unwinding: each has a catch of its own, and so has the payload of a panic, whose destructor is the embedder's too.

mod trace;

pub(crate) use trace::prepare;

use std::{
    any::Any,
    backtrace::Backtrace,
    borrow::Cow,
    error::Error,
    fmt,
    future::Future,
    iter, mem,
    ops::{Deref, DerefMut},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use trace::Trace;

/// The number of causes of an error that are logged.
const CAUSES_MAX: usize = 32;

/// A panic that was caught. Dropping it drops the payload, whatever that does.
pub(crate) struct Panic {
    payload: Option<Box<dyn Any + Send>>,
    /// Where it was raised, if that was noted.
    trace: Option<Box<Trace>>,
}

impl Panic {
    /// A panic with this payload.
    pub(crate) fn new(payload: Box<dyn Any + Send>) -> Self {
        let mut panic = Self { payload: Some(payload), trace: None };
        panic.trace = trace::take(panic.message());
        panic
    }

    /// Whether the payload is of this type.
    pub(crate) fn is<T: 'static>(&self) -> bool {
        self.payload.as_ref().is_some_and(|payload| payload.is::<T>())
    }

    /// The message that it was raised with, if that is a text.
    pub(crate) fn message(&self) -> Option<&str> {
        let payload = self.payload.as_deref()?;
        let text = payload.downcast_ref::<&str>().copied();
        text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
    }

    /// What it was raised with, for a log line: the message, or an error with its causes.
    pub(crate) fn told(&self) -> Cow<'_, str> {
        let error = || {
            let payload = self.payload.as_deref()?;
            payload.downcast_ref::<Box<dyn Error + Send + Sync>>().map(|error| causes(error.as_ref()))
        };
        let told = self.message().map(Cow::Borrowed).or_else(|| error().map(Cow::Owned));
        told.unwrap_or(Cow::Borrowed("not a string"))
    }

    /// Where in the source it was raised, if that was noted.
    pub(crate) fn location(&self) -> Option<&str> {
        self.trace.as_ref().map(|trace| trace.location())
    }

    /// The stack on which it was raised, if that was noted.
    pub(crate) fn backtrace(&self) -> Option<&Backtrace> {
        self.trace.as_ref()?.backtrace()
    }

    /// Logs a panic of a destructor that ends here.
    pub(crate) fn log_drop(&self) {
        tracing::error!(
            panic = &*self.told(),
            location = self.location(),
            backtrace = self.backtrace().map(tracing::field::display),
            "a destructor panicked"
        );
    }

    /// Raises it again.
    pub(crate) fn resume(mut self) -> ! {
        let payload = self.payload.take().expect("the payload is there until it is dropped");
        trace::put_back(self.trace.take());
        std::panic::resume_unwind(payload)
    }
}

impl Drop for Panic {
    fn drop(&mut self) {
        if let Some(payload) = self.payload.take()
            && let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload)))
        {
            mem::forget(another); // it would have a destructor too, and so on
        }
    }
}

impl fmt::Debug for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Panic").field(&self.message()).finish()
    }
}

/// The texts of an error and of all its causes, in one line.
pub(crate) fn causes(error: &(dyn Error + 'static)) -> String {
    let chain = iter::successors(Some(error), |link| (*link).source()).take(CAUSES_MAX);
    let texts = caught(|| chain.map(ToString::to_string).collect::<Vec<_>>().join(": "));
    texts.unwrap_or_else(|_| "an error whose text cannot be written".to_owned())
}

/// Runs code of the embedder.
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(run)).map_err(Panic::new)
}

/// A value of the embedder. A panic of its destructor goes no further than here.
pub(crate) struct Contained<T>(Option<T>);

impl<T> Contained<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// Drops the value; returns the panic of its destructor.
    pub(crate) fn end(&mut self) -> Option<Panic> {
        let value = self.0.take()?;
        caught(|| drop(value)).err()
    }
}

impl<T: Clone> Clone for Contained<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> DerefMut for Contained<T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("the value is there until it is dropped")
    }
}

impl<T> Deref for Contained<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("the value is there until it is dropped")
    }
}

impl<T> Drop for Contained<T> {
    fn drop(&mut self) {
        if let Some(panic) = self.end() {
            panic.log_drop();
        }
    }
}

/// A future of the embedder. Its result, or its panic: that of its code, else that of its destructor, which runs as
/// soon as it is done.
pub(crate) struct Caught<F>(Option<F>);

impl<F: Future + Unpin> Caught<F> {
    pub(crate) fn new(future: F) -> Self {
        Self(Some(future))
    }

    /// Whether it is done or dropped.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_none()
    }

    /// Drops the future if it is not done; returns the panic of its destructor.
    pub(crate) fn end(&mut self) -> Option<Panic> {
        let future = self.0.take()?;
        caught(|| drop(future)).err()
    }
}

impl<F: Future + Unpin> Future for Caught<F> {
    type Output = Result<F::Output, Panic>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let future = self.0.as_mut().expect("a future is not polled after its end");
        let done = match caught(|| Pin::new(future).poll(cx)) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(panic) => Err(panic),
        };
        Poll::Ready(match (done, self.end()) {
            (Ok(_), Some(panic)) => Err(panic),
            (done, _) => done,
        })
    }
}

impl<F> Drop for Caught<F> {
    fn drop(&mut self) {
        if let Some(future) = self.0.take()
            && let Err(panic) = caught(|| drop(future))
        {
            panic.log_drop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot book")]
    struct Outer(#[source] std::io::Error);

    /// V5: the log line of an unclassified error has the whole chain of its causes.
    #[test]
    fn every_cause_is_logged() {
        assert_eq!(causes(&Outer(std::io::Error::other("no route"))), "cannot book: no route");
    }
}
