//! `toolyard journal prune`: removes what has ended.

use super::{write, write_line};
use crate::{cli::JournalPruneArgs, error::Error, exit::Exit};
use serde_json::json;
use std::io::{self, Write};
use toolyard_journal::Keep;

/// Removes turns, with the journal held so that nobody writes it meanwhile.
pub(super) fn prune(args: &JournalPruneArgs) -> Result<Exit, Error> {
    let mut keep = Keep::default();
    if let Some(age) = args.older_than {
        keep = keep.newer_than(age);
    }
    if let Some(bytes) = args.max_size {
        keep = keep.at_most(bytes);
    }
    let journal = write(&args.file)?;
    let pruned = toolyard_journal::prune(journal.path(), keep);
    let closed = journal.close();
    let pruned = pruned?;
    closed?;
    let mut out = io::stdout().lock();
    let written = match args.json {
        true => write_line(&mut out, &json!({"batches": pruned.batches, "bytes": pruned.bytes})),
        false => {
            writeln!(out, "batches removed: {}; the journal has {} bytes", pruned.batches, pruned.bytes)
        }
    };
    written.and_then(|()| out.flush()).map_err(Error::results)?;
    Ok(Exit::Ok)
}
