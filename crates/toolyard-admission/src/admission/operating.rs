//! What an engine opens and closes, what its operator changes, and what people are shown.

use super::{Admission, granted::Granted};
use crate::{
    ids::{LeaseId, UnitId},
    lease::Scope,
    line::{Line, PoolLoad},
    unit::UnitKind,
};
use std::sync::Arc;
use toolyard_core::ToolClass;

impl Admission {
    /// Opens a unit of a class, with the class's width and pause state, now and after each change of them (CL-6).
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, Need};
    /// use toolyard_core::ToolClass;
    /// let admission = Admission::new([1, 1, 2], 1_000, 100);
    /// let pool = Need::of(admission.open_class(ToolClass::Concurrent), None, None);
    /// let running = [(); 3].map(|()| admission.try_admit(1, pool));
    /// assert_eq!(running.map(|permit| permit.is_some()), [true, true, false]);
    /// ```
    pub fn open_class(&self, class: ToolClass) -> UnitId {
        self.table().open_class(class)
    }

    /// Opens a unit of which `width` may be in use at once. One of a class is paused with it, and as wide as it after the
    /// next [`resize_class`](Self::resize_class).
    ///
    /// # Examples
    /// See [`UnitKind`].
    pub fn open(&self, kind: UnitKind, width: usize) -> UnitId {
        self.table().open(kind, width)
    }

    /// Sets how many calls of a root session are granted before it is another session's turn (CC-3): 1, 2 or 4. It is 1
    /// until it is set, and the caller sets it back to 1 for a session that ends.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::Admission;
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// admission.set_weight(7, 4);
    /// ```
    pub fn set_weight(&self, root: u64, weight: u8) {
        self.table().set_weight(root, weight);
    }

    /// Opens a lease for the serial calls of a session tree, or of a named scope. Two with the same scope are two
    /// leases: the caller sees to it that a scope has one.
    ///
    /// # Examples
    /// See [`LeaseId`].
    pub fn open_lease(&self, scope: Scope) -> LeaseId {
        self.table().open_lease(scope)
    }

    /// Removes a lease that has no entries and no waiters.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, Scope};
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// let lease = admission.open_lease(Scope::Tree);
    /// admission.close_lease(lease);
    /// ```
    pub fn close_lease(&self, lease: LeaseId) {
        self.table().close_lease(lease);
    }

    /// Removes units that nothing uses or waits for.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, UnitKind};
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// let session = admission.open(UnitKind::Session, 8);
    /// admission.close_units([session]);
    /// ```
    pub fn close_units(&self, units: impl IntoIterator<Item = UnitId>) {
        let mut table = self.table();
        units.into_iter().for_each(|unit| table.close_unit(unit));
    }

    /// Sets the width of one unit. The caller starts the calls that this unblocks, outside its own locks.
    ///
    /// # Examples
    /// See [`Granted`].
    pub fn resize_unit(self: &Arc<Self>, unit: UnitId, width: usize) -> Granted<'_> {
        self.grant(|table, now| table.resize_unit(unit, width, now))
    }

    /// Sets the width of every unit of a class, including units opened later. If more calls run than the new width
    /// allows, nothing is taken away: new calls wait until enough have ended. Calls that this unblocks are
    /// granted by [`Admission::grant_slice`].
    ///
    /// # Examples
    /// See [`Admission::grant_slice`].
    pub fn resize_class(&self, class: ToolClass, width: usize) {
        self.table().resize_class(class, width);
    }

    /// Pauses or resumes granting for a class, including units opened later. Running calls continue. Calls that this
    /// unblocks are granted by [`Admission::grant_slice`].
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, Need};
    /// use toolyard_core::ToolClass;
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// let read = Need::of(admission.open_class(ToolClass::Read), None, None);
    /// admission.pause_class(ToolClass::Read, true);
    /// assert!(admission.try_admit(1, read).is_none());
    /// ```
    pub fn pause_class(&self, class: ToolClass, paused: bool) {
        self.table().pause_class(class, paused);
    }

    /// Grants and starts the next few of the calls that a large change has unblocked (CC-3). Returns whether there
    /// may be more.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::Admission;
    /// use toolyard_core::ToolClass;
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// admission.resize_class(ToolClass::Read, 20);
    /// while admission.grant_slice() {} // others are admitted in between
    /// ```
    pub fn grant_slice(self: &Arc<Self>) -> bool {
        let (granted, has_more) = self.settle_slice();
        granted.start();
        has_more
    }

    /// The calls of the next slice, and whether there may be more.
    pub(super) fn settle_slice(self: &Arc<Self>) -> (Granted<'_>, bool) {
        let mut table = self.table();
        let has_more = table.settle_slice(|| self.now());
        (self.settled(&mut table), has_more)
    }

    /// How many calls of a class are running and waiting.
    ///
    /// # Examples
    /// See [`PoolLoad`].
    pub fn load(&self, class: ToolClass) -> PoolLoad {
        self.table().load(class)
    }

    /// What each lane waits for, the longest wait first. Takes time in proportion to the lanes.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::Admission;
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// assert!(admission.lines().is_empty(), "nobody waits");
    /// ```
    pub fn lines(&self) -> Vec<Line> {
        let table = self.table();
        // Read under the lock, so that no waiter can have arrived after this moment.
        table.lines(self.now())
    }
}
