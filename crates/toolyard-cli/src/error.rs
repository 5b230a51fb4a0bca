//! Errors that keep the program from its work.

use crate::{config::ConfigErrors, exit::Exit, journal, logging::LOG_ENV};
use std::io;
use toolyard::BuildError;
use toolyard_mcp::{STDERR_LOG, StartError};

/// An error that keeps the program from its work, worded as one line; a configuration has a line for each error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// Invalid options.
    #[error("{0}")]
    Usage(String),
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The workspace cannot be opened.
    #[error("{0}; name a directory with --workspace or [workspace] root")]
    Workspace(String),
    /// The engine cannot be built.
    #[error("the engine cannot be built: {}", chain(.0))]
    Engine(#[from] BuildError),
    /// An MCP server cannot be used.
    #[error("{error}{hint}", error = .0, hint = hint(.0))]
    Servers(#[from] StartError),
    /// The input cannot be read as a batch.
    #[error("{place}: {why}")]
    Input {
        /// The file, and the line if it has several.
        place: String,
        /// What is wrong and what to do.
        why: String,
    },
    /// The other end of standard input is not an MCP client.
    #[error("standard input: {0}")]
    Client(String),
    /// Something could not be written.
    #[error("cannot write {what}: {error}")]
    Write {
        /// What could not be written.
        what: String,
        /// The error of the operating system.
        error: io::Error,
    },
    /// A server could not be fetched.
    #[error("cannot fetch: {0}")]
    Fetch(String),
    /// A sandbox could not be set up.
    #[error("cannot set up: {0}")]
    SetUp(String),
    /// A journal cannot be used, or what is asked of it cannot be done.
    #[error(transparent)]
    Journal(#[from] journal::Failure),
    /// The engine could not be measured.
    #[error("cannot measure: {0}")]
    Bench(String),
    /// The reader of the results has closed the pipe, so there is nothing to report.
    #[error("the reader of the results has closed the pipe")]
    ReaderGone,
}

impl Error {
    /// The exit code for this error.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::Input { .. } | Self::Client(_) => Exit::Input,
            Self::Journal(failure) => failure.exit(),
            Self::ReaderGone => Exit::Ok,
            Self::Fetch(_) | Self::SetUp(_) => Exit::CallFailed,
            Self::Usage(_)
            | Self::Config(_)
            | Self::Workspace(_)
            | Self::Engine(_)
            | Self::Servers(_)
            | Self::Bench(_)
            | Self::Write { .. } => Exit::Usage,
        }
    }

    /// The error for a failed write of the results.
    pub(crate) fn results(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::ReaderGone;
        }
        Self::Write { what: "the results".to_owned(), error }
    }

    /// Prints the error as one line; of a configuration, every error.
    pub(crate) fn print(&self) {
        match self {
            Self::ReaderGone => {}
            Self::Config(errors) => errors.lines().for_each(|line| anstream::eprintln!("toolyard: {line}")),
            error => anstream::eprintln!("toolyard: {error}"),
        }
    }
}

/// How to see what a server wrote, if its error leaves some of it out, and it is not logged already.
fn hint(error: &StartError) -> String {
    let leaves_out = error.to_string().contains(STDERR_LOG);
    match leaves_out && std::env::var_os(LOG_ENV).is_none() {
        true => format!("; to see them, set {LOG_ENV}={STDERR_LOG}"),
        false => String::new(),
    }
}

/// An error and its causes, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text.replace(['\r', '\n'], " ")
}
