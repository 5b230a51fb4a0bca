//! Which call a dispatch belongs to (CC-7b).

use crate::batch::BatchState;
use scoped_tls::scoped_thread_local;
use std::{
    cell::Cell,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

/// A call that runs.
#[derive(Clone)]
pub(crate) struct CallRef {
    pub(crate) batch: Arc<BatchState>,
    pub(crate) index: u32,
}

scoped_thread_local! {
    /// The call whose handler is being polled on this thread. Lent, not given: two more to count the batch would be the two
    /// that cores contend for at every call.
    static CALL: CallRef
}

thread_local! {
    /// Whether what is being polled within that is not the handler's.
    static IS_OUTSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a handler so that what it dispatches is known to be its own, through whatever session it dispatches, and whether it
/// comes to its end or is dropped.
pub(crate) fn within<H: Future + Unpin>(call: &CallRef, handler: H) -> Within<'_, H> {
    Within { call, handler: Some(handler) }
}

/// A handler, known for whose it is.
pub(crate) struct Within<'a, H> {
    call: &'a CallRef,
    /// There until it is dropped.
    handler: Option<H>,
}

impl<H: Future + Unpin> Future for Within<'_, H> {
    type Output = H::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<H::Output> {
        let call = self.call;
        let handler = self.handler.as_mut().expect("a handler is dropped with this");
        CALL.set(call, || marked(false, || Pin::new(handler).poll(cx)))
    }
}

impl<H> Drop for Within<'_, H> {
    fn drop(&mut self) {
        let Self { call, handler } = self;
        CALL.set(call, || marked(false, || *handler = None));
    }
}

/// Runs what is not the handler's on a task that may be a handler's: were it taken for the handler, a dispatch of its
/// own would wait for the one that waits for it.
pub(crate) fn outside<F: Future>(other: F) -> Outside<F> {
    Outside { other: Some(Box::pin(other)) }
}

/// What is nobody's handler.
pub(crate) struct Outside<F> {
    /// There until it is dropped.
    other: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Outside<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let other = self.other.as_mut().expect("what is outside is dropped with this");
        marked(true, || other.as_mut().poll(cx))
    }
}

impl<F> Drop for Outside<F> {
    fn drop(&mut self) {
        marked(true, || self.other = None);
    }
}

/// Does it, marked as the handler's or not.
fn marked<T>(is_outside: bool, it: impl FnOnce() -> T) -> T {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            IS_OUTSIDE.set(self.0);
        }
    }
    let _back = Back(IS_OUTSIDE.replace(is_outside));
    it()
}

/// The call whose handler this task runs, if it runs one and the call has not ended.
pub(crate) fn current() -> Option<CallRef> {
    let is_within = CALL.is_set() && !IS_OUTSIDE.get();
    if is_within { CALL.with(|call| call.runs().then(|| call.clone())) } else { None }
}

impl CallRef {
    /// Whether it is the call at this place.
    pub(crate) fn is(&self, batch: &BatchState, index: u32) -> bool {
        std::ptr::eq(Arc::as_ptr(&self.batch), batch) && self.index == index
    }

    /// Whether its handler runs and its call has no result yet.
    pub(crate) fn runs(&self) -> bool {
        self.batch.started(self.index).is_some()
    }
}

impl std::fmt::Debug for CallRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CallRef").field(&self.batch.call(self.index).id).finish()
    }
}
