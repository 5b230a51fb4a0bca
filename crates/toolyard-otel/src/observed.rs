//! The engines whose permits and breakers are exported.

use parking_lot::{Mutex, MutexGuard};
use toolyard::{BreakerStatus, Gauges, ToolClass};

/// The values last read from an engine. An engine that is gone keeps its last values.
#[derive(Debug)]
struct Observed {
    gauges: Gauges,
    permits: [usize; ToolClass::ALL.len()],
    breakers: Vec<BreakerStatus>,
}

/// The engines that are observed.
#[derive(Debug, Default)]
pub(crate) struct ObservedEngines(Mutex<Vec<Observed>>);

impl ObservedEngines {
    fn all(&self) -> MutexGuard<'_, Vec<Observed>> {
        self.0.lock()
    }

    pub(crate) fn watch(&self, gauges: Gauges) {
        let mut observed = Observed { gauges, permits: Default::default(), breakers: Vec::new() };
        observed.refresh();
        self.all().push(observed);
    }

    /// Reads the values of every engine that still exists.
    pub(crate) fn refresh(&self) {
        self.all().iter_mut().for_each(Observed::refresh);
    }

    /// The permits of each class held now, summed over all engines; empty if none is observed.
    pub(crate) fn permits(&self) -> Vec<(ToolClass, usize)> {
        self.refresh();
        let all = self.all();
        if all.is_empty() {
            return Vec::new();
        }
        let held = |class: ToolClass| all.iter().map(|observed| observed.permits[class.index()]).sum();
        ToolClass::ALL.into_iter().map(|class| (class, held(class))).collect()
    }

    /// The current breakers of all engines.
    pub(crate) fn breakers(&self) -> Vec<BreakerStatus> {
        self.refresh();
        self.all().iter().flat_map(|observed| observed.breakers.iter().cloned()).collect()
    }
}

impl Observed {
    fn refresh(&mut self) {
        for class in ToolClass::ALL {
            let Some(held) = self.gauges.permits_in_use(class) else { return };
            self.permits[class.index()] = held;
        }
        self.breakers = self.gauges.breakers();
    }
}
