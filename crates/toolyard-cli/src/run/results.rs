//! Results on standard output, and nothing but results.

use crate::{fault::Fault, shown::json_text};
use serde_json::Value;
use std::{
    fmt,
    io::{self, BufWriter, StdoutLock, Write},
};

/// How many bytes are written at a time.
const PIECE: usize = 64 << 10;

/// Prints a value on several lines.
pub(crate) fn print_pretty(value: &Value) -> Result<(), Fault> {
    print_json(format_args!("{value:#}\n"))
}

/// Prints a value as one line, flushed before anything else happens.
pub(crate) fn print_line(value: &Value) -> Result<(), Fault> {
    print_json(format_args!("{value}\n"))
}

/// Prints a text and flushes it.
pub(crate) fn print_text(text: &str) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Fault::results)
}

/// Prints JSON text as it is formatted, never held as a whole: the results of a batch may be a hundred megabytes.
fn print_json(json: fmt::Arguments<'_>) -> Result<(), Fault> {
    let mut to = Pieces { out: BufWriter::with_capacity(PIECE, io::stdout().lock()), written: Ok(()) };
    let formatted = fmt::write(&mut to, json);
    let written = match formatted {
        Ok(()) => to.out.flush(),
        Err(fmt::Error) => to.written, // only writing can fail
    };
    written.map_err(Fault::results)
}

/// Writes the pieces of a JSON text, with what is not plainly visible escaped.
struct Pieces {
    out: BufWriter<StdoutLock<'static>>,
    /// The first error.
    written: io::Result<()>,
}

impl fmt::Write for Pieces {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        self.written = self.out.write_all(json_text(piece).as_bytes());
        if self.written.is_ok() { Ok(()) } else { Err(fmt::Error) }
    }
}
