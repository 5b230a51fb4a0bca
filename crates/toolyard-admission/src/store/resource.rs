//! What a release makes available.

use crate::ids::{LeaseId, UnitId};

/// What a release makes available: a unit or a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Resource {
    Unit(UnitId),
    Lease(LeaseId),
}
