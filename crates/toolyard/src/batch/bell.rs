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
