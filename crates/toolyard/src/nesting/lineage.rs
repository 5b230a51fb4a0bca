//! Which call a dispatch belongs to (CC-7b).

use crate::batch::BatchState;
use std::{future::Future, sync::Arc};

/// A call that runs.
#[derive(Clone)]
pub(crate) struct CallRef {
    pub(crate) batch: Arc<BatchState>,
    pub(crate) index: u32,
}

tokio::task_local! {
    /// The call whose handler this task runs; `None` while it runs what is not the handler's.
    static CALL: Option<CallRef>;
}

/// Runs a handler so that what it dispatches is known to be its own, through whatever session it dispatches.
pub(crate) fn within<F: Future>(call: CallRef, handler: F) -> impl Future<Output = F::Output> {
    CALL.scope(Some(call), handler)
}

/// Runs what is not the handler's on a task that may be a handler's: were it taken for the handler, a dispatch of its
/// own would wait for the one that waits for it.
pub(crate) fn outside<F: Future>(other: F) -> impl Future<Output = F::Output> {
    CALL.scope(None, other)
}

/// The call whose handler this task runs, if it runs one and the call has not ended.
pub(crate) fn current() -> Option<CallRef> {
    CALL.try_with(|call| call.as_ref().filter(|call| call.runs()).cloned()).ok().flatten()
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
