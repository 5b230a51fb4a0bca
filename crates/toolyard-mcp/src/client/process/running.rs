//! The processes of a server, for `Servers`, which may kill them at once.

use parking_lot::Mutex;
use std::sync::Arc;
use toolyard_process::Killer;

/// The processes of a server, if it has any. Shared by its supervisor and by `Servers`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running(Arc<Mutex<Option<Killer>>>);

impl Running {
    /// These are its processes from now on.
    pub(crate) fn set(&self, killer: Killer) {
        *self.0.lock() = Some(killer);
    }

    /// It has none.
    pub(crate) fn clear(&self) {
        *self.0.lock() = None;
    }

    /// Kills its processes.
    pub(crate) fn kill(&self) {
        if let Some(killer) = &*self.0.lock() {
            killer.kill();
        }
    }
}
