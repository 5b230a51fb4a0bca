//! The right to one attempt, as the attempt holds it.

use super::{Admission, SharedBreaker};
use std::sync::Arc;

/// The right to one attempt. Dropping it records no result; if it was a probe's, the next call becomes the probe
/// (CB-5). 16 bytes, and without a reference count while the breaker is closed.
#[derive(Debug)]
#[must_use = "the breaker must learn how the attempt ended"]
pub(crate) struct Slot {
    admission: Admission,
    /// The breaker to give the slot back to on drop, if the slot is a probe's.
    probe_of: Option<Arc<SharedBreaker>>,
}

impl Slot {
    pub(crate) fn new(admission: Admission, of: &Arc<SharedBreaker>) -> Self {
        Self { admission, probe_of: admission.is_probe.then(|| Arc::clone(of)) }
    }

    /// Whether the attempt is the probe of a half-open breaker.
    pub(crate) fn is_probe(&self) -> bool {
        self.admission.is_probe
    }

    /// Consumes the slot without giving it back, because the breaker gets its result.
    pub(crate) fn into_admission(mut self) -> Admission {
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
