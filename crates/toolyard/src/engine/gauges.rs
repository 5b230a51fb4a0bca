//! Values of an engine that can be read at any moment without waiting.

use super::{
    Engine,
    guards::{BreakerStatus, breakers},
};
use crate::call::EngineCore;
use std::sync::Weak;
use toolyard_core::ToolClass;

/// Reads an engine's values at once, without a message to any actor, for metrics. Does not keep the engine alive.
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
    /// Returns a handle for reading this engine's metrics.
    pub fn gauges(&self) -> Gauges {
        Gauges(std::sync::Arc::downgrade(&self.core))
    }
}

impl Gauges {
    /// How many calls of a class hold a permit; `None` if the engine is gone.
    pub fn permits_in_use(&self, class: ToolClass) -> Option<usize> {
        Some(self.0.upgrade()?.admission.load(class).running)
    }

    /// The state of the breakers, as in [`Engine::breakers`]; empty if the engine is gone.
    pub fn breakers(&self) -> Vec<BreakerStatus> {
        self.0.upgrade().map_or_else(Vec::new, |engine| breakers(&engine))
    }
}

impl std::fmt::Debug for Gauges {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gauges").field("engine_lives", &(self.0.strong_count() > 0)).finish()
    }
}
