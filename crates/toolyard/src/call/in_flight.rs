//! A call in flight: the receiver of everything that is done to one call.

use super::{batch::BatchState, engine::EngineCore, nested::CallRef, session::SessionCore, slot::Slot};
use std::sync::{Arc, Weak};

/// A call in flight, borrowed: its batch, and its place there. What outlives a borrow holds a [`CallRef`].
#[derive(Clone, Copy)]
pub(crate) struct InFlight<'a> {
    pub(crate) batch: &'a BatchState,
    pub(crate) index: u32,
}

impl BatchState {
    /// The call at this place.
    #[inline(always)]
    pub(crate) fn at(&self, index: u32) -> InFlight<'_> {
        InFlight { batch: self, index }
    }
}

impl CallRef {
    /// The call.
    #[inline(always)]
    pub(crate) fn at(&self) -> InFlight<'_> {
        InFlight { batch: &self.batch, index: self.index }
    }
}

impl<'a> InFlight<'a> {
    #[inline(always)]
    pub(crate) fn slot(self) -> &'a Slot {
        &self.batch.slots[self.index as usize]
    }

    /// A reference that keeps its batch.
    #[inline]
    pub(crate) fn owned(self) -> CallRef {
        CallRef { batch: self.shared_batch(), index: self.index }
    }

    /// A reference to its batch.
    #[inline]
    pub(crate) fn shared_batch(self) -> Arc<BatchState> {
        self.batch.me.upgrade().expect("a batch that is borrowed is alive")
    }

    /// A reference that does not keep its batch.
    pub(crate) fn downgrade(self) -> WeakCall {
        WeakCall { batch: self.batch.me.clone(), index: self.index }
    }

    #[inline(always)]
    pub(crate) fn engine(self) -> &'a Arc<EngineCore> {
        &self.batch.session.engine
    }

    #[inline(always)]
    pub(crate) fn session(self) -> &'a Arc<SessionCore> {
        &self.batch.session
    }

    /// Whether both are the same call.
    pub(crate) fn is(self, other: &CallRef) -> bool {
        std::ptr::eq(self.batch, Arc::as_ptr(&other.batch)) && self.index == other.index
    }
}

/// A reference to a call that does not keep its batch.
#[derive(Clone)]
pub(crate) struct WeakCall {
    batch: Weak<BatchState>,
    index: u32,
}

impl WeakCall {
    /// The call; `None` if its batch is gone.
    pub(crate) fn upgrade(&self) -> Option<CallRef> {
        Some(CallRef { batch: self.batch.upgrade()?, index: self.index })
    }
}
