//! Results on standard output, and nothing but results.

use crate::{fault::Fault, shown::json_text};
use serde_json::Value;
use std::io::{self, Write};

/// Prints a value on several lines.
pub(crate) fn print_pretty(value: &Value) -> Result<(), Fault> {
    print_text(&json_text(&format!("{value:#}\n")))
}

/// Prints a value as one line, flushed before anything else happens.
pub(crate) fn print_line(value: &Value) -> Result<(), Fault> {
    print_text(&json_text(&format!("{value}\n")))
}

/// Prints a text and flushes it.
pub(crate) fn print_text(text: &str) -> Result<(), Fault> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Fault::results)
}
