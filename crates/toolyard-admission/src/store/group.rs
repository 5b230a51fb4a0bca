//! By what a lane is listed: the groups that it belongs to, and where it sleeps (`table/sleep.rs`).

use super::resource::Resource;
use crate::{ids::EntryId, need::Need, unit::Reach};

/// What the lanes listed together have in common: all they need that reaches at least as far as the queue's resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Group {
    pub(crate) need: Need,
    /// Their nearest ancestor on the lease in `need`.
    pub(crate) holder: Option<EntryId>,
}

/// The groups that a lane belongs to, by the reach of the resource where it is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Groups(pub(crate) [Group; Reach::ALL.len()]);

impl Groups {
    pub(crate) fn at(&self, reach: Reach) -> &Group {
        &self.0[reach as usize]
    }
}

/// What a lane that sleeps lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sleep {
    pub(crate) at: Resource,
    pub(crate) reach: Reach,
}

impl Sleep {
    /// Whether a lane with this sleep is listed at what reaches so far.
    pub(crate) fn is_listed(sleep: Option<Self>, reach: Reach) -> bool {
        sleep.is_none_or(|sleep| sleep.reach <= reach)
    }
}
