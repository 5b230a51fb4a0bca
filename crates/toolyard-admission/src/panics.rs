//! Panics of code that must not keep other code from running.

use std::{
    any::Any,
    mem,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
};

/// The first panic of several pieces of code that all run, to be raised after the last of them.
#[derive(Default)]
pub(crate) struct FirstPanic(Option<Box<dyn Any + Send>>);

impl FirstPanic {
    /// Runs code; `None` when it panics.
    pub(crate) fn catch<T>(&mut self, run: impl FnOnce() -> T) -> Option<T> {
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(value) => Some(value),
            Err(payload) => {
                self.keep(payload);
                None
            }
        }
    }

    #[cold]
    fn keep(&mut self, payload: Box<dyn Any + Send>) {
        if self.0.is_none() {
            self.0 = Some(payload);
        } else if let Err(another) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            mem::forget(another); // it would have a destructor too, and so on
        }
    }

    /// Raises the first panic, if there was one.
    pub(crate) fn raise(self) {
        if let Some(payload) = self.0 {
            resume_unwind(payload);
        }
    }
}
