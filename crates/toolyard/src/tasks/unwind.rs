//! Panics in code of the embedder: each is caught where that code is called or dropped.
//!
//! A panic that meets another on its way ends the process. So two values of an embedder are never dropped in one
//! unwinding: each has a catch of its own, and so has the payload of a panic, whose destructor is the embedder's too.

mod log;
mod trace;

#[cfg(test)]
pub(crate) use log::logged;
pub(crate) use log::{log_error, log_unclassified};
pub(crate) use trace::prepare;

use std::{
    any::Any,
    fmt,
    future::Future,
    mem,
    ops::{Deref, DerefMut},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use trace::Trace;

/// A panic that was caught. Dropping it drops the payload, whatever that does.
pub(crate) struct Panic {
    payload: Option<Box<dyn Any + Send>>,
    /// Where it was raised, if that was noted.
    trace: Option<Box<Trace>>,
}

impl Panic {
    /// A panic with this payload.
    #[cold]
    #[inline(never)]
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

    /// This panic, after which `second` was raised: it is logged, and nothing else comes of it.
    pub(crate) fn before(self, second: Self) -> Self {
        second.log_drop();
        self
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

/// Runs code of the embedder. Always inlined: out of line, what the code returns is copied once more, and whether the
/// compiler does so for the handler of a call, whose result is large, changes with its surroundings.
#[inline(always)]
pub(crate) fn caught<T>(run: impl FnOnce() -> T) -> Result<T, Panic> {
    catch_unwind(AssertUnwindSafe(run)).map_err(Panic::new)
}

/// What has come of code, once what it ran on was dropped, maybe with a panic. The first panic is the one that counts.
pub(crate) fn after_drop<T>(done: Result<T, Panic>, panic: Option<Panic>) -> Result<T, Panic> {
    match (done, panic) {
        (done, None) => done,
        (Ok(_), Some(panic)) => Err(panic),
        (Err(first), Some(second)) => Err(first.before(second)),
    }
}

/// A value of the embedder. A panic of its destructor goes no further than here.
pub(crate) struct Contained<T>(Option<T>);

impl<T> Contained<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }

    /// Drops the value, where it is; returns the panic of its destructor.
    pub(crate) fn end(&mut self) -> Option<Panic> {
        self.0.as_ref()?;
        caught(|| self.0 = None).err()
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

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        assert!(!self.is_over(), "a future is not polled after its end");
        let (future, mut output) = (&mut self.0, None);
        // One catch for its code and its destructor: they do not run in one unwinding, and neither drops the output.
        let polled = caught(|| {
            if let Some(running) = future
                && let Poll::Ready(done) = Pin::new(running).poll(cx)
            {
                output = Some(done);
                *future = None;
            }
        });
        match (polled, output) {
            (Ok(()), None) => Poll::Pending,
            (Ok(()), Some(output)) => Poll::Ready(Ok(output)),
            (Err(panic), _) => Poll::Ready(after_drop(Err(panic), self.end())),
        }
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
