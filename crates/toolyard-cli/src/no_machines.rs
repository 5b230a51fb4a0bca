//! Virtual machines, in a program that was built without the feature `micro-vm`, or for a system that has none.

use crate::{cli::SandboxSetupArgs, config::MachineSettings, error::Error, exit::Exit};
use std::path::Path;
use toolyard_sandbox::Sandboxes;

const WHY: &str =
    "this program has no virtual machines: build it with the feature 'micro-vm', on Linux for x86_64";

/// No machines.
#[derive(Debug, Clone, Default)]
pub(crate) struct Machines {}

impl Machines {
    /// Finds nothing.
    pub(crate) fn found(_: &MachineSettings, _: &Path) -> Self {
        Self {}
    }

    /// Adds nothing.
    pub(crate) fn add_to(&self, sandboxes: Sandboxes) -> Sandboxes {
        sandboxes
    }

    /// There are none.
    pub(crate) fn exist(&self) -> bool {
        false
    }

    /// Keeps nothing.
    pub(crate) fn keep(_: &str) -> bool {
        false
    }

    /// What `check` says of the sandbox.
    pub(crate) fn described(&self) -> String {
        "not available: this program is built without the feature 'micro-vm'".to_owned()
    }
}

/// Sets up nothing.
///
/// # Errors
/// Why not.
pub(crate) async fn set_up(_: SandboxSetupArgs) -> Result<Exit, Error> {
    Err(Error::SetUp(WHY.to_owned()))
}
