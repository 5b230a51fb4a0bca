//! Named serial scopes, which all sessions of an engine share (CC-8).

use foldhash::HashMap;
use parking_lot::Mutex;
use std::sync::Arc;
use toolyard_admission::{Admission, LeaseId, Scope};

/// The leases of named scopes, such as a workspace or a database. They open with their first call and stay open as
/// long as the engine: names come from tools, so there are few.
pub(crate) struct Scopes {
    admission: Arc<Admission>,
    leases: Mutex<HashMap<Arc<str>, LeaseId>>,
}

impl Scopes {
    pub(crate) fn new(admission: Arc<Admission>) -> Self {
        Self { admission, leases: Mutex::default() }
    }

    pub(super) fn lease(&self, name: &Arc<str>) -> LeaseId {
        let mut leases = self.leases.lock();
        let open = || self.admission.open_lease(Scope::Named(name.clone()));
        *leases.entry(name.clone()).or_insert_with(open)
    }
}
