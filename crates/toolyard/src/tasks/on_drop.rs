//! What has to happen when a scope or a future ends, however it ends.

/// Runs a closure when it is dropped, unless it was disarmed before that.
///
/// ```text
///   let stop = OnDrop::new(|| batch.stop(Stop::Cancelled));
///   driven.await;      dropped here, it stops the batch
///   stop.disarm();
/// ```
#[must_use = "dropped at once, it runs at once"]
pub(crate) struct OnDrop<F: FnOnce()> {
    /// `None` once it has run or was disarmed.
    run: Option<F>,
}

impl<F: FnOnce()> OnDrop<F> {
    /// Runs `run` when this is dropped.
    #[inline]
    pub(crate) fn new(run: F) -> Self {
        Self { run: Some(run) }
    }

    /// Drops the closure without running it.
    #[inline]
    #[cfg_attr(not(test), expect(dead_code, reason = "the guards of dispatches are to become this one"))]
    pub(crate) fn disarm(mut self) {
        self.run = None;
    }
}

impl<F: FnOnce()> Drop for OnDrop<F> {
    #[inline]
    fn drop(&mut self) {
        if let Some(run) = self.run.take() {
            run();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{cell::Cell, panic::catch_unwind};

    #[test]
    fn it_runs_once_however_its_scope_ends() {
        let runs = Cell::new(0);
        let count = || OnDrop::new(|| runs.set(runs.get() + 1));
        drop(count());
        assert_eq!(runs.get(), 1);
        let unwound = catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = count();
            std::panic::resume_unwind(Box::new(()));
        }));
        assert_eq!((unwound.is_err(), runs.get()), (true, 2));
        count().disarm();
        assert_eq!(runs.get(), 2);
    }
}
