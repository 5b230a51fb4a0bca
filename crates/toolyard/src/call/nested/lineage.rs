//! Which call a dispatch belongs to (CC-7b).

use crate::{
    call::batch::BatchState,
    tasks::{Caught, Panic, inside, is_outside},
};
use scoped_tls::scoped_thread_local;
use std::{
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
        CALL.set(call, || inside(|| handler.end()))
    }
}

impl<H: Future + Unpin> Future for Within<'_, H> {
    type Output = Result<H::Output, Panic>;

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { call, handler } = &mut *self;
        CALL.set(call, || inside(|| Pin::new(handler).poll(cx)))
    }
}

impl<H: Future + Unpin> Drop for Within<'_, H> {
    fn drop(&mut self) {
        if let Some(panic) = self.end() {
            let batch = &self.call.batch;
            let tool = &*batch.at(self.call.index).call().name;
            panic.log(
                "a handler panicked when it was dropped",
                Some(tool),
                batch.session.engine.redactor.as_ref(),
            );
        }
    }
}

/// The call whose handler this task runs, if it runs one. The call may have ended: a handler that cannot be dropped
/// goes on, but nothing is done for it any more.
pub(crate) fn current() -> Option<CallRef> {
    let is_within = CALL.is_set() && !is_outside();
    if is_within { CALL.with(|call| Some(call.clone())) } else { None }
}

/// The call that a dispatch or a fork belongs to has ended, and its batch is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallGone;

impl CallRef {
    /// Whether its handler runs: it has no result yet, or its flight goes on for others.
    pub(crate) fn runs(&self) -> bool {
        self.at().started().is_some()
    }
}

impl std::fmt::Debug for CallRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CallRef").field(&self.at().call().id).finish()
    }
}
