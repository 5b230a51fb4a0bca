//! The units of agents, trees and engines, each opened when it is first needed.

use super::services::Services;
use crate::tool::{Rules, ToolEntry};
use arc_swap::Guard;
use parking_lot::Mutex;
use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};
use toolyard_admission::{Admission, Granted, Reach, UnitId, UnitKind};
use toolyard_core::ToolClass;

/// The concurrent pool of an agent, or of several agents that share it (CL-6, CL-7). Most agents never need it.
pub(super) struct ConcurrentPool {
    admission: Arc<Admission>,
    unit: OnceLock<UnitId>,
}

impl ConcurrentPool {
    pub(super) fn new(admission: Arc<Admission>) -> Arc<Self> {
        Arc::new(Self { admission, unit: OnceLock::new() })
    }

    pub(super) fn unit(&self) -> UnitId {
        *self.unit.get_or_init(|| self.admission.open_class(ToolClass::Concurrent))
    }
}

impl Drop for ConcurrentPool {
    fn drop(&mut self) {
        self.admission.close_units(self.unit.get().copied());
    }
}

/// The unit that bounds one tool's calls.
#[derive(Clone, Copy)]
struct ToolUnit {
    id: UnitId,
    width: usize,
}

/// The tool limits of one agent, one tree or the engine.
pub(crate) struct ToolUnits {
    admission: Arc<Admission>,
    /// Whose calls they bound.
    reach: Reach,
    /// In order, so that nothing here depends on hashing.
    units: Mutex<BTreeMap<Arc<str>, ToolUnit>>,
}

impl ToolUnits {
    pub(crate) fn new(admission: Arc<Admission>, reach: Reach) -> Self {
        Self { admission, reach, units: Mutex::default() }
    }

    /// The unit that bounds a tool here, opened by its first call. Its width is that of the tool which has the name
    /// now: a tool that was replaced cannot change it any more (CL-8).
    pub(super) fn unit(
        &self,
        entry: &ToolEntry,
        width: usize,
        engine: &Services,
    ) -> (UnitId, Option<Box<Resized<'_>>>) {
        let mut units = self.units.lock();
        let Some(unit) = units.get_mut(entry.name()) else {
            let id = self.admission.open(UnitKind::Tool(self.reach), width);
            units.insert(entry.shared_name(), ToolUnit { id, width });
            return (id, None);
        };
        let id = unit.id;
        if unit.width == width {
            return (id, None);
        }
        let rules = engine.rules.current();
        let mut resized = Resized { granted: None, rules };
        if resized.rules.has(entry) {
            // Resized under the lock, so that the recorded width is the one in force.
            unit.width = width;
            resized.granted = Some(self.admission.resize_unit(id, width));
        }
        (id, Some(Box::new(resized)))
    }
}

/// What follows from the new width of a tool's unit, once the caller holds no lock: calls that it lets start are
/// checked by the policy, and the rules that were looked at may be the last handle of a policy or of a tool.
#[must_use = "the calls that the new width admits must be started"]
pub(crate) struct Resized<'a> {
    granted: Option<Granted<'a>>,
    rules: Guard<Arc<Rules>>,
}

impl Resized<'_> {
    /// Starts the calls that the new width admits.
    pub(crate) fn start(self) {
        self.granted.into_iter().for_each(Granted::start);
    }
}

impl Drop for ToolUnits {
    fn drop(&mut self) {
        let units = std::mem::take(self.units.get_mut());
        let mut units: Vec<_> = units.into_values().map(|unit| unit.id).collect();
        units.sort_unstable(); // a fixed order, because the order of closing determines the ids of later units
        self.admission.close_units(units);
    }
}
