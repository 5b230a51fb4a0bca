//! Opening and closing units and leases, and the changes that an operator makes.

use super::{Table, trace_record::TraceRecord};
use crate::{
    ids::{LeaseId, UnitId},
    lease::Scope,
    moment::Moment,
    need::Need,
    store::{party::PlaceInLine, resource::Resource, units::Unit},
    unit::UnitKind,
};
use toolyard_core::ToolClass;

impl<W: PlaceInLine> Table<W> {
    /// Opens a unit with the class's current width and pause state.
    pub(crate) fn open_class(&mut self, class: ToolClass) -> UnitId {
        self.open(UnitKind::Class(class), self.classes[class.index()].width)
    }

    /// Opens a unit.
    pub(crate) fn open(&mut self, kind: UnitKind, width: usize) -> UnitId {
        let paused = matches!(kind, UnitKind::Class(class) if self.classes[class.index()].paused);
        let unit = UnitId(self.units.insert(Unit::new(kind, width, paused)));
        self.trace_change(|| TraceRecord::of_unit("open", unit));
        unit
    }

    /// Removes a unit that nothing uses or waits for.
    pub(crate) fn close_unit(&mut self, UnitId(unit): UnitId) {
        self.trace_change(|| TraceRecord::of_unit("close", UnitId(unit)));
        let unit = self.units.remove(unit);
        let is_idle = unit.is_some_and(|unit| unit.in_use == 0 && unit.queue.is_none());
        // A second panic in a drop would end the process.
        debug_assert!(is_idle || std::thread::panicking(), "unit in use");
    }

    /// Opens a stack for serial calls. Two with the same scope are two stacks: the caller sees to it that a scope has
    /// only one.
    pub(crate) fn open_lease(&mut self, scope: Scope) -> LeaseId {
        self.leases.open(scope)
    }

    /// Removes a lease that has no entries and no waiters.
    pub(crate) fn close_lease(&mut self, lease: LeaseId) {
        self.leases.close(lease);
    }

    /// What a unit bounds; `None` when it is closed.
    pub(crate) fn kind(&self, UnitId(unit): UnitId) -> Option<UnitKind> {
        self.units.get(unit).map(|unit| unit.kind)
    }

    /// Sets the width of one unit.
    pub(crate) fn resize_unit(&mut self, unit: UnitId, width: usize, now: impl FnOnce() -> Moment) {
        self.unit_mut(unit).width = width;
        self.trace_change(|| TraceRecord::of_unit("resize", unit));
        self.freed.push_back(Resource::Unit(unit));
        self.settle(now);
    }

    /// Sets the width of every unit of a class, including units opened later. A lease is always one wide. Grants
    /// follow with [`Table::settle_slice`].
    pub(crate) fn resize_class(&mut self, class: ToolClass, width: usize) {
        self.classes[class.index()].width = width;
        self.change_class(class, "resize", |unit| unit.width = width);
    }

    /// Pauses or resumes granting for a class. Running calls continue, parked handlers included. Grants follow with
    /// [`Table::settle_slice`].
    pub(crate) fn pause_class(&mut self, class: ToolClass, paused: bool) {
        self.classes[class.index()].paused = paused;
        self.change_class(class, "pause", |unit| unit.paused = paused);
        if class == ToolClass::Serial {
            for (lease, state) in self.leases.iter() {
                self.trace_change(|| TraceRecord::of("pause", Need::serial(lease, None, None), None));
                if state.queue.is_some() {
                    self.backlog.push(Resource::Lease(lease));
                }
            }
        }
    }

    fn change_class(&mut self, class: ToolClass, what: &'static str, change: impl Fn(&mut Unit)) {
        let of_class = |unit: &Unit| unit.kind == UnitKind::Class(class);
        self.units.values_mut().filter(|unit| of_class(unit)).for_each(change);
        for (key, unit) in self.units.iter().filter(|(_, unit)| of_class(unit)) {
            self.trace_change(|| TraceRecord::of_unit(what, UnitId(key)));
            if unit.queue.is_some() {
                self.backlog.push(Resource::Unit(UnitId(key)));
            }
        }
    }

    /// Serial calls have leases instead of class units, so the pause of their class applies to all leases.
    pub(super) fn is_serial_paused(&self) -> bool {
        self.classes[ToolClass::Serial.index()].paused
    }
}
