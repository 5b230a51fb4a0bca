//! Reads a server's standard error: logs it line by line, and keeps the last lines.

use super::complaint;
use crate::{
    STDERR_LOG as LOG,
    client::text::clean,
    frame::{FrameError, Lines},
};
use parking_lot::{Mutex, MutexGuard};
use std::{collections::VecDeque, sync::Arc};
use tokio::io::AsyncRead;

/// Maximum size of a line in bytes; a longer one is only mentioned.
const LINE_BYTES_MAX: usize = 64 << 10;

/// Maximum number of characters of a line that are logged and kept.
const CHARS_MAX: usize = 1000;

/// How many lines are kept to explain a server's end.
const LINES_MAX: usize = 40;

/// Maximum number of characters of a line in an explanation.
const SHOWN_MAX: usize = 300;

/// The last lines on a server's standard error.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastLines(Arc<Mutex<Recent>>);

#[derive(Debug, Default)]
struct Recent {
    lines: VecDeque<String>,
    /// How many lines there were in all.
    count: usize,
}

impl LastLines {
    fn recent(&self) -> MutexGuard<'_, Recent> {
        self.0.lock()
    }

    fn push(&self, line: String) {
        let mut recent = self.recent();
        recent.count += 1;
        if recent.lines.len() == LINES_MAX {
            recent.lines.pop_front();
        }
        recent.lines.push_back(line);
    }

    /// What explains the server's end, on one line, and where the other lines are; `None` if there was none.
    pub(crate) fn explain(&self) -> Option<String> {
        let mut recent = self.recent();
        let lines = recent.lines.make_contiguous();
        let mut picked = complaint::pick(lines);
        if picked.is_empty() {
            picked.extend(lines.last().map(String::as_str));
        }
        let picked_count = picked.len();
        let shown: Vec<String> = picked.iter().map(|line| clean::text(line, SHOWN_MAX)).collect();
        let shown = (!shown.is_empty()).then(|| format!("on stderr: {}", shown.join(" / ")))?;
        Some(match recent.count - picked_count {
            0 => shown,
            1 => format!("{shown} (1 more line is logged by {LOG})"),
            more => format!("{shown} ({more} more lines are logged by {LOG})"),
        })
    }
}

/// Reads to the end, so that a server that writes much is never blocked.
pub(crate) async fn read(server: String, stderr: impl AsyncRead + Unpin, last: LastLines) {
    let mut lines = Lines::new(stderr, LINE_BYTES_MAX);
    loop {
        let line = match lines.next().await {
            Ok(Some(line)) => clean::text(&String::from_utf8_lossy(line), CHARS_MAX),
            Ok(None) | Err(FrameError::Broken(_)) => return,
            Err(FrameError::TooLong(bytes)) => format!("(a line of more than {bytes} bytes)"),
        };
        if !line.trim().is_empty() {
            tracing::info!(server, line, "an MCP server wrote to stderr");
            last.push(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What explains the end of a server with this output.
    async fn explained(output: &[u8]) -> Option<String> {
        let last = LastLines::default();
        read("s".to_owned(), output, last.clone()).await;
        last.explain()
    }

    /// A line that is too long does not hide the lines after it.
    #[tokio::test]
    async fn a_long_line_is_one_line() {
        let long = "x".repeat(LINE_BYTES_MAX + 1);
        let said = explained(format!("a\n{long}\nb\n\n").as_bytes()).await;
        assert_eq!(said.as_deref(), Some("on stderr: a / (a line of more than 65536 bytes) / b"));
        let said = explained(format!("{long}{long}\n").as_bytes()).await;
        assert_eq!(said.as_deref(), Some("on stderr: (a line of more than 65536 bytes)"));
    }

    /// The lines that matter come from anywhere in the output, and the message says where the others are.
    #[tokio::test]
    async fn an_end_is_explained_by_the_lines_that_matter() {
        assert_eq!(explained(b"\n").await, None);
        let said = explained(b"Error: no licence\n    at main (s.js:1)\nNode.js v20.1.0\n").await;
        let expect = "on stderr: Error: no licence (2 more lines are logged by toolyard_mcp=info)";
        assert_eq!(said.as_deref(), Some(expect));
        assert_eq!(explained(b"Node.js v20.1.0\n").await.as_deref(), Some("on stderr: Node.js v20.1.0"));
        let many = "frame\n".repeat(10_000) + &"x".repeat(5_000) + "\n";
        let said = explained(many.as_bytes()).await.unwrap();
        assert!(
            said.len() < 1_000 && said.ends_with("(9998 more lines are logged by toolyard_mcp=info)"),
            "{said}"
        );
    }
}
