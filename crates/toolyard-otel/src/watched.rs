//! The engines whose permits and breakers are shown.

use std::sync::{Mutex, MutexGuard, PoisonError};
use toolyard::{BreakerStatus, Gauges, ToolClass};

/// What was seen of an engine when it was looked at last: one that is gone is shown as it was left.
#[derive(Debug)]
struct Seen {
    gauges: Gauges,
    permits: [usize; ToolClass::ALL.len()],
    breakers: Vec<BreakerStatus>,
}

/// The engines that are watched.
#[derive(Debug, Default)]
pub(crate) struct Watched(Mutex<Vec<Seen>>);

impl Watched {
    fn all(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn watch(&self, gauges: Gauges) {
        let mut seen = Seen { gauges, permits: Default::default(), breakers: Vec::new() };
        seen.look();
        self.all().push(seen);
    }

    /// Looks at every engine that is there.
    pub(crate) fn look(&self) {
        self.all().iter_mut().for_each(Seen::look);
    }

    /// How many permits of each class are held now, over all engines; none where none is watched.
    pub(crate) fn permits(&self) -> Vec<(ToolClass, usize)> {
        self.look();
        let all = self.all();
        if all.is_empty() {
            return Vec::new();
        }
        let held = |class: ToolClass| all.iter().map(|seen| seen.permits[class.index()]).sum();
        ToolClass::ALL.into_iter().map(|class| (class, held(class))).collect()
    }

    /// The breakers as they are now.
    pub(crate) fn breakers(&self) -> Vec<BreakerStatus> {
        self.look();
        self.all().iter().flat_map(|seen| seen.breakers.iter().cloned()).collect()
    }
}

impl Seen {
    fn look(&mut self) {
        for class in ToolClass::ALL {
            let Some(held) = self.gauges.permits_in_use(class) else { return };
            self.permits[class.index()] = held;
        }
        self.breakers = self.gauges.breakers();
    }
}
