//! The compiler and what all modules share.

use crate::{
    guest::Guest,
    module::{LoadError, Module},
    ticker::Ticker,
};
use std::{
    fs, io,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
};
use wasmtime::{Cache, CacheConfig, Config, Engine, Linker, component};

/// The most bytes of stack that a guest's calls may take.
const STACK_BYTES: usize = 512 << 10;

/// The stack of a call: the guest's, and as much again and more for the host's functions that it calls.
const FIBER_BYTES: usize = 2 << 20;

/// How many of a trap's functions are looked at.
const FRAMES: NonZeroUsize = NonZeroUsize::new(4).expect("four is not none");

/// How a [`Runtime`] is made.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RuntimeOptions {
    /// A directory for compiled code; without one each module is compiled each time it is loaded.
    pub cache: Option<PathBuf>,
}

impl RuntimeOptions {
    /// Keeps compiled code in this directory, which is made if it does not exist, for this user alone. Whoever may write
    /// there decides what runs in this process.
    #[must_use]
    pub fn cache(mut self, directory: impl Into<PathBuf>) -> Self {
        self.cache = Some(directory.into());
        self
    }
}

/// There is no runtime here.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The directory for compiled code cannot be used.
    #[error("the directory for compiled modules, '{}': {why}", directory.display())]
    Cache {
        /// The directory.
        directory: PathBuf,
        /// Why not.
        why: String,
    },
    /// The compiler does not work on this machine.
    #[error("no WebAssembly on this machine: {0}")]
    Engine(String),
    /// The system has no thread to give.
    #[error("the thread that keeps the time does not start: {0}")]
    Thread(io::Error),
}

/// Compiles modules, and keeps the time of their calls. Clones share all of it; it lives as long as any clone or module.
#[derive(Clone)]
pub struct Runtime(Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) engine: Engine,
    pub(crate) ticker: Ticker,
    pub(crate) commands: Linker<Guest>,
    pub(crate) components: component::Linker<Guest>,
}

impl Runtime {
    /// A runtime, with one thread of its own, which ends with it.
    ///
    /// # Errors
    /// [`RuntimeError`] if this machine has none, or the directory for compiled code cannot be used.
    pub fn new(options: RuntimeOptions) -> Result<Self, RuntimeError> {
        let mut config = config();
        if let Some(directory) = options.cache {
            let failed = |why: String| RuntimeError::Cache { directory: directory.clone(), why };
            private(&directory).map_err(|error| failed(error.to_string()))?;
            let mut settings = CacheConfig::new();
            settings.with_directory(fs::canonicalize(&directory).map_err(|error| failed(error.to_string()))?);
            config.cache(Some(Cache::new(settings).map_err(|error| failed(format!("{error:#}")))?));
        }
        let broken = |error: wasmtime::Error| RuntimeError::Engine(format!("{error:#}"));
        let engine = Engine::new(&config).map_err(broken)?;
        let mut commands = Linker::new(&engine);
        wasmtime_wasi::p1::add_to_linker_async(&mut commands, Guest::preview1).map_err(broken)?;
        let mut components = component::Linker::new(&engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut components).map_err(broken)?;
        let ticker = Ticker::start(&engine).map_err(RuntimeError::Thread)?;
        Ok(Self(Arc::new(Inner { engine, ticker, commands, components })))
    }

    /// Compiles a module or a component from its binary form. This takes up to a second of the thread's time, unless it
    /// is in the cache.
    ///
    /// # Errors
    /// [`LoadError`] for what is none, exports no command, or needs what no module is given here.
    pub fn load(&self, bytes: &[u8]) -> Result<Module, LoadError> {
        Module::new(&self.0, bytes)
    }

    /// Compiles what stands in a file; see [`load`](Self::load).
    ///
    /// # Errors
    /// [`LoadError`]; also if the file cannot be read.
    pub fn load_file(&self, file: impl AsRef<Path>) -> Result<Module, LoadError> {
        self.load(&fs::read(file).map_err(LoadError::Unreadable)?)
    }

    /// How many calls of its modules run.
    pub fn running(&self) -> usize {
        self.0.ticker.running()
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").field("running", &self.running()).finish_non_exhaustive()
    }
}

/// What a guest's code may be, and how it is kept in its place.
fn config() -> Config {
    let mut config = Config::new();
    // A guest hands its thread back at each tick. Fuel would count what it does, and cost more than this.
    config.epoch_interruption(true).consume_fuel(false);
    config.max_wasm_stack(STACK_BYTES).async_stack_size(FIBER_BYTES);
    // 4 GiB of addresses are reserved for each memory, and the pages around them trap, so that no access needs a check.
    // Nothing is moved when a memory grows, and all of what 32 bits address lies within. 64 bits would need the checks.
    config.memory_may_move(false).guard_before_linear_memory(true).wasm_memory64(false);
    // Threads, and memories that they would share, are no part of what is built here.
    config.wasm_multi_memory(false);
    // Where in the guest a trap happened goes into its message; where its sources are does not.
    config.wasm_backtrace_max_frames(Some(FRAMES));
    config
}

/// Makes the directory, for this user alone.
fn private(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)?;
    others_have_no_access(directory)
}

/// One that was there before must be closed to others as well: they would decide what runs here.
#[cfg(unix)]
fn others_have_no_access(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
    let about = fs::metadata(directory)?;
    if about.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::Error::other("it belongs to another user"));
    }
    if about.mode() & 0o077 != 0 {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn others_have_no_access(_: &Path) -> io::Result<()> {
    Ok(())
}
