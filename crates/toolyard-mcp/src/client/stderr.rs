//! What a server says beside its messages: to the log, line by line, and its last words kept.

use super::clean;
use crate::frame::Lines;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::AsyncRead;

/// The most bytes of a line; what says more in one line is read no further as lines, only away.
const LINE_BYTES_MAX: usize = 64 << 10;

/// The most characters of a line that are logged and kept.
const CHARS_MAX: usize = 1000;

/// The last line that a server said.
#[derive(Debug, Clone, Default)]
pub(super) struct LastWords(Arc<Mutex<String>>);

impl LastWords {
    /// The line; empty where it said nothing.
    pub(super) fn get(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, line: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = line;
    }
}

/// Reads to the end, so that a server that says much is never held up.
pub(super) async fn read(server: String, mut stderr: impl AsyncRead + Unpin, last: LastWords) {
    {
        let mut lines = Lines::new(&mut stderr, LINE_BYTES_MAX);
        while let Ok(Some(line)) = lines.next().await {
            let line = clean::text(&String::from_utf8_lossy(line), CHARS_MAX);
            if !line.trim().is_empty() {
                tracing::info!(server, line, "an MCP server says");
                last.set(line);
            }
        }
    }
    let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
}
