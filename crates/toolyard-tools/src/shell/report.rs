//! Reports on a command: the supervisor's lines of text, and the final report for the waiting call.

#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "supervisors exist only on Linux"))]

use rustix::process::WaitStatus;
use std::{fmt, process::ExitStatus};

/// How the command itself ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Killed(i32),
}

impl End {
    pub(super) fn of(status: WaitStatus) -> Self {
        match status.terminating_signal() {
            Some(signal) => Self::Killed(signal),
            None => Self::Exited(status.exit_status().unwrap_or_default()),
        }
    }

    pub(super) fn of_child(status: ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt as _;
        match status.signal() {
            Some(signal) => Self::Killed(signal),
            None => Self::Exited(status.code().unwrap_or_default()),
        }
    }
}

/// One word (message) of the supervisor, which is one line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Word {
    /// The command is about to be started: from here on it may have processes.
    Starting,
    /// The command could not be started.
    Failed(String),
    /// The command itself has ended.
    Over(End),
    /// All processes have ended except `left` of them. `beside` processes were running when the command had ended, or
    /// when it was stopped (then including the command itself).
    Done { beside: usize, left: usize },
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => writeln!(f, "starting command"),
            Self::Failed(why) => writeln!(f, "failed {}", why.replace(['\n', '\r'], " ")),
            Self::Over(End::Exited(code)) => writeln!(f, "exited {code}"),
            Self::Over(End::Killed(signal)) => writeln!(f, "killed {signal}"),
            Self::Done { beside, left } => writeln!(f, "done {beside} {left}"),
        }
    }
}

impl Word {
    /// Parses a line as a word.
    pub(super) fn read(line: &str) -> Option<Self> {
        let (word, rest) = line.split_once(' ')?;
        match word {
            "starting" => Some(Self::Starting),
            "failed" => Some(Self::Failed(rest.to_owned())),
            "exited" => rest.parse().ok().map(|code| Self::Over(End::Exited(code))),
            "killed" => rest.parse().ok().map(|signal| Self::Over(End::Killed(signal))),
            "done" => {
                let (beside, left) = rest.split_once(' ')?;
                Some(Self::Done { beside: beside.parse().ok()?, left: left.parse().ok()? })
            }
            _ => None,
        }
    }
}

/// The facts about a command and its processes after they have ended.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Whether the command may have been started.
    pub(super) started: bool,
    /// How the command itself ended; `None` if it was stopped.
    pub(super) end: Option<End>,
    /// Why it could not be started.
    pub(super) failed: Option<String>,
    /// How many processes it left behind, and how many of those could not be ended; a process group counts only 0 or 1.
    /// `None` if the supervisor vanished before it could report them.
    pub(super) done: Option<(usize, usize)>,
}

impl Report {
    pub(super) fn take(&mut self, word: Word) {
        match word {
            Word::Starting => self.started = true,
            Word::Failed(why) => self.failed = Some(why),
            Word::Over(end) => self.end = Some(end),
            Word::Done { beside, left } => self.done = Some((beside, left)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back() {
        let words = [
            Word::Starting,
            Word::Over(End::Exited(3)),
            Word::Over(End::Killed(9)),
            Word::Done { beside: 2, left: 1 },
            Word::Failed("no such file".to_owned()),
        ];
        for word in words {
            let line = word.to_string();
            assert_eq!(line.strip_suffix('\n').and_then(Word::read), Some(word));
        }
        assert_eq!(Word::Failed("a\nb".to_owned()).to_string(), "failed a b\n");
        assert_eq!(Word::read("nonsense"), None);
    }
}
