//! The right to run one call that had to wait, held until the call is started and released on drop.

use super::{Admission, EntryId, Held, Need};
use std::sync::Arc;
use tokio::time::Instant;

/// Everything one call was granted. Dropping it releases all of it and starts the calls that this unblocks. An
/// attempt that takes it over does the same with what it holds.
#[must_use = "dropping a permit releases it"]
pub(crate) struct Permit<'a> {
    /// `None` once an attempt has taken over what it holds.
    admission: Option<&'a Arc<Admission>>,
    pub(super) need: Need,
    /// Its entry on the lease, if it is serial.
    pub(super) entry: Option<EntryId>,
    granted_at: Instant,
}

impl<'a> Permit<'a> {
    /// Wraps what the table granted at `granted_at`.
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

    /// Passes what it holds to the attempt.
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
