//! How the driver of a batch is woken.

use futures::task::AtomicWaker;
use std::{
    sync::atomic::{AtomicBool, Ordering},
    task::Waker,
};

/// Wakes the driver, which alone waits for it.
///
/// Whoever rings has changed what the driver waits for; the driver registers, and looks before it waits. Both are
/// sequentially consistent with `looking`: who does not ring because of it has changed what the driver will see.
#[derive(Default)]
pub(super) struct Bell {
    driver: AtomicWaker,
    /// The driver is busy with the batch, or with the stream it is a piece of.
    looking: AtomicBool,
}

impl Bell {
    /// The driver looks for itself before it waits: until then nobody need wake it. What runs in place is over by then.
    pub(super) fn look(&self) {
        self.looking.store(true, Ordering::Relaxed);
    }

    /// The driver waits, unless it finds now that it need not.
    pub(super) fn register(&self, driver: &Waker) {
        if self.looking.load(Ordering::Relaxed) {
            self.looking.store(false, Ordering::SeqCst);
        }
        self.driver.register(driver);
    }

    /// What the driver waits for may have come to be.
    pub(super) fn ring(&self) {
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
