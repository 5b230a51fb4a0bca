//! The tools of agents (AG-6, AG-10).

mod echo;
#[cfg_attr(not(target_os = "linux"), path = "tools/no_files.rs")]
pub(crate) mod files;
mod kinship;
mod paths;
#[cfg(target_os = "linux")]
mod read;
mod spawn;
#[cfg(target_os = "linux")]
mod write;

pub(crate) use kinship::{Kin, Kinship};
pub use paths::HostPaths;

use crate::Supervisor;
use std::sync::Arc;
use toolyard::ToolFactory;

/// The tools of agents that this supervisor starts.
pub(crate) fn all(supervisor: &Supervisor) -> Vec<Arc<dyn ToolFactory>> {
    vec![
        #[cfg(target_os = "linux")]
        Arc::new(read::Read::new(&supervisor.shared().files)),
        #[cfg(target_os = "linux")]
        Arc::new(write::Write::new(&supervisor.shared().files)),
        Arc::new(echo::factory()),
        Arc::new(spawn::Spawn::new(supervisor)),
    ]
}
