//! `toolyard journal`: what an engine has recorded, for people and scripts.
//!
//! ```text
//!   ls, show, export, verify ─► Reader, beside a writer ─► text, or JSON lines
//!   prune, approve, forget   ─► Journal, as its writer: refused while another program has it
//!   resume                   ─► a run, which reads no response
//! ```

mod answers;
mod approve;
mod export;
mod forget;
mod list;
mod open_calls;
mod prune;
mod show;
mod verify;

pub(crate) use answers::Answers;
pub(crate) use open_calls::open_calls;

use crate::{
    audit::moment::moment,
    cli::JournalCommand,
    display::{clip, json_text},
    error::{Error, chain},
    exit::Exit,
    export::Export,
    run,
};
use serde_json::Value;
use std::{
    io::{self, Write},
    path::Path,
    time::{Duration, SystemTime},
};
use toolyard_journal::{Journal, JournalError, Reader, Settings};

const NAME_CHARS: usize = 60;

/// Why a command does not do what it should.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The file cannot be used.
    #[error("{}", chain(.0))]
    Journal(#[from] JournalError),
    /// What is asked for is not there, or cannot be done.
    #[error("{0}")]
    Refused(String),
}

impl Failure {
    fn no_session(name: &str) -> Self {
        let name = clip(name, NAME_CHARS);
        Self::Refused(format!("no session {name} with a turn is in this journal: see 'toolyard journal ls'"))
    }

    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Refused(_) => Exit::CallFailed,
            Self::Journal(
                JournalError::Held { .. }
                | JournalError::StillRuns { .. }
                | JournalError::FileSystem { .. }
                | JournalError::Stopped(_),
            ) => Exit::Usage,
            Self::Journal(_) => Exit::Input,
        }
    }
}

impl From<JournalError> for Error {
    fn from(error: JournalError) -> Self {
        Self::Journal(error.into())
    }
}

/// Does what the subcommand says; `export` observes the engine of one that runs calls.
pub(crate) async fn journal(command: JournalCommand, export: &Export) -> Result<Exit, Error> {
    match command {
        JournalCommand::Ls(args) => list::ls(&args),
        JournalCommand::Show(args) => show::show(&args),
        JournalCommand::Verify(args) => verify::verify(&args),
        JournalCommand::Prune(args) => prune::prune(&args),
        JournalCommand::Export(args) => export::export(&args),
        JournalCommand::Resume(args) => {
            must_be_there(&args.file)?;
            run::run(args.into_run(), export).await
        }
        JournalCommand::Approve(args) => approve::approve(args).await,
        JournalCommand::Forget(args) => forget::forget(args).await,
    }
}

/// A writer makes a journal where there is none; here that is a name that was mistyped.
fn must_be_there(file: &Path) -> Result<(), JournalError> {
    Reader::open(file).map(drop)
}

/// Opens a journal that is there, as its writer.
fn write(file: &Path) -> Result<Journal, JournalError> {
    must_be_there(file)?;
    // How long a turn stays open is for the program to say that goes on with it.
    let settings = Settings::default().keep_open(Duration::MAX).lock_wait(Duration::ZERO);
    Journal::open(file, settings)
}

/// Writes a value as one line, with nothing in it that acts on a terminal.
fn write_line(out: &mut impl Write, value: &Value) -> io::Result<()> {
    writeln!(out, "{}", json_text(&value.to_string()))
}

/// Milliseconds since 1970.
fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A time as people read it, in UTC.
fn shown(time: SystemTime) -> String {
    let (day, time) = moment(millis(time));
    format!("{day} {time}")
}
