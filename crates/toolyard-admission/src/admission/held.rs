//! What a running call holds.

use crate::{ids::EntryId, need::Need};

/// What a running call holds: its units and its entry on a lease. It is a name for them, not their owner: whoever has
/// it gives it back once, in one of the ways that [`Admission`](crate::Admission) has.
///
/// It is `Copy` because a running call is known by it in two places at once: who runs the call gives it back, and what
/// its handler dispatches asks it for its lineage and parks it. An owner would change hands between the two under a
/// lock, at the start and at the end of every call, though few handlers dispatch anything.
///
/// # Examples
/// ```
/// use tokio::time::Instant;
/// use toolyard_admission::{Admission, Need};
/// use toolyard_core::ToolClass;
/// let admission = Admission::new([1, 1, 1], 1_000, 100);
/// let need = Need::of(admission.open_class(ToolClass::Read), None, None);
/// let held = admission.try_admit(1, need).expect("nothing runs").hand_over();
/// assert!(admission.try_admit(1, need).is_none(), "it is held");
/// admission.finish(held, Instant::now());
/// assert!(admission.try_admit(1, need).is_some());
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Held {
    pub(super) need: Need,
    pub(super) entry: Option<EntryId>,
}

impl Held {
    /// Only its entry on a lease.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, Need, Scope, UnitKind};
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// let session = admission.open(UnitKind::Session, 1);
    /// let serial = Need::serial(admission.open_lease(Scope::Tree), None, Some(session));
    /// let held = admission.try_admit(1, serial).expect("nothing runs").hand_over();
    /// // Its handler is parked, so its units are with others; when it is over, its entry is what is left.
    /// let parked = admission.park(held, 100, 100).expect("few are parked");
    /// parked.start();
    /// admission.release(held.without_units()).start();
    /// ```
    #[inline]
    pub fn without_units(self) -> Self {
        Self { need: Need::default(), entry: self.entry }
    }

    /// Only its units.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, Need, Scope};
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// let serial = Need::serial(admission.open_lease(Scope::Tree), None, None);
    /// let held = admission.try_admit(1, serial).expect("nothing runs").hand_over();
    /// assert_eq!(held.units_only().lineage(None), None);
    /// ```
    #[inline]
    pub fn units_only(self) -> Self {
        Self { need: self.need, entry: None }
    }

    /// The nearest lease entry in the lineage of calls nested in it: its own, else that of its ancestors.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, Ask, Need, Scope};
    /// use toolyard_core::ToolClass;
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// let serial = Need::serial(admission.open_lease(Scope::Tree), None, None);
    /// let held = admission.try_admit(1, serial).expect("nothing runs").hand_over();
    /// let read = Need::of(admission.open_class(ToolClass::Read), None, None);
    /// let nested = Ask { root: 1, depth: 1, lineage: held.lineage(None), need: read };
    /// assert!(nested.lineage.is_some());
    /// ```
    #[inline]
    pub fn lineage(self, ancestors: Option<EntryId>) -> Option<EntryId> {
        self.entry.or(ancestors)
    }
}
