//! The attempt that goes on where another has ended.
//!
//! Who gives permits back starts the call that waited for them. A runner that does so at the end of its attempt has
//! nothing else to do a moment later: the call goes on there, without a wake-up and a trip through the scheduler.

use super::Attempt;
use crate::engine::EngineCore;
use std::{cell::RefCell, marker::PhantomData, mem::ManuallyDrop, ptr};

thread_local! {
    /// `None` while nobody on this thread comes to an end. It has no destructor, so that it is there to the end of the
    /// thread: permits may be among the last values that a thread drops.
    static NEXT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// What was let go since an attempt began to come to its end.
struct Kept {
    /// The engine of that attempt, to be compared with alone. Another may have another runtime.
    engine: *const EngineCore,
    first: Option<ManuallyDrop<Attempt>>,
}

/// Keeps the first attempt that is let go on this thread as long as it lives.
pub(crate) struct Next {
    /// One further out keeps it already.
    is_within: bool,
    /// It belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl Next {
    /// Keeps what is let go of this engine.
    pub(super) fn of(engine: &EngineCore) -> Self {
        let is_within = NEXT.with_borrow_mut(|next| {
            let is_within = next.is_some();
            next.get_or_insert(Kept { engine, first: None });
            is_within
        });
        Self { is_within, _thread: PhantomData }
    }

    /// What was kept.
    pub(crate) fn taken(self) -> Option<Attempt> {
        self.take()
    }

    fn take(&self) -> Option<Attempt> {
        if self.is_within {
            return None;
        }
        NEXT.take()?.first.map(ManuallyDrop::into_inner)
    }

    /// Keeps an attempt that is let go; gives it back where nobody does.
    pub(super) fn offer(attempt: Attempt) -> Option<Attempt> {
        NEXT.with_borrow_mut(|next| match next {
            Some(Kept { engine, first: first @ None }) if ptr::eq(*engine, attempt.engine()) => {
                *first = Some(ManuallyDrop::new(attempt));
                None
            }
            _ => Some(attempt),
        })
    }
}

impl Drop for Next {
    /// Something went wrong in between: what was kept goes its own way.
    fn drop(&mut self) {
        if let Some(attempt) = self.take() {
            attempt.spawn();
        }
    }
}
