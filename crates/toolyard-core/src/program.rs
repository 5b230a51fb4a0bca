//! What runs a call of a tool that is not a part of this program: data, which a sandbox executes (SB-1).
//!
//! ```text
//!   Tool::program(&args) ─► Program ─┬─ Command   a program that is started   ─► process, landlock, host, micro_vm
//!                                    ├─ Module    a WebAssembly module        ─► wasm
//!                                    └─ Service   an address                  ─► remote
//! ```

use crate::Form;
use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

/// The program of one call (SB-1).
///
/// # Examples
/// ```
/// use toolyard_core::{Command, Form, Program};
/// let program = Program::Command(Command::new("/usr/bin/wc").arg("-w"));
/// assert_eq!(program.form(), Form::Command);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Program {
    /// A program that is started.
    Command(Command),
    /// A WebAssembly module.
    Wasm(Module),
    /// A service that is called over HTTP.
    Http(Service),
}

impl Program {
    /// The form of a tool with such programs.
    pub const fn form(&self) -> Form {
        match self {
            Self::Command(_) => Form::Command,
            Self::Wasm(_) => Form::Wasm,
            Self::Http(_) => Form::Http,
        }
    }
}

/// How a program gets its arguments and gives its result.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ProgramIo {
    /// The contract of programs that are tools: one JSON document in, one result out (SB-2).
    Contract(OutputKind),
    /// A program for people: no input, both outputs merged in order of arrival, the exit code in the result.
    Terminal(Terminal),
}

/// What is said of a program for people.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Terminal {
    /// What it is called in its result, such as the command line.
    pub command: String,
    /// How long it may take, if the call says so.
    pub limit: Option<Duration>,
}

/// What the standard output of a program is by the contract (SB-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum OutputKind {
    /// Text. A long one keeps its start and its end.
    #[default]
    Text,
    /// Exactly one JSON document.
    Json,
}

impl OutputKind {
    /// The word for it in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

/// How many bytes of a program's output are kept unless something else is asked for.
pub const PROGRAM_OUTPUT_BYTES: usize = 64 << 10;

/// A variable of a program's environment.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Its value, which may be a secret: it does not show in `Debug`.
    pub value: OsString,
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Variable").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A program that is started for one call.
///
/// # Examples
/// ```
/// use toolyard_core::{Command, OutputKind, ProgramIo};
/// let count = Command::new("/opt/tools/count")
///     .arg("--words")
///     .variable("LANG", "C")
///     .io(ProgramIo::Contract(OutputKind::Json));
/// assert_eq!(count.arguments, ["--words"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Command {
    /// The program: a path, or a name that is searched in the `PATH` among its variables.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its variables. It inherits no other; the contract adds its own.
    pub variables: Arc<[Variable]>,
    /// The directory it starts in, relative to the workspace's root, `.`.
    pub directory: PathBuf,
    /// The files and directories that it is made of, by absolute path. A sandbox gives them to it, for reading alone.
    pub files: Arc<[PathBuf]>,
    /// How it gets its arguments and gives its result.
    pub io: ProgramIo,
    /// How many bytes of its output are kept.
    pub output_bytes: usize,
}

impl Command {
    /// A program that is called by the contract, with text as its output.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            variables: Arc::new([]),
            directory: PathBuf::from("."),
            files: Arc::new([]),
            io: ProgramIo::Contract(OutputKind::Text),
            output_bytes: PROGRAM_OUTPUT_BYTES,
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds a variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Self {
        let variable = Variable { name: name.into(), value: value.into() };
        self.variables = self.variables.iter().cloned().chain([variable]).collect();
        self
    }

    /// Sets the directory it starts in, relative to the workspace's root.
    #[must_use]
    pub fn directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self
    }

    /// Sets what it is made of.
    #[must_use]
    pub fn files<P: Into<PathBuf>>(mut self, files: impl IntoIterator<Item = P>) -> Self {
        self.files = files.into_iter().map(Into::into).collect();
        self
    }

    /// Sets how it gets its arguments and gives its result.
    #[must_use]
    pub fn io(mut self, io: ProgramIo) -> Self {
        self.io = io;
        self
    }

    /// Sets how many bytes of its output are kept.
    #[must_use]
    pub fn output_bytes(mut self, most: usize) -> Self {
        self.output_bytes = most;
        self
    }
}

/// A WebAssembly module that is run for one call, by the contract: a command of WASI preview 1, or a component with
/// `wasi:cli/command`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Module {
    /// The file with the module.
    pub file: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Its variables; the contract adds its own.
    pub variables: Arc<[Variable]>,
    /// What its output is.
    pub output: OutputKind,
    /// How many bytes of its output are kept.
    pub output_bytes: usize,
}

impl Module {
    /// A module with text as its output.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            arguments: Vec::new(),
            variables: Arc::new([]),
            output: OutputKind::Text,
            output_bytes: PROGRAM_OUTPUT_BYTES,
        }
    }

    /// Adds a variable.
    #[must_use]
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<OsString>) -> Self {
        let variable = Variable { name: name.into(), value: value.into() };
        self.variables = self.variables.iter().cloned().chain([variable]).collect();
        self
    }
}

/// A service that is called over HTTP for one call, by the contract.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Service {
    /// Its address.
    pub url: String,
    /// Headers of each request. Their values may be secrets: they do not show in `Debug`.
    pub headers: Arc<[(String, String)]>,
    /// What its output is.
    pub output: OutputKind,
    /// The most bytes that its answer may have.
    pub output_bytes: usize,
    /// Whether its host may be an address that is not public, such as that of this machine.
    pub allow_private: bool,
}

impl Service {
    /// A service with text as its output.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: Arc::new([]),
            output: OutputKind::Text,
            output_bytes: PROGRAM_OUTPUT_BYTES,
            allow_private: false,
        }
    }
}

impl std::fmt::Debug for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| &**name).collect();
        let mut debug = f.debug_struct("Service");
        debug.field("url", &self.url).field("headers", &names).field("output", &self.output);
        debug.field("allow_private", &self.allow_private).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PO-7: the values of variables and headers may be secrets.
    #[test]
    fn values_do_not_show() {
        let command = Command::new("/bin/true").variable("TOKEN", "hunter22");
        let service =
            Service { headers: Arc::new([("x".into(), "hunter22".into())]), ..Service::new("http://a") };
        let shown = format!("{:?} {:?}", Program::Command(command), Program::Http(service));
        assert!(shown.contains("TOKEN") && !shown.contains("hunter22"), "{shown}");
    }
}
