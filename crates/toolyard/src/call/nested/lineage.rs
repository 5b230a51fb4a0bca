//! Which call a dispatch belongs to (CC-7b).

use crate::{
    call::{
        in_flight::{CallGone, CallRef},
        session::SessionCore,
    },
    tasks::{Caught, Panic, inside, is_outside},
};
use scoped_tls::scoped_thread_local;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

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

impl SessionCore {
    /// The call that owns what is dispatched and forked here: the call whose handler runs on this task, else the call
    /// whose handler made this fork (CC-7b). It may have ended, and owns it all the same: then it is refused.
    ///
    /// # Errors
    /// [`CallGone`] if that call ended so long ago that its batch is gone.
    pub(crate) fn caller_call(&self) -> Result<Option<CallRef>, CallGone> {
        match (current(), self.made_by()) {
            (Some(call), _) => Ok(Some(call)),
            (None, None) => Ok(None),
            (None, Some(made_by)) => made_by.upgrade().map(Some).ok_or(CallGone),
        }
    }
}
