//! Why a call may not even wait.

/// Why a call may not even wait.
///
/// # Examples
/// ```
/// # use std::sync::Arc;
/// # use toolyard_admission::{Permit, Waiter};
/// # struct Batch;
/// # impl Waiter for Batch {
/// #     fn start(self: Arc<Self>, _: u32, _: Permit<'_>) {}
/// #     fn resume(self: Arc<Self>, _: u32) {}
/// #     fn expire(self: Arc<Self>, _: u32) {}
/// #     fn refuse(&self, _: u32) {}
/// # }
/// use tokio::time::Instant;
/// use toolyard_admission::{Admission, Ask, Need, Refusal, UnitKind};
/// let nobody_waits = Admission::new([20, 1, 10], 0, 0);
/// let full = Need::of(nobody_waits.open(UnitKind::Session, 0), None, None);
/// let asked = nobody_waits.admit(&Ask::of_root(1, full), Instant::now(), (&Arc::new(Batch), 0));
/// assert!(matches!(asked, Err(Refusal::QueueFull { queue_max: 0 })));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The session's or the engine's queue is full (CC-4).
    QueueFull {
        /// The bound that was reached.
        queue_max: usize,
    },
    /// Its lease is not available now, and what its ancestors hold forbids waiting for it (CC-8).
    SerialNesting,
}
