//! What the host and the agent in a machine say to each other: one JSON document a line.
//!
//! ```text
//!   agent                                         host
//!   hello ───────────────────────────────────────►        the snapshot is made here
//!         ◄─────── begin, (directory | file, content…)…, input…, run
//!   started, (output | errors)…, exited | killed ►
//!   (directory | file, content… | removed)…, done►        the machine is ended here
//! ```
//!
//! At any time before `started` the agent may say `failed` instead: nothing has run then. Each side bounds what it reads
//! from the other; the host believes nothing that the agent says, because the program beside it may have become the agent.

mod bytes;
mod line;

pub use bytes::Bytes;
pub use line::{LINE_BYTES_MAX, line, read_line};

use serde::{Deserialize, Serialize};

/// The version of this protocol, which is a part of what a snapshot is made of.
pub const VERSION: u32 = 2;

/// How many bytes one piece of content has at most.
pub const PIECE_BYTES: usize = 192 << 10;

/// Where the agent finds the kernel modules that it loads, in the order of their names.
pub const MODULES: &str = "/modules";

/// Where the agent is, which the kernel starts as the first process.
pub const AGENT: &str = "/init";

/// Where the machine's busybox is.
pub const BUSYBOX: &str = "/bin/busybox";

/// What the host says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToGuest {
    /// A restored machine goes on: what it cannot know is the time, in nanoseconds since 1970, and random bytes that no
    /// other machine has.
    Begin {
        /// The time.
        time_ns: u64,
        /// The random bytes.
        entropy: Bytes,
    },
    /// A directory to make, with those above it, by absolute path.
    Directory(Bytes),
    /// A file to make, still empty; its directory has been made.
    File(FileHead),
    /// More of the file that was made last.
    Content(Bytes),
    /// More of the program's standard input.
    Input(Bytes),
    /// The program to run.
    Run(Run),
}

/// A file without its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileHead {
    /// Its absolute path.
    pub path: Bytes,
    /// Whether its owner may execute it.
    pub is_executable: bool,
}

/// A program to run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Its path, or a name that is searched in the `PATH` among its variables.
    pub program: Bytes,
    /// Its arguments.
    pub arguments: Vec<Bytes>,
    /// Its variables, and no others.
    pub variables: Vec<(Bytes, Bytes)>,
    /// The directory it starts in, which is made if it does not exist.
    pub directory: Bytes,
    /// Whether both of its outputs are one, [`FromGuest::Output`], in order of arrival; it has no input then.
    pub is_merged: bool,
    /// What is told of when the program has ended: the directories with all below them, and files, that it may change.
    pub returned: Vec<Bytes>,
}

/// What the agent says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromGuest {
    /// The machine is ready.
    Hello {
        /// Its [`VERSION`].
        version: u32,
    },
    /// The program was not started, for this reason.
    Failed(String),
    /// The program runs.
    Started,
    /// More of its standard output.
    Output(Bytes),
    /// More of its standard error.
    Errors(Bytes),
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Killed(i32),
    /// A directory that was not sent.
    Directory(Bytes),
    /// A file that is not as it was sent, still empty.
    File(FileHead),
    /// More of the file that was told of last.
    Content(Bytes),
    /// A file or a directory that was sent and is no more.
    Removed(Bytes),
    /// That was all.
    Done,
}
