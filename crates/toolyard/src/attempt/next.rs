//! The attempt that goes on where another has ended.
//!
//! Who gives permits back starts the call that waited for them. A runner that does so at the end of its attempt has
//! nothing else to do a moment later: the call goes on there, without a wake-up and a trip through the scheduler.

use super::Attempt;
use std::{cell::RefCell, marker::PhantomData, mem::ManuallyDrop};

thread_local! {
    /// `None` while nobody on this thread comes to an end. It has no destructor, so that it is there to the end of the
    /// thread: permits may be among the last values that a thread drops.
    static NEXT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// The first attempt that was let go since somebody began to come to an end.
type Kept = Option<ManuallyDrop<Attempt>>;

/// Keeps the first attempt that is let go on this thread as long as it lives.
pub(super) struct Next {
    /// One further out keeps it already.
    is_within: bool,
    /// It belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl Next {
    pub(super) fn keep() -> Self {
        let is_within = NEXT.with_borrow_mut(|next| {
            let is_within = next.is_some();
            next.get_or_insert_default();
            is_within
        });
        Self { is_within, _thread: PhantomData }
    }

    /// What was kept.
    pub(super) fn taken(self) -> Option<Attempt> {
        self.take()
    }

    fn take(&self) -> Option<Attempt> {
        if self.is_within {
            return None;
        }
        NEXT.take().flatten().map(ManuallyDrop::into_inner)
    }

    /// Keeps an attempt that is let go; gives it back where nobody does.
    pub(super) fn offer(attempt: Attempt) -> Option<Attempt> {
        NEXT.with_borrow_mut(|next| match next {
            Some(kept @ None) => {
                *kept = Some(ManuallyDrop::new(attempt));
                None
            }
            Some(Some(_)) | None => Some(attempt),
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
