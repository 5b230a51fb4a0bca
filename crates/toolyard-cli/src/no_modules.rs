//! WebAssembly modules, in a program that was built without the feature `wasm`: there are none.

use crate::config::ProgramTool;
use std::path::Path;
use toolyard_sandbox::Sandboxes;

/// What `check` says of the sandbox.
pub(crate) const DESCRIBED: &str = "not available: this program is built without the feature 'wasm'";

/// Whether this program runs modules.
pub(crate) const EXIST: bool = false;

/// The modules of a configuration; reading it has refused all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Modules {}

impl Modules {
    /// Nothing to compile.
    ///
    /// # Errors
    /// None.
    pub(crate) fn compiled(_: &[ProgramTool], _: &Path) -> Result<Self, String> {
        Ok(Self {})
    }

    /// Adds nothing.
    pub(crate) fn add_to(&self, sandboxes: Sandboxes) -> Sandboxes {
        sandboxes
    }

    /// Keeps nothing.
    pub(crate) fn keep(_: &str) -> bool {
        false
    }
}
