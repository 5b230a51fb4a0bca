//! The counting units that an agent, a tree or an engine opens when it first needs them.

use crate::{
    admission::{Admission, UnitId},
    engine::EngineCore,
    registry::ToolEntry,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};
use toolyard_core::ToolClass;

/// The concurrent pool of an agent, or of several that share one (CL-6, CL-7). Most agents never need it.
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

/// What bounds one tool's calls.
#[derive(Clone, Copy)]
struct ToolUnit {
    id: UnitId,
    width: usize,
}

/// The limits of tools, for one agent, one tree or the engine.
pub(crate) struct ToolUnits {
    admission: Arc<Admission>,
    /// In order, so that they are closed in order.
    units: Mutex<BTreeMap<Arc<str>, ToolUnit>>,
}

impl ToolUnits {
    pub(crate) fn new(admission: Arc<Admission>) -> Self {
        Self { admission, units: Mutex::default() }
    }

    /// The unit that bounds a tool here, opened with its first call and as wide as the tool that has the name now
    /// says: one that was replaced has no word on it any more (CL-8).
    pub(super) fn unit(&self, entry: &ToolEntry, width: usize, engine: &EngineCore) -> UnitId {
        let mut units = self.units.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(unit) = units.get_mut(entry.name()) else {
            let id = self.admission.open_tool(width);
            units.insert(entry.shared_name(), ToolUnit { id, width });
            return id;
        };
        let id = unit.id;
        if unit.width == width || !engine.registry.is_current(entry) {
            return id;
        }
        // Resized under the lock, that the width noted is the one in force; started outside of it.
        unit.width = width;
        let granted = self.admission.resize_unit(id, width);
        drop(units);
        granted.start();
        id
    }
}

impl Drop for ToolUnits {
    fn drop(&mut self) {
        let units = std::mem::take(self.units.get_mut().unwrap_or_else(PoisonError::into_inner));
        let mut units: Vec<_> = units.into_values().map(|unit| unit.id).collect();
        units.sort_unstable(); // the order of a map is another in each process, and would name later units
        self.admission.close_units(units);
    }
}
