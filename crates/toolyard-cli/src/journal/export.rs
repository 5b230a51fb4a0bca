//! `toolyard journal export`: every record as a line, which a chain of hashes can bind together.

use super::Failure;
use crate::{cli::JournalExportArgs, display::json_text, error::Error, exit::Exit};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::io::{self, BufWriter, Write};
use toolyard_journal::Reader;

/// What stands before the first line.
const NOTHING: [u8; 32] = [0; 32];

/// Prints the records.
pub(super) fn export(args: &JournalExportArgs) -> Result<Exit, Error> {
    let reader = Reader::open(&args.file)?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut chain = args.anchor.then(Chain::default);
    let mut is_there = args.session.is_none();
    reader.export(args.session.as_deref(), |kind, columns| {
        is_there = true;
        let mut line = Map::new();
        line.insert("kind".to_owned(), kind.into());
        line.extend(columns);
        if let Some(chain) = &chain {
            line.insert("before".to_owned(), hex(&chain.head).into());
        }
        let line = Value::from(line).to_string();
        let line = json_text(&line);
        if let Some(chain) = &mut chain {
            chain.add(&line);
        }
        writeln!(out, "{line}").map_err(Error::results)
    })?;
    if !is_there {
        return Err(Failure::no_session(args.session.as_deref().unwrap_or_default()).into());
    }
    if let Some(chain) = chain {
        let last = json!({"anchor": hex(&chain.head), "lines": chain.lines});
        writeln!(out, "{last}").map_err(Error::results)?;
    }
    out.flush().map_err(Error::results)?;
    Ok(Exit::Ok)
}

/// A chain of hashes over lines.
struct Chain {
    /// The hash of the last line.
    head: [u8; 32],
    lines: u64,
}

impl Default for Chain {
    fn default() -> Self {
        Self { head: NOTHING, lines: 0 }
    }
}

impl Chain {
    fn add(&mut self, line: &str) {
        self.head = Sha256::digest(line.as_bytes()).into();
        self.lines += 1;
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
