//! Results on standard output, and nothing but results.

use crate::{display::json_text, error::Error};
use serde::Serialize;
use std::{
    io::{self, BufWriter, StdoutLock, Write},
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

/// Prints JSON text as it is formatted, never held as a whole: the results of a batch may be a hundred megabytes.
fn print_json(write: impl FnOnce(&mut Pieces) -> serde_json::Result<()>) -> Result<(), Error> {
    let mut out = Pieces(BufWriter::with_capacity(PIECE, io::stdout().lock()));
    let written = write(&mut out).map_err(io::Error::from);
    written.and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush()).map_err(Error::results)
}

/// Writes the pieces of a JSON text, with what is not plainly visible escaped.
struct Pieces(BufWriter<StdoutLock<'static>>);

impl Write for Pieces {
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
