//! The names that the table gives out.

use crate::slab::Key;

/// A counting semaphore of the table, as [`Admission::open`](crate::Admission::open) returns it.
///
/// # Examples
/// ```
/// use toolyard_admission::{Admission, UnitKind};
/// let admission = Admission::new([20, 1, 10], 1_000, 100);
/// let (first, second) = (admission.open(UnitKind::Session, 4), admission.open(UnitKind::Session, 4));
/// assert_ne!(first, second);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UnitId(pub(crate) Key);

/// A serial lease of the table, as [`Admission::open_lease`](crate::Admission::open_lease) returns it (CC-8).
///
/// # Examples
/// ```
/// use toolyard_admission::{Admission, Scope};
/// let admission = Admission::new([20, 1, 10], 1_000, 100);
/// let (first, second) = (admission.open_lease(Scope::Tree), admission.open_lease(Scope::Tree));
/// assert_ne!(first, second, "each tree has its own");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LeaseId(pub(crate) Key);

/// A serial call's entry on its lease, from the grant until the call is quiescent. Calls made by its handler name it as
/// their lineage.
///
/// # Examples
/// ```
/// use toolyard_admission::{Admission, Need, Scope};
/// let admission = Admission::new([20, 1, 10], 1_000, 100);
/// let serial = Need::serial(admission.open_lease(Scope::Tree), None, None);
/// let permit = admission.try_admit(1, serial).expect("nothing runs");
/// assert!(permit.held().lineage(None).is_some(), "a serial call has an entry");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EntryId(pub(crate) Key);

/// A place in line, by which a waiter [leaves](crate::Admission::leave).
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
/// use toolyard_admission::{Admission, Admitted, Ask, LeaveResult, Need, UnitKind};
/// let admission = Admission::new([20, 1, 10], 1_000, 100);
/// let search = Need::of(admission.open(UnitKind::Session, 1), None, None);
/// let running = admission.try_admit(1, search);
/// let asked = admission.admit(&Ask::of_root(1, search), Instant::now(), (&Arc::new(Batch), 0));
/// let Ok(Admitted::Waiting { ticket, .. }) = asked else { panic!("one runs already") };
/// let (left, granted) = admission.leave(ticket);
/// granted.start();
/// assert_eq!(left, LeaveResult::Left);
/// # drop(running);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    pub(crate) lane: u32,
    pub(crate) number: u64,
}
