//! WebAssembly modules.
//!
//! ```text
//!   Execution ─► limits ──────────────────────────────────────┐
//!             ─► reach ── directories, opened by handle ──────┼──► Run ─► an instance of its own ─► Ended ─► result
//!                     └── files, as copies in a directory ────┤
//!             ─► Tool::program ─► a module, compiled once ────┘
//! ```

mod ended;
mod granted;
mod kept;
mod staged;

use crate::{printed::ERRORS_BYTES, unwritten::Unwritten};
use granted::Granted;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::{task::spawn_blocking, time::Instant};
use toolyard::{Execution, Failure, Running, SandboxError, Stopped, Work};
use toolyard_core::{Module, Program, Sandbox, ToolContext, ToolError, ToolOutput, Usage};
use toolyard_program::Given;
use toolyard_wasm::{LoadError, Run, Runtime};

/// The sandbox *wasm*: calls run in instances of WebAssembly modules, which have the directories that they are granted
/// and nothing else: no network, no processes, no variables but those of the contract and of the tool. [`toolyard_wasm`]
/// says how.
///
/// # Files
/// A module finds the directories that its call may use under their paths relative to the workspace's root, which is
/// where it starts. On Linux each is given by the handle that was opened and checked; elsewhere by its path, so that
/// between the check and the opening a directory can be swapped for another by whoever may write above it. A file that is
/// granted by itself is given as a copy, for reading alone.
///
/// # What is not written (SB-11)
/// A directory that holds something which no tool may write, at whatever depth, is given for reading alone; the
/// directories in it that hold nothing of the kind can be written as granted.
///
/// # Examples
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use toolyard::Engine;
/// use toolyard_sandbox::{Sandboxes, WasmSandbox};
/// use toolyard_wasm::{Runtime, RuntimeOptions};
///
/// let wasm = WasmSandbox::new(Runtime::new(RuntimeOptions::default())?);
/// let builder = Engine::builder().backend_around(|host| Sandboxes::new(host).wasm(wasm).into_backend());
/// # let _ = builder;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct WasmSandbox {
    runtime: Runtime,
    modules: Arc<Mutex<HashMap<PathBuf, toolyard_wasm::Module>>>,
    unwritten: Unwritten,
}

/// A file that is no module which could be run.
#[derive(Debug, thiserror::Error)]
#[error("'{}' cannot be run: {error}", file.display())]
pub struct ModuleError {
    /// The file.
    pub file: PathBuf,
    /// Why not.
    pub error: LoadError,
}

impl WasmSandbox {
    /// A sandbox whose modules are compiled by this runtime.
    pub fn new(runtime: Runtime) -> Self {
        Self { runtime, modules: Arc::default(), unwritten: Unwritten::default() }
    }

    /// Keeps paths from being written, although they lie in what is granted (SB-11). What a
    /// [`Workspace`](toolyard_tools::Workspace) guards is kept anyway.
    #[must_use]
    pub fn keep<P: Into<PathBuf>>(mut self, paths: impl IntoIterator<Item = P>) -> Self {
        self.unwritten.add(paths);
        self
    }

    /// Sets whether `.git/hooks` and `.git/config` of the workspace are kept from being written, which they are by
    /// default: git runs what stands there, and on the host.
    #[must_use]
    pub fn keep_git(mut self, keeps: bool) -> Self {
        self.unwritten.keep_git(keeps);
        self
    }

    /// Compiles a module ahead of its first call, which takes up to a second of the thread's time. What stands in its file
    /// later does not matter any more to this sandbox and its clones.
    ///
    /// # Errors
    /// [`ModuleError`] for what could not be run.
    pub fn prepare(&self, file: &Path) -> Result<(), ModuleError> {
        self.compiled(file).map(drop).map_err(|error| ModuleError { file: file.to_owned(), error })
    }

    /// Whether it keeps this limit, by its name in
    /// [`ResourceLimits::kept_by_sandboxes`](toolyard_core::ResourceLimits::kept_by_sandboxes).
    pub fn keeps(limit: &str) -> bool {
        kept::is_kept(limit)
    }

    pub(crate) fn execute<'a>(&'a self, execution: &'a Execution<'a>) -> Result<Running<'a>, SandboxError> {
        let limits = kept::limits(&execution.confinement.limits)?;
        let reach = execution.reach()?;
        let kept = self.unwritten.resolved(&execution.cx, reach.root());
        let granted = granted::grant(&reach, execution.cx.resource(), &kept)?;
        let work = async move {
            let Some(Program::Wasm(module)) = execution.tool.program(execution.args)? else {
                let why = "it has no module that could be run".to_owned();
                return Err(Failure::Sandbox { why, started: false });
            };
            let cx = &execution.cx;
            if cx.is_cancelled() {
                return Err(ToolError::cancelled("cancelled before it started").no_side_effect().into());
            }
            let given = Given::new(execution.args, cx, Instant::now());
            self.run(&module, run(&module, given, cx).limits(limits), granted, cx).await
        };
        Ok(Running { result: Work::sandboxed(work), stopped: Stopped::WhenDropped })
    }

    async fn run(
        &self,
        module: &Module,
        run: Run,
        granted: Granted,
        cx: &ToolContext,
    ) -> Result<ToolOutput, Failure> {
        let (sandbox, file) = (self.clone(), module.file.clone());
        // Compiling and copying keep a thread, and this is one of the async runtime.
        let prepared = spawn_blocking(move || (sandbox.compiled(&file), granted.staged())).await;
        let (compiled, staged) = prepared.map_err(|error| broken(error.to_string()))?;
        let compiled = compiled.map_err(|error| {
            ToolError::execution(format!("cannot start the module: {error}")).no_side_effect()
        })?;
        let (directories, copies) = staged.map_err(broken)?;
        let run = directories.into_iter().fold(run, Run::directory);
        let started_at = Instant::now();
        let ended = compiled.run_until(run, cx.cancelled()).await;
        drop(copies);
        let ended = ended.map_err(|error| broken(error.why))?;
        let usage = Usage::lasting(started_at.elapsed()).cpu(ended.cpu).memory_peak(ended.memory_peak);
        Ok(usage.told_in(ended::result(ended, module.output))?)
    }

    fn compiled(&self, file: &Path) -> Result<toolyard_wasm::Module, LoadError> {
        if let Some(module) = self.modules.lock().get(file) {
            return Ok(module.clone());
        }
        let module = self.runtime.load_file(file)?;
        Ok(self.modules.lock().entry(file.to_owned()).or_insert(module).clone())
    }
}

/// What a module is given by the contract, and of the tool's own.
fn run(module: &Module, given: Given<'_>, cx: &ToolContext) -> Run {
    let name = module.file.file_name().unwrap_or_default().to_string_lossy();
    let mut run = Run::new().name(name).arguments(module.arguments.iter().cloned());
    for variable in &*module.variables {
        run = run.variable(&*variable.name, variable.value.to_string_lossy());
    }
    // What the contract says stands above what the configuration says.
    for (name, value) in given.variables() {
        run = run.variable(name, value);
    }
    let cx = cx.clone();
    run.input(given.into_document())
        .kept(module.output_bytes, ERRORS_BYTES)
        .on_errors(move |text| cx.emit(text))
}

/// The sandbox failed before the module started.
fn broken(why: String) -> Failure {
    Failure::Sandbox { why, started: false }
}

/// The sandbox, for errors that name it.
const WASM: Sandbox = Sandbox::Wasm;
