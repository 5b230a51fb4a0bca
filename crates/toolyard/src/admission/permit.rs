//! The right to run one call; given back on drop.

use super::{Admission, EntryId, Need, UnitKind};
use std::sync::Arc;

/// Everything one running call holds. Dropping it gives all of it back and starts whoever can go now, so a
/// panic, a timeout and an aborted task leak nothing.
#[must_use = "a permit that is dropped is given back"]
pub(crate) struct Permit {
    admission: Arc<Admission>,
    need: Need,
    /// Its place on its lease, if it is serial.
    entry: Option<EntryId>,
    /// Whether its handler was given up and still runs.
    is_zombie: bool,
}

impl Permit {
    /// The table has granted `need`.
    pub(super) fn new(admission: Arc<Admission>, need: Need, entry: Option<EntryId>) -> Self {
        Self { admission, need, entry, is_zombie: false }
    }

    /// The handler was given up and still runs: gives back what it need not go on holding (SC-6). A lease it
    /// keeps in any case.
    pub(crate) fn become_zombie(&mut self, keeps: impl Fn(UnitKind) -> bool) {
        let (admission, entry, need) = (&self.admission, self.entry, self.need);
        let kept = admission.change(|table, now| {
            let (kept, freed) = need.split(|unit| table.kind(unit).is_some_and(&keeps));
            table.become_zombie(kept, freed, entry, now);
            kept
        });
        (self.need, self.is_zombie) = (kept, true);
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let Self { need, entry, is_zombie, .. } = *self;
        self.admission.change(|table, now| {
            if !is_zombie {
                return table.finish(need, entry, now);
            }
            table.zombie_ended(need, entry, now);
            if let Some(entry) = entry {
                table.quiet(entry, now);
            }
        });
    }
}
