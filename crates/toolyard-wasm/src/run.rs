//! What a guest is given for one call.

use crate::directory::Directory;
use std::time::Duration;

/// How many open files, streams and the like a guest may have unless its limits say more or less.
pub const OPEN_FILES: u32 = 64;

/// How many bytes of an output are kept unless the run says more or less.
const KEPT_BYTES: usize = 64 << 10;

/// Bounds of one call. What is not set is bounded by the module's form alone: memory by the 4 GiB that 32 bits address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The time that may pass.
    pub wall_time: Option<Duration>,
    /// The time that it may compute. It is seen at each tick, so up to 10 ms later.
    pub cpu_time: Option<Duration>,
    /// Bytes of memory, tables included.
    pub memory: Option<u64>,
    /// Open files, streams and what else the host holds for it, beside its standard streams and the directories that it
    /// is given; [`OPEN_FILES`] if not set.
    pub open_files: Option<u32>,
}

/// Gets pieces of text as they come.
pub(crate) type Listener = Box<dyn FnMut(&str) + Send>;

/// One run of a module: what the guest gets, and how much it may take.
#[must_use]
pub struct Run {
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: Vec<(String, String)>,
    pub(crate) input: Vec<u8>,
    pub(crate) directories: Vec<Directory>,
    pub(crate) limits: Limits,
    pub(crate) output_bytes: usize,
    pub(crate) errors_bytes: usize,
    pub(crate) listener: Option<Listener>,
}

impl Default for Run {
    fn default() -> Self {
        Self::new()
    }
}

impl Run {
    /// A run with an empty input, the argument `module` alone, which is the program's name, and nothing else.
    pub fn new() -> Self {
        Self {
            arguments: vec!["module".to_owned()],
            variables: Vec::new(),
            input: Vec::new(),
            directories: Vec::new(),
            limits: Limits::default(),
            output_bytes: KEPT_BYTES,
            errors_bytes: KEPT_BYTES,
            listener: None,
        }
    }

    /// Sets the program's name, its first argument.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.arguments[0] = name.into();
        self
    }

    /// Adds arguments.
    pub fn arguments<S: Into<String>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Adds a variable of the environment; one of the same name that was added before is replaced.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.variables.retain(|(other, _)| *other != name);
        self.variables.push((name, value));
        self
    }

    /// Sets all of its standard input.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Adds a directory that it reaches.
    pub fn directory(mut self, directory: Directory) -> Self {
        self.directories.push(directory);
        self
    }

    /// Sets its limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how many bytes are kept of its output and of its errors, half of them from each end.
    pub fn kept(mut self, output: usize, errors: usize) -> Self {
        (self.output_bytes, self.errors_bytes) = (output, errors);
        self
    }

    /// Hears its standard error while it runs, in pieces of whole lines where they are short enough
    /// ([`Deltas`](toolyard_process::Deltas)). What is called must not block.
    pub fn on_errors(mut self, listener: impl FnMut(&str) + Send + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Values of variables and the input may be secrets.
        let names: Vec<&str> = self.variables.iter().map(|(name, _)| &**name).collect();
        let mut debug = f.debug_struct("Run");
        debug.field("arguments", &self.arguments).field("variables", &names);
        debug.field("directories", &self.directories).field("limits", &self.limits).finish_non_exhaustive()
    }
}
