//! What can be read of an engine at any moment, at once.

use super::{BreakerStatus, Engine, EngineCore, guards::breakers};
use std::sync::Weak;
use toolyard_core::ToolClass;

/// Reads an engine at once and without a message to anybody, for metrics; it does not keep the engine alive.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// use toolyard::{Engine, ToolClass};
/// let engine = Engine::builder().build().await.unwrap();
/// let gauges = engine.gauges();
/// assert_eq!(gauges.permits_in_use(ToolClass::Read), Some(0));
/// drop(engine);
/// assert!(gauges.breakers().is_empty());
/// # }
/// ```
#[derive(Clone)]
pub struct Gauges(Weak<EngineCore>);

impl Engine {
    /// What metrics read of this engine.
    pub fn gauges(&self) -> Gauges {
        Gauges(std::sync::Arc::downgrade(&self.core))
    }
}

impl Gauges {
    /// How many calls of a class hold a permit; `None` when the engine is gone.
    pub fn permits_in_use(&self, class: ToolClass) -> Option<usize> {
        Some(self.0.upgrade()?.admission.load(class).running)
    }

    /// How the breakers stand, as [`Engine::breakers`] says; none when the engine is gone.
    pub fn breakers(&self) -> Vec<BreakerStatus> {
        self.0.upgrade().map_or_else(Vec::new, |engine| breakers(&engine))
    }
}

impl std::fmt::Debug for Gauges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gauges").field("engine_lives", &(self.0.strong_count() > 0)).finish()
    }
}
