//! How the driver of a batch is woken.

use futures::task::AtomicWaker;
use std::{
    sync::atomic::{AtomicBool, Ordering},
    task::Waker,
};

/// Wakes the driver of a batch, the only task that waits for it.
///
/// Whoever wakes it changes what the driver waits for and then looks at `is_running`; the driver clears `is_running`
/// and then looks at what it waits for. All of this is sequentially consistent, so one that skips the wake-up has made
/// its change in time for the driver to see it.
#[derive(Default)]
pub(crate) struct DriverWaker {
    driver: AtomicWaker,
    /// The driver is running, in this batch or in the stream that the batch is a piece of.
    is_running: AtomicBool,
}

impl DriverWaker {
    /// Suppresses wake-ups while the driver runs: it checks again before it waits, and has polled the in-place calls
    /// by then.
    pub(crate) fn runs(&self) {
        self.is_running.store(true, Ordering::Relaxed);
    }

    /// Registers the driver's waker. The driver must check once more afterwards, before it waits.
    pub(crate) fn register(&self, driver: &Waker) {
        if self.is_running.load(Ordering::Relaxed) {
            self.is_running.store(false, Ordering::SeqCst);
        }
        self.driver.register(driver);
    }

    /// Wakes the driver, because what it waits for may have happened.
    pub(crate) fn wake(&self) {
        if !self.is_running.load(Ordering::SeqCst) {
            self.driver.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::task::{ArcWake, waker};
    use std::sync::{Arc, atomic::AtomicUsize};

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl ArcWake for Wakes {
        fn wake_by_ref(wakes: &Arc<Self>) {
            wakes.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_driver_that_looks_for_itself_is_left_alone_until_it_waits() {
        let (wakes, driver) = (Arc::new(Wakes::default()), DriverWaker::default());
        let task = waker(wakes.clone());
        let woken = || wakes.0.swap(0, Ordering::Relaxed);
        for _ in 0..2 {
            driver.runs();
            driver.wake();
            assert_eq!(woken(), 0, "it looks for itself");
            driver.register(&task);
            driver.wake();
            assert_eq!(woken(), 1, "it waits");
            driver.wake();
            assert_eq!(woken(), 0, "once for each time it waits");
            driver.register(&task);
        }
    }
}
