//! Journals, in a program that was built without the feature `journal`: it reads and writes none.

use crate::{check::open::OpenCall, cli::JournalCommand, error::Error, exit::Exit, export::Export};
use std::path::Path;

/// Why not.
#[derive(Debug, thiserror::Error)]
#[error(
    "this program has no journal: build it with the feature 'journal', which takes a C compiler: \
     cargo install --path crates/toolyard-cli --features journal"
)]
pub(crate) struct Failure;

impl Failure {
    pub(crate) fn exit(&self) -> Exit {
        Exit::Usage
    }
}

/// Does nothing.
///
/// # Errors
/// Why not.
pub(crate) async fn journal(_: JournalCommand, _: &Export) -> Result<Exit, Error> {
    Err(Failure.into())
}

/// Reads nothing.
///
/// # Errors
/// Why not.
pub(crate) fn open_calls(_: &Path) -> Result<Vec<OpenCall>, Error> {
    Err(Failure.into())
}
