//! The right to run one call that waited for it, until the call is started; given back on drop.

use super::{Admission, EntryId, Held, Need};
use std::sync::Arc;
use tokio::time::Instant;

/// Everything one call was granted. Dropping it gives all of it back and starts whoever can go now; the attempt
/// that takes it over does the same with what it holds.
#[must_use = "a permit that is dropped is given back"]
pub(crate) struct Permit<'a> {
    /// `None` when an attempt has taken over what it holds.
    admission: Option<&'a Arc<Admission>>,
    pub(super) need: Need,
    /// Its place on its lease, if it is serial.
    pub(super) entry: Option<EntryId>,
    granted_at: Instant,
}

impl<'a> Permit<'a> {
    /// The table has granted `need` at that time.
    pub(super) fn new(
        admission: &'a Arc<Admission>,
        need: Need,
        entry: Option<EntryId>,
        granted_at: Instant,
    ) -> Self {
        Self { admission: Some(admission), need, entry, granted_at }
    }

    /// When it was granted.
    pub(crate) fn granted_at(&self) -> Instant {
        self.granted_at
    }

    /// Leaves what it holds to the attempt.
    pub(crate) fn hand_over(mut self) -> Held {
        self.admission = None;
        self.held()
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        if let Some(admission) = self.admission.take() {
            admission.finish(self.held(), Instant::now());
        }
    }
}
