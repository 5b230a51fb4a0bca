//! What a machine is given for one call.

use crate::protocol::{Bytes, FileHead, PIECE_BYTES, Run, ToGuest};
use std::{
    ffi::OsString,
    os::unix::ffi::OsStrExt as _,
    path::{Path, PathBuf},
    time::SystemTime,
};

/// How many bytes of an output are kept, and of changed files taken back, unless the call says more or less.
const KEPT_BYTES: usize = 64 << 10;
const RETURNED_BYTES: u64 = 64 << 20;

/// How many random bytes a machine is given.
const ENTROPY_BYTES: usize = 64;

/// Gets pieces of text as they come.
pub(crate) type Listener = Box<dyn FnMut(&str) + Send>;

/// A file that a machine is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallFile {
    /// Its absolute path in the machine.
    pub path: PathBuf,
    /// All of its content.
    pub content: Vec<u8>,
    /// Whether it may be executed.
    pub is_executable: bool,
}

/// One call: the program and all that its machine gets.
///
/// # Examples
/// ```
/// # #[cfg(all(feature = "host", target_os = "linux", target_arch = "x86_64"))] {
/// use toolyard_vm::{Call, CallFile};
/// let call = Call::new("sh")
///     .arguments(["-c", "wc -w < text > words"])
///     .variable("PATH", "/bin")
///     .within("/srv/texts")
///     .file(CallFile { path: "/srv/texts/text".into(), content: b"two words".to_vec(), is_executable: false })
///     .returned("/srv/texts");
/// # let _ = call;
/// # }
/// ```
#[must_use]
pub struct Call {
    program: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(OsString, OsString)>,
    within: PathBuf,
    input: Vec<u8>,
    directories: Vec<PathBuf>,
    files: Vec<CallFile>,
    pub(crate) is_merged: bool,
    pub(crate) returned: Vec<PathBuf>,
    pub(crate) returned_bytes: u64,
    pub(crate) output_bytes: usize,
    pub(crate) errors_bytes: usize,
    pub(crate) listener: Option<Listener>,
}

