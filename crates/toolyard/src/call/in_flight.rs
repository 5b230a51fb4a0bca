//! References to a call.
//!
//! | | | |
//! |---|---|---|
//! | [`InFlight`] | borrowed, copied | the receiver of everything that is done to one call |
//! | [`CallRef`] | keeps its batch | what outlives a borrow: an attempt, a follower, a handler's own calls |
//! | [`WeakCall`] | does not keep it | a timer, or a task that is to start the call |

use crate::call::{batch::BatchState, engine::EngineCore, session::SessionCore, slot::Slot};
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

/// A reference to a call: its batch and its place there.
#[derive(Clone)]
pub(crate) struct CallRef {
    pub(crate) batch: Arc<BatchState>,
    pub(crate) index: u32,
}

impl CallRef {
    /// The call.
    #[inline(always)]
    pub(crate) fn at(&self) -> InFlight<'_> {
        InFlight { batch: &self.batch, index: self.index }
    }

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

/// The call that a dispatch or a fork belongs to has ended, and its batch is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CallGone;
