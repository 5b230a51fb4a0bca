//! How the driver of a batch is woken.

use futures::task::AtomicWaker;
use std::{
    sync::atomic::{AtomicBool, Ordering},
    task::Waker,
};

/// Wakes the driver of a batch, the only task that waits for it.
///
/// A ringer changes what the driver waits for and then looks at `looking`; the driver clears `looking` and then looks
/// at what it waits for. All of this is sequentially consistent, so a ringer that skips the wake-up has made its
/// change in time for the driver to see it.
#[derive(Default)]
pub(crate) struct Bell {
    driver: AtomicWaker,
    /// The driver is running, in this batch or in the stream that the batch is a piece of.
    looking: AtomicBool,
}

impl Bell {
    /// Suppresses wake-ups while the driver runs: it checks again before it waits, and has polled the in-place calls
    /// by then.
    pub(crate) fn look(&self) {
        self.looking.store(true, Ordering::Relaxed);
    }

    /// Registers the driver's waker. The driver must check once more afterwards, before it waits.
    pub(crate) fn register(&self, driver: &Waker) {
        if self.looking.load(Ordering::Relaxed) {
            self.looking.store(false, Ordering::SeqCst);
        }
        self.driver.register(driver);
    }

    /// Wakes the driver, because what it waits for may have happened.
    pub(crate) fn ring(&self) {
        if !self.looking.load(Ordering::SeqCst) {
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
    struct Rings(AtomicUsize);

    impl ArcWake for Rings {
        fn wake_by_ref(rings: &Arc<Self>) {
            rings.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_driver_that_looks_for_itself_is_left_alone_until_it_waits() {
        let (rings, bell) = (Arc::new(Rings::default()), Bell::default());
        let driver = waker(rings.clone());
        let woken = || rings.0.swap(0, Ordering::Relaxed);
        for _ in 0..2 {
            bell.look();
            bell.ring();
            assert_eq!(woken(), 0, "it looks for itself");
            bell.register(&driver);
            bell.ring();
            assert_eq!(woken(), 1, "it waits");
            bell.ring();
            assert_eq!(woken(), 0, "once for each time it waits");
            bell.register(&driver);
        }
    }
}
