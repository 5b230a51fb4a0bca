//! Results on standard output, and nothing but results; or in a file of their own.

use super::results_file::ResultsFile;
use crate::{display::json_text, error::Error};
use serde::Serialize;
use std::{
    io::{self, BufWriter, Write},
    path::PathBuf,
    str,
};

/// How many bytes are written at a time.
const PIECE: usize = 64 << 10;

/// Prints a value on several lines.
pub(crate) fn print_pretty(value: &impl Serialize) -> Result<(), Error> {
    print_json(|out| serde_json::to_writer_pretty(out, value))
}

/// Prints a value as one line, flushed before anything else happens.
pub(crate) fn print_line(value: &impl Serialize) -> Result<(), Error> {
    print_json(|out| serde_json::to_writer(out, value))
}

/// Prints a text and flushes it.
pub(crate) fn print_text(text: &str) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Error::results)
}

/// Writes a value as one line.
pub(super) fn write_line(to: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    write_json(to, |out| serde_json::to_writer(out, value))
}

/// Where the results of episodes go.
#[derive(Debug)]
pub(super) enum Results {
    /// Standard output, where every turn is of use as soon as it has ended.
    Stdout,
    /// A file that holds whole episodes (KT-9).
    File(ResultsFile),
}

impl Results {
    /// Whether the turns of an episode may be written before it has ended.
    pub(super) fn is_by_turn(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// The file, if it is one.
    pub(super) fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Stdout => None,
            Self::File(file) => Some(file.path().to_owned()),
        }
    }

    /// Writes lines.
    pub(super) fn write(&mut self, lines: &[u8]) -> Result<(), Error> {
        match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                out.write_all(lines).and_then(|()| out.flush()).map_err(Error::results)
            }
            Self::File(file) => file.append(lines).map_err(|error| file.failed(error)),
        }
    }

    /// The error of a write.
    pub(super) fn failed(&self, error: io::Error) -> Error {
        match self {
            Self::Stdout => Error::results(error),
            Self::File(file) => file.failed(error),
        }
    }
}

/// Prints JSON text as it is formatted, never held as a whole: the results of a batch may be a hundred megabytes.
fn print_json(
    write: impl FnOnce(&mut Pieces<io::StdoutLock<'static>>) -> serde_json::Result<()>,
) -> Result<(), Error> {
    write_json(io::stdout().lock(), write).map_err(Error::results)
}

/// Writes JSON text and the end of its last line, and flushes it.
fn write_json<W: Write>(
    to: W,
    write: impl FnOnce(&mut Pieces<W>) -> serde_json::Result<()>,
) -> io::Result<()> {
    let mut out = Pieces(BufWriter::with_capacity(PIECE, to));
    let written = write(&mut out).map_err(io::Error::from);
    written.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush())
}

/// Writes the pieces of a JSON text, with what is not plainly visible escaped.
struct Pieces<W: Write>(BufWriter<W>);

impl<W: Write> Write for Pieces<W> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        // No character is cut: JSON text is written up to one that has to be escaped.
        let text = str::from_utf8(piece).map_err(io::Error::other)?;
        self.0.write_all(json_text(text).as_bytes())?;
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
