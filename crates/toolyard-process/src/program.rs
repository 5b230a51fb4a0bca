//! What to start.

use crate::directory::Directory;
use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    io,
    path::{Path, PathBuf},
};

/// The name of helpers in process lists, unless a program names its own.
const HELPER_NAME: &str = "toolyard-helper";

/// What to start: a program and everything that it is given. It gets nothing else of this process, in particular no
/// variable of its environment and no descriptor.
///
/// By default it has no arguments, an empty environment, an empty standard input, the directory of this process, and
/// one output for both standard output and standard error.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// use toolyard_process::{Containment, End, OutputReader, Program, Report};
/// let program = Program::new("/bin/sh").args(["-c", "echo out; echo \"$GREETING\" >&2; exit 3"]);
/// let mut started = program.env("GREETING", "hello").start(&Containment::Group)?;
///
/// let (mut output, mut text) = (OutputReader::new(started.stdout), String::new());
/// while let Some(piece) = output.read().await {
///     text += &String::from_utf8_lossy(piece);
/// }
/// assert_eq!(text, "out\nhello\n");
/// let Report::Ran(ran) = started.processes.ended().await else { panic!("there is no shell") };
/// assert_eq!(ran.end, Some(End::Exited(3)));
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "it is started by `start`"]
pub struct Program {
    pub(crate) path: PathBuf,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: BTreeMap<OsString, OsString>,
    pub(crate) directory: Directory,
    pub(crate) input: InputKind,
    pub(crate) errors_apart: bool,
    pub(crate) helper_name: String,
    #[cfg(target_os = "linux")]
    pub(crate) confinement: Option<crate::Confinement>,
}

/// What the standard input of a program is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputKind {
    Empty,
    Pipe,
    #[cfg(unix)]
    Socket,
    /// Empty, with a socket on descriptor 3.
    #[cfg(unix)]
    Descriptor3,
}

impl Program {
    /// The program at this path. A name without a slash is looked up in the `PATH` that the program is given, a relative
    /// path in its directory.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            args: Vec::new(),
            env: BTreeMap::new(),
            directory: Directory::Inherited,
            input: InputKind::Empty,
            errors_apart: false,
            helper_name: HELPER_NAME.to_owned(),
            #[cfg(target_os = "linux")]
            confinement: None,
        }
    }

    /// Adds an argument, which may be any bytes but NUL.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of its environment. The value may be any bytes but NUL, the name any but NUL and `=`.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Sets variables of its environment.
    pub fn envs<N, V>(mut self, variables: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        self.env.extend(variables.into_iter().map(|(name, value)| (name.into(), value.into())));
        self
    }

    /// Sets the directory it starts in.
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directory = Directory::Path(path.into());
        self
    }

    /// Sets the directory it starts in to one that is open, so that a link that was swapped since cannot lead elsewhere.
    /// Systems other than Linux cannot start a program in an open directory and use its path.
    #[cfg(unix)]
    pub fn open_directory(
        mut self,
        directory: impl Into<std::os::fd::OwnedFd>,
        path: impl Into<PathBuf>,
    ) -> Self {
        self.directory = Directory::Open { directory: directory.into(), path: path.into() };
        self
    }

    /// Makes its standard input a pipe ([`Started::stdin`](crate::Started::stdin)); it is empty otherwise.
    pub fn piped_input(mut self) -> Self {
        self.input = InputKind::Pipe;
        self
    }

    /// Makes its standard input a stream socket, which carries both directions
    /// ([`Started::socket`](crate::Started::socket)).
    #[cfg(unix)]
    pub fn socket_input(mut self) -> Self {
        self.input = InputKind::Socket;
        self
    }

    /// Gives it a stream socket on descriptor 3, which carries both directions
    /// ([`Started::socket`](crate::Started::socket)); its standard input is empty. It needs `/bin/sh`, which becomes the
    /// program.
    #[cfg(unix)]
    pub fn socket_on_descriptor_3(mut self) -> Self {
        self.input = InputKind::Descriptor3;
        self
    }

    /// Makes its standard error a pipe of its own ([`Started::stderr`](crate::Started::stderr)). Otherwise it is one with
    /// its standard output, in the order of arrival.
    pub fn errors_apart(mut self) -> Self {
        self.errors_apart = true;
        self
    }

    /// Sets the name that its helper has in process lists, `toolyard-helper` by default.
    pub fn helper_name(mut self, name: impl Into<String>) -> Self {
        self.helper_name = name.into();
        self
    }

    /// Confines it: it reaches what it is granted and nothing else. Its directory is then a path inside, and only a
    /// helper can start it.
    #[cfg(target_os = "linux")]
    pub fn confined(mut self, confinement: crate::Confinement) -> Self {
        self.confinement = Some(confinement);
        self
    }

    /// Whether a process can be given all this.
    pub(crate) fn check(&self) -> io::Result<()> {
        #[cfg(target_os = "linux")]
        self.confinement.as_ref().map_or(Ok(()), crate::Confinement::check)?;
        let has_nul = |text: &OsStr| text.as_encoded_bytes().contains(&0);
        let is_name = |name: &&OsString| !name.is_empty() && !name.as_encoded_bytes().contains(&b'=');
        let values = self.env.iter().flat_map(|(name, value)| [name, value]);
        let why = if self.args.iter().chain(values).map(OsString::as_os_str).any(has_nul) {
            "an argument or a variable contains a NUL byte"
        } else if !self.env.keys().all(|name| is_name(&name)) {
            "the name of a variable is empty or contains '='"
        } else if self.path == Path::new("") || has_nul(self.path.as_os_str()) {
            "the path of the program is empty or contains a NUL byte"
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, why))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_process_can_be_given_is_refused() {
        let check = |program: Program, expect: &str| {
            let error = program.check().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
            assert!(error.to_string().contains(expect), "{error}");
        };
        let program = || Program::new("/bin/true");
        check(program().arg("a\0b"), "NUL");
        check(program().env("A", "a\0b"), "NUL");
        check(program().env("A\0", ""), "NUL");
        check(program().env("A=B", ""), "'='");
        check(program().env("", ""), "empty");
        check(Program::new(""), "path");
        let fine = program().args(["", "-x"]).env("A", "=").env("ü", "");
        assert!(fine.check().is_ok());
    }
}
