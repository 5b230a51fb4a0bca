//! Which call a dispatch belongs to (CC-7b).

use crate::{
    batch::BatchState,
    unwind::{Caught, Panic},
};
use scoped_tls::scoped_thread_local;
use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// A reference to a call: its batch and its place there.
#[derive(Clone)]
pub(crate) struct CallRef {
    pub(crate) batch: Arc<BatchState>,
    pub(crate) index: u32,
}

scoped_thread_local! {
    /// The call whose handler is being polled on this thread. Borrowed, not cloned: cloning would count the batch
    /// twice more, which is what cores would contend for at every call.
    static CALL: CallRef
}

thread_local! {
    /// Whether the code being polled within that is not the handler's.
    static IS_OUTSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a handler so that its dispatches are known to be its own, through whatever session they go. This holds for
/// its drop too.
pub(crate) fn within<H: Future + Unpin>(call: &CallRef, handler: H) -> Within<'_, H> {
    Within { call, handler: Caught::new(handler) }
}

/// A handler that runs [`within`] its call.
pub(crate) struct Within<'a, H: Future + Unpin> {
    call: &'a CallRef,
    handler: Caught<H>,
}

impl<H: Future + Unpin> Within<'_, H> {
    /// Drops the handler if it is not done; returns the panic of its destructor.
    pub(crate) fn end(&mut self) -> Option<Panic> {
        let Self { call, handler } = self;
        if handler.is_over() {
            return None;
        }
        CALL.set(call, || marked(false, || handler.end()))
    }
}

impl<H: Future + Unpin> Future for Within<'_, H> {
    type Output = Result<H::Output, Panic>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { call, handler } = &mut *self;
        CALL.set(call, || marked(false, || Pin::new(handler).poll(cx)))
    }
}

impl<H: Future + Unpin> Drop for Within<'_, H> {
    fn drop(&mut self) {
        if let Some(panic) = self.end() {
            let batch = &self.call.batch;
            let tool = &*batch.call(self.call.index).name;
            panic.log(
                "a handler panicked when it was dropped",
                Some(tool),
                batch.session.engine.redactor.as_ref(),
            );
        }
    }
}

/// Runs code that is not the handler's on a task that may be a handler's. If that code counted as the handler's, a
/// dispatch of its own would wait for the handler's dispatch, which waits for the code.
pub(crate) fn outside<F: Future>(other: F) -> Outside<F> {
    Outside { other: Some(Box::pin(other)) }
}

/// A future that runs [`outside`] of any handler.
pub(crate) struct Outside<F> {
    /// `None` only during its drop.
    other: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Outside<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let other = self.other.as_mut().expect("the other is set until this is dropped");
        marked(true, || other.as_mut().poll(cx))
    }
}

impl<F> Drop for Outside<F> {
    fn drop(&mut self) {
        marked(true, || self.other = None);
    }
}

/// Calls `it`, marked as the handler's code or not.
fn marked<T>(is_outside: bool, it: impl FnOnce() -> T) -> T {
    struct RestoreOnDrop(bool);
    impl Drop for RestoreOnDrop {
        fn drop(&mut self) {
            IS_OUTSIDE.set(self.0);
        }
    }
    let _back = RestoreOnDrop(IS_OUTSIDE.replace(is_outside));
    it()
}

/// The call whose handler this task runs, if it runs one. The call may have ended: a handler that cannot be dropped
/// goes on, but nothing is done for it any more.
pub(crate) fn current() -> Option<CallRef> {
    let is_within = CALL.is_set() && !IS_OUTSIDE.get();
    if is_within { CALL.with(|call| Some(call.clone())) } else { None }
}

/// The call that a dispatch or a fork belongs to has ended, and its batch is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallGone;

impl CallRef {
    /// Whether it is this call of this batch.
    pub(crate) fn is(&self, batch: &BatchState, index: u32) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.batch), batch) && self.index == index
    }

    /// Whether its handler runs: it has no result yet, or its flight goes on for others.
    pub(crate) fn runs(&self) -> bool {
        self.batch.started(self.index).is_some()
    }
}

impl std::fmt::Debug for CallRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CallRef").field(&self.batch.call(self.index).id).finish()
    }
}
