//! What a pool actor publishes, read on the path of every call without a message.

use super::PoolState;
use arc_swap::ArcSwap;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use toolyard_core::ToolClass;

/// The published state of a pool, by which calls are admitted. It stays valid while its actor is being restarted
/// (RA-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolLease {
    pub(crate) state: PoolState,
    pub(crate) width: usize,
    /// How often the actor that publishes it has been restarted.
    pub(crate) restarts: u32,
}

/// The last lease of each class.
#[derive(Debug)]
pub(crate) struct PoolLeases {
    by_class: [ArcSwap<PoolLease>; 3],
    /// Whether each class takes calls. The path of a call looks only at this, not at the rest of the lease.
    takes_calls: [AtomicBool; 3],
}

impl PoolLeases {
    /// The leases of running pools with these widths, in the order of [`ToolClass::index`].
    pub(crate) fn new(widths: [usize; 3]) -> Arc<Self> {
        let lease = |width| PoolLease { state: PoolState::Running, width, restarts: 0 };
        let by_class = widths.map(|width| ArcSwap::from_pointee(lease(width)));
        Arc::new(Self { by_class, takes_calls: [const { AtomicBool::new(true) }; 3] })
    }

    /// Whether a class takes calls: it is running, or it is paused and lets them wait.
    pub(crate) fn takes_calls(&self, class: ToolClass) -> bool {
        self.takes_calls[class.index()].load(Ordering::Acquire)
    }

    /// The current lease of a class.
    pub(crate) fn get(&self, class: ToolClass) -> PoolLease {
        **self.by_class[class.index()].load()
    }

    /// Changes the current lease of a class and publishes it.
    pub(super) fn change(&self, class: ToolClass, change: impl FnOnce(&mut PoolLease)) {
        let mut lease = self.get(class);
        change(&mut lease);
        self.publish(class, lease);
    }

    pub(super) fn publish(&self, class: ToolClass, lease: PoolLease) {
        let takes_calls = matches!(lease.state, PoolState::Running | PoolState::Paused);
        self.by_class[class.index()].store(Arc::new(lease));
        self.takes_calls[class.index()].store(takes_calls, Ordering::Release);
    }
}
