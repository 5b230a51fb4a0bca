//! The right to one attempt, as an attempt holds it.

use super::{Admission, SharedBreaker};
use std::sync::Arc;

/// The right to one attempt. If it is dropped, nothing is said of how the attempt ended; that of a probe goes to
/// the next call then (CB-5). 16 bytes, and while the breaker is closed it counts no reference.
#[derive(Debug)]
#[must_use = "the breaker has to be told how the attempt ended"]
pub(crate) struct Slot {
    admission: Admission,
    /// Set while the slot is to be given back.
    probe_of: Option<Arc<SharedBreaker>>,
}

impl Slot {
    pub(super) fn new(admission: Admission, of: &Arc<SharedBreaker>) -> Self {
        Self { admission, probe_of: admission.is_probe.then(|| Arc::clone(of)) }
    }

    /// Whether it is the one that is let go to see how it goes.
    pub(crate) fn is_probe(&self) -> bool {
        self.admission.is_probe
    }

    /// Ends it, with nothing to give back: the breaker is told.
    pub(super) fn into_admission(mut self) -> Admission {
        self.probe_of = None;
        self.admission
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(breaker) = self.probe_of.take() {
            breaker.give_back(self.admission);
        }
    }
}