impl Call {
    /// A call of this program, a path in the machine or a name that is searched in the `PATH` among its variables. It has
    /// no arguments, variables, input or files, and starts in `/tmp`.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            variables: Vec::new(),
            within: PathBuf::from("/tmp"),
            input: Vec::new(),
            directories: Vec::new(),
            files: Vec::new(),
            is_merged: false,
            returned: Vec::new(),
            returned_bytes: RETURNED_BYTES,
            output_bytes: KEPT_BYTES,
            errors_bytes: KEPT_BYTES,
            listener: None,
        }
    }

    /// Adds arguments.
    pub fn arguments<S: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Adds a variable of its environment; of two with one name the last counts.
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Sets the directory that it starts in, by absolute path; it is made if it does not exist.
    pub fn within(mut self, directory: impl Into<PathBuf>) -> Self {
        self.within = directory.into();
        self
    }

    /// Sets all of its standard input.
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// Makes its two outputs one, in order of arrival, as people read them. It has no input then.
    pub fn merged(mut self) -> Self {
        self.is_merged = true;
        self
    }

    /// Adds an empty directory, with those above it, by absolute path.
    pub fn directory(mut self, path: impl Into<PathBuf>) -> Self {
        self.directories.push(path.into());
        self
    }

    /// Adds a file, with the directories above it.
    pub fn file(mut self, file: CallFile) -> Self {
        self.files.push(file);
        self
    }

    /// Adds a file, or a directory with all below it, whose changes are taken back.
    pub fn returned(mut self, path: impl Into<PathBuf>) -> Self {
        self.returned.push(path.into());
        self
    }

    /// Sets how many bytes of changed files are taken back at most; with more, none are.
    pub fn returned_bytes(mut self, most: u64) -> Self {
        self.returned_bytes = most;
        self
    }

    /// Sets how many bytes are kept of its output and of its errors, half of them from each end.
    pub fn kept(mut self, output: usize, errors: usize) -> Self {
        (self.output_bytes, self.errors_bytes) = (output, errors);
        self
    }

    /// Hears its standard error while it runs, or its [merged](Self::merged) output, in pieces of whole lines where they are short enough. What is called must
    /// not block.
    pub fn on_errors(mut self, listener: impl FnMut(&str) + Send + 'static) -> Self {
        self.listener = Some(Box::new(listener));
        self
    }

    /// What the agent is told, in order.
    pub(crate) fn into_messages(self) -> std::io::Result<impl Iterator<Item = ToGuest> + Send> {
        let mut entropy = vec![0; ENTROPY_BYTES];
        let had = rustix::rand::getrandom(&mut entropy, rustix::rand::GetRandomFlags::empty())?;
        entropy.truncate(had);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let time_ns = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let begin = ToGuest::Begin { time_ns, entropy: Bytes(entropy) };
        let run = Run {
            program: bytes(&self.program),
            arguments: self.arguments.iter().map(|text| Bytes::from(text.as_bytes())).collect(),
            variables: self
                .variables
                .iter()
                .map(|(name, value)| (name.as_bytes().into(), value.as_bytes().into()))
                .collect(),
            directory: bytes(&self.within),
            is_merged: self.is_merged,
            returned: self.returned.iter().map(|path| bytes(path)).collect(),
        };
        let directories = self.directories.into_iter().map(|path| ToGuest::Directory(bytes(&path)));
        let files = self.files.into_iter().flat_map(|file| {
            let head = FileHead { path: bytes(&file.path), is_executable: file.is_executable };
            [ToGuest::File(head)].into_iter().chain(pieces(file.content).map(ToGuest::Content))
        });
        let input = pieces(self.input).map(ToGuest::Input);
        Ok([begin].into_iter().chain(directories).chain(files).chain(input).chain([ToGuest::Run(run)]))
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Values of variables, the input and files may be secrets.
        let files: Vec<_> = self.files.iter().map(|file| &file.path).collect();
        let mut debug = f.debug_struct("Call");
        debug
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("within", &self.within);
        debug
            .field("files", &files)
            .field("is_merged", &self.is_merged)
            .field("returned", &self.returned)
            .finish_non_exhaustive()
    }
}

fn bytes(path: &Path) -> Bytes {
    Bytes::from(path.as_os_str().as_bytes())
}

fn pieces(content: Vec<u8>) -> impl Iterator<Item = Bytes> + Send {
    let mut at = 0;
    std::iter::from_fn(move || {
        let end = content.len().min(at + PIECE_BYTES);
        let piece = (at < end).then(|| Bytes::from(&content[at..end]));
        at = end;
        piece
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SB-8: a machine is first told the time and given random bytes of its own, and the program comes last.
    #[test]
    fn the_time_comes_first_and_the_program_last() {
        let file = CallFile { path: "/a/b".into(), content: vec![7; PIECE_BYTES + 1], is_executable: true };
        let call = || Call::new("sh").directory("/a").file(file.clone()).input(*b"{}");
        let said: Vec<ToGuest> = call().into_messages().unwrap().collect();
        let [begin, directory, head, one, other, input, run] = &said[..] else { panic!("{}", said.len()) };
        assert!(matches!(begin, ToGuest::Begin { entropy, .. } if entropy.0.len() == ENTROPY_BYTES));
        assert_eq!(*directory, ToGuest::Directory(Bytes::from("/a")));
        assert!(matches!(head, ToGuest::File(head) if head.is_executable));
        assert!(matches!((one, other), (ToGuest::Content(one), ToGuest::Content(other))
            if one.0.len() == PIECE_BYTES && other.0.len() == 1));
        assert_eq!(*input, ToGuest::Input(Bytes::from("{}")));
        assert!(matches!(run, ToGuest::Run(_)));
        assert_ne!(call().into_messages().unwrap().next(), call().into_messages().unwrap().next());
    }
}
