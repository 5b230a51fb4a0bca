//! What a pool actor publishes, read on the way of every call without a message.

use super::PoolState;
use arc_swap::ArcSwap;
use std::sync::Arc;
use toolyard_core::ToolClass;

/// A pool's word on how calls are admitted. It stays valid while its actor is being restarted (RA-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) state: PoolState,
    pub(crate) width: usize,
    /// How often the actor that publishes it has been restarted.
    pub(crate) restarts: u32,
}

/// The last lease of each class.
#[derive(Debug)]
pub(crate) struct Leases {
    by_class: [ArcSwap<Lease>; 3],
}

impl Leases {
    /// Leases of running pools of these widths, in the order of [`ToolClass::index`].
    pub(crate) fn new(widths: [usize; 3]) -> Arc<Self> {
        let lease = |width| Lease { state: PoolState::Running, width, restarts: 0 };
        Arc::new(Self { by_class: widths.map(|width| ArcSwap::from_pointee(lease(width))) })
    }

    /// The last lease of a class.
    pub(crate) fn get(&self, class: ToolClass) -> Lease {
        **self.by_class[class.index()].load()
    }

    pub(super) fn publish(&self, class: ToolClass, lease: Lease) {
        self.by_class[class.index()].store(Arc::new(lease));
    }
}
