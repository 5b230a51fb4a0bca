//! The attempt that runs next where another has ended.
//!
//! Whatever releases permits starts the call that waited for them. A runner that does so at the end of its attempt is
//! about to be free itself, so the call runs there, without a wake-up and a trip through the scheduler.

use crate::call::{attempt::Attempt, engine::EngineCore};
use std::{cell::RefCell, marker::PhantomData, mem::ManuallyDrop, ptr};

thread_local! {
    /// `None` while no attempt is ending on this thread. It has no destructor, so that it is available to the end of
    /// the thread: permits may be among the last values that a thread drops.
    static NEXT: RefCell<Option<Unblocked>> = const { RefCell::new(None) };
}

/// The attempt that was unblocked while another one was ending.
struct Unblocked {
    /// The engine of that attempt, only to be compared: another engine may have another runtime.
    engine: *const EngineCore,
    first: Option<ManuallyDrop<Attempt>>,
}

/// Keeps the first attempt that is unblocked on this thread during its lifetime.
pub(crate) struct Next {
    /// An outer one keeps attempts already.
    is_within: bool,
    /// Not `Send`: it belongs to its thread.
    _thread: PhantomData<*const ()>,
}

impl Next {
    /// Starts to keep what is unblocked in this engine.
    pub(crate) fn of(engine: &EngineCore) -> Self {
        let is_within = NEXT.with_borrow_mut(|next| {
            let is_within = next.is_some();
            next.get_or_insert(Unblocked { engine, first: None });
            is_within
        });
        Self { is_within, _thread: PhantomData }
    }

    /// Takes the attempt that was kept.
    pub(crate) fn taken(self) -> Option<Attempt> {
        self.take()
    }

    fn take(&self) -> Option<Attempt> {
        if self.is_within {
            return None;
        }
        NEXT.with_borrow_mut(|next| {
            if matches!(next, Some(Unblocked { first: None, .. })) {
                *next = None; // usually, and then nothing is moved
            }
            next.take()?.first.map(ManuallyDrop::into_inner)
        })
    }

    /// Keeps an unblocked attempt; returns it if it is not to be kept.
    pub(crate) fn offer(attempt: Attempt) -> Option<Attempt> {
        NEXT.with_borrow_mut(|next| match next {
            Some(Unblocked { engine, first: first @ None }) if ptr::eq(*engine, attempt.engine()) => {
                *first = Some(ManuallyDrop::new(attempt));
                None
            }
            _ => Some(attempt),
        })
    }
}

impl Drop for Next {
    /// Something went wrong in between: the kept attempt is run elsewhere.
    fn drop(&mut self) {
        if let Some(attempt) = self.take() {
            attempt.spawn();
        }
    }
}
