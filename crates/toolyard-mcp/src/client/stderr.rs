//! Reads a server's standard error: logs it line by line, and keeps the last line.

use super::clean;
use crate::frame::{FrameFault, Lines};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::AsyncRead;

/// Maximum size of a line in bytes; a longer one is only mentioned.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Maximum number of characters of a line that are logged and kept.
const CHARS_MAX: usize = 1000;

/// The last line on a server's standard error.
#[derive(Debug, Clone, Default)]
pub(super) struct LastLine(Arc<Mutex<String>>);

impl LastLine {
    /// The line; empty if there was none.
    pub(super) fn get(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, line: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = line;
    }
}

/// Reads to the end, so that a server that writes much is never blocked.
pub(super) async fn read(server: String, stderr: impl AsyncRead + Unpin, last: LastLine) {
    let mut lines = Lines::new(stderr, LINE_BYTES_MAX);
    loop {
        let line = match lines.next().await {
            Ok(Some(line)) => clean::text(&String::from_utf8_lossy(line), CHARS_MAX),
            Ok(None) | Err(FrameFault::Broken(_)) => return,
            Err(FrameFault::TooLong(bytes)) => format!("(a line of more than {bytes} bytes)"),
        };
        if !line.trim().is_empty() {
            tracing::info!(server, line, "an MCP server wrote to stderr");
            last.set(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last line of this output.
    async fn last_of(output: &[u8]) -> String {
        let last = LastLine::default();
        read("s".to_owned(), output, last.clone()).await;
        last.get()
    }

    /// A line that is too long does not hide the lines after it.
    #[tokio::test]
    async fn a_long_line_is_one_line() {
        let long = "x".repeat(LINE_BYTES_MAX + 1);
        assert_eq!(last_of(format!("a\n{long}\nb\n\n").as_bytes()).await, "b");
        assert_eq!(
            last_of(format!("a\n{long}{long}\n").as_bytes()).await,
            "(a line of more than 65536 bytes)"
        );
    }
}
