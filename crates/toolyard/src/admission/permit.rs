//! The right to run one call; given back on drop.

use super::{Admission, Need, UnitKind};
use std::sync::Arc;

/// Everything one running call holds. Dropping it gives all of it back and starts whoever can go now, so a
/// panic, a timeout and an aborted task leak nothing.
#[must_use = "a permit that is dropped is given back"]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    need: Need,
}

impl Permit {
    /// The table has granted `need`.
    pub(super) fn new(admission: Arc<Admission>, need: Need) -> Self {
        Self { admission, need }
    }

    /// Gives back the units of other kinds and keeps those of `kinds`: what a handler that was given up and
    /// still runs goes on holding (SC-6).
    pub(crate) fn keep_only(&mut self, keep: impl Fn(UnitKind) -> bool) {
        let (kept, freed) = {
            let table = self.admission.table();
            self.need.split(|unit| table.kind(unit).is_some_and(&keep))
        };
        self.need = kept;
        self.admission.release(freed);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.admission.release(self.need);
    }
}
