//! WebAssembly modules: compiled when the program starts, so that a file which is none is a mistake in the configuration.

use crate::{cache, config::ProgramTool};
use std::path::Path;
use toolyard::Program;
use toolyard_sandbox::{Sandboxes, WasmSandbox};
use toolyard_wasm::{Runtime, RuntimeError, RuntimeOptions};

/// What `check` says of the sandbox.
pub(crate) const DESCRIBED: &str = "modules with the directories that are granted, no network and no processes; limits \
                                    wall time, output, memory, CPU time, open files and processes";

/// Whether this program runs modules.
pub(crate) const EXIST: bool = true;

/// The modules of a configuration; nothing if it has none, so that nobody pays for a compiler that is not used.
#[derive(Debug, Clone, Default)]
pub(crate) struct Modules(Option<WasmSandbox>);

impl Modules {
    /// Compiles the modules among these programs, for a workspace at `root`.
    ///
    /// # Errors
    /// What is wrong, and with which of them.
    pub(crate) fn compiled(programs: &[ProgramTool], root: &Path) -> Result<Self, String> {
        let mut modules = Self::default();
        for program in programs {
            let Program::Wasm(module) = &program.program else { continue };
            if modules.0.is_none() {
                modules.0 = Some(WasmSandbox::new(runtime(root).map_err(|error| error.to_string())?));
            }
            let prepared = modules.0.iter().try_for_each(|sandbox| sandbox.prepare(&module.file));
            prepared.map_err(|error| format!("[program.\"{}\"] wasm: {error}", program.spec.name))?;
        }
        Ok(modules)
    }

    /// Adds what runs them.
    pub(crate) fn add_to(&self, sandboxes: Sandboxes) -> Sandboxes {
        match &self.0 {
            Some(wasm) => sandboxes.wasm(wasm.clone()),
            None => sandboxes,
        }
    }

    /// Whether the sandbox keeps this limit.
    pub(crate) fn keep(limit: &str) -> bool {
        WasmSandbox::keeps(limit)
    }
}

/// A runtime that keeps what it compiled for the next time, where that is safe and possible.
fn runtime(root: &Path) -> Result<Runtime, RuntimeError> {
    // Compiled code is run as it is found.
    let Some(directory) = cache::directory(root, "wasm") else {
        return Runtime::new(RuntimeOptions::default());
    };
    match Runtime::new(RuntimeOptions::default().cache(directory)) {
        // A home that cannot be written is no reason not to run.
        Err(RuntimeError::Cache { .. }) => Runtime::new(RuntimeOptions::default()),
        made => made,
    }
}
