//! The right to run one call; given back on drop.

use super::{Admission, Need, UnitKind};
use std::sync::Arc;

/// Everything one running call holds. Dropping it gives all of it back and starts whoever can go now, so a
/// panic, a timeout and an aborted task leak nothing.
#[must_use = "a permit that is dropped is given back"]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    need: Need,
    /// Whether its handler was given up and still runs.
    is_zombie: bool,
}

impl Permit {
    /// The table has granted `need`.
    pub(super) fn new(admission: Arc<Admission>, need: Need) -> Self {
        Self { admission, need, is_zombie: false }
    }

    /// The handler was given up and still runs: gives back what it need not go on holding (SC-6).
    pub(crate) fn become_zombie(&mut self, keeps: impl Fn(UnitKind) -> bool) {
        let freed = {
            let mut table = self.admission.table();
            let (kept, freed) = self.need.split(|unit| table.kind(unit).is_some_and(&keeps));
            table.mark_zombie(kept);
            self.need = kept;
            freed
        };
        self.is_zombie = true;
        self.admission.release(freed);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if self.is_zombie {
            self.admission.release_zombie(self.need);
        } else {
            self.admission.release(self.need);
        }
    }
}
