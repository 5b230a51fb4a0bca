//! What an agent writes for people: logged under its name, escaped, bounded, and not too much of it at once (AG-4).

use std::time::Duration;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    time::Instant,
};
use toolyard::{AgentPath, is_plain};

/// The most characters of a line that are logged.
const CHARS_MAX: usize = 1_000;

/// The most bytes of a line that are looked at.
const BYTES_MAX: usize = 4 * CHARS_MAX;

/// How many lines of an agent are logged in [`WINDOW`].
const LINES_MAX: u32 = 100;

const WINDOW: Duration = Duration::from_secs(1);

/// Reads to the end, so that an agent that writes much is never blocked.
pub(crate) async fn log(agent: AgentPath, mut from: impl AsyncRead + Unpin) {
    let (mut chunk, mut line, mut log) = (vec![0; 4 << 10], Vec::new(), Log::new(agent));
    while let Ok(read @ 1..) = from.read(&mut chunk).await {
        for byte in &chunk[..read] {
            match byte {
                b'\n' => {
                    log.line(&line);
                    line.clear();
                }
                _ if line.len() < BYTES_MAX => line.push(*byte),
                _ => {}
            }
        }
    }
    log.line(&line);
    log.window_ends();
}

struct Log {
    agent: AgentPath,
    since: Instant,
    lines: u32,
    left_out: u64,
}

impl Log {
    fn new(agent: AgentPath) -> Self {
        Self { agent, since: Instant::now(), lines: 0, left_out: 0 }
    }

    fn line(&mut self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        if self.since.elapsed() >= WINDOW {
            self.window_ends();
        }
        if self.lines == LINES_MAX {
            self.left_out += 1;
            return;
        }
        self.lines += 1;
        let (agent, line) = (self.agent.as_str(), shown(line));
        tracing::info!(agent, line, "an agent wrote to its standard error");
    }

    /// Says what was left out, and begins to count anew.
    fn window_ends(&mut self) {
        if self.left_out > 0 {
            let (agent, left_out) = (self.agent.as_str(), self.left_out);
            tracing::warn!(agent, left_out, "lines of an agent's standard error were left out");
        }
        (self.since, self.lines, self.left_out) = (Instant::now(), 0, 0);
    }
}

/// A line as it can be shown anywhere.
fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let mut shown = String::with_capacity(text.len().min(CHARS_MAX));
    for char in text.trim_end_matches('\r').chars().take(CHARS_MAX) {
        match is_plain(char) {
            true => shown.push(char),
            false => shown.extend(char.escape_unicode()),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AG-4: what is logged is one line of plain text.
    #[test]
    fn a_line_is_escaped_and_bounded() {
        assert_eq!(shown("a\u{1b}[31mü\u{202e}b\r".as_bytes()), r"a\u{1b}[31mü\u{202e}b");
        assert_eq!(shown(&[b'x'; BYTES_MAX]).len(), CHARS_MAX);
    }

    /// AG-4: an agent that writes without end is read to its end, and few of its lines are logged.
    #[tokio::test(start_paused = true)]
    async fn a_flood_is_left_out() {
        let text = "line\n".repeat(100_000);
        log(AgentPath::root(), text.as_bytes()).await;
        let mut log = Log::new(AgentPath::root());
        (0..1_000).for_each(|_| log.line(b"x"));
        assert_eq!((log.lines, log.left_out), (LINES_MAX, 900));
        tokio::time::advance(WINDOW).await;
        log.line(b"x");
        assert_eq!((log.lines, log.left_out), (1, 0));
    }
}
