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

/// One message of the supervisor: one line of text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Message {
    /// The command is about to be started: from here on it may have processes.
    Starting,
    /// The command could not be started.
    Failed(String),
    /// The command itself has ended.
    Ended(End),
    /// All processes have ended except `surviving` of them. `remaining` processes were running when the command had
    /// ended, or when it was stopped (then including the command itself).
    Done { remaining: usize, surviving: usize },
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => writeln!(f, "starting command"),
            Self::Failed(why) => writeln!(f, "failed {}", why.replace(['\n', '\r'], " ")),
            Self::Ended(End::Exited(code)) => writeln!(f, "exited {code}"),
            Self::Ended(End::Killed(signal)) => writeln!(f, "killed {signal}"),
            Self::Done { remaining, surviving } => writeln!(f, "done {remaining} {surviving}"),
        }
    }
}

impl Message {
    /// Parses a line as a message.
    pub(super) fn read(line: &str) -> Option<Self> {
        let (message, rest) = line.split_once(' ')?;
        match message {
            "starting" => Some(Self::Starting),
            "failed" => Some(Self::Failed(rest.to_owned())),
            "exited" => rest.parse().ok().map(|code| Self::Ended(End::Exited(code))),
            "killed" => rest.parse().ok().map(|signal| Self::Ended(End::Killed(signal))),
            "done" => {
                let (remaining, surviving) = rest.split_once(' ')?;
                Some(Self::Done { remaining: remaining.parse().ok()?, surviving: surviving.parse().ok()? })
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
    pub(super) fn apply(&mut self, message: Message) {
        match message {
            Message::Starting => self.started = true,
            Message::Failed(why) => self.failed = Some(why),
            Message::Ended(end) => self.end = Some(end),
            Message::Done { remaining, surviving } => self.done = Some((remaining, surviving)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_reads_back() {
        let messages = [
            Message::Starting,
            Message::Ended(End::Exited(3)),
            Message::Ended(End::Killed(9)),
            Message::Done { remaining: 2, surviving: 1 },
            Message::Failed("no such file".to_owned()),
        ];
        for message in messages {
            let line = message.to_string();
            assert_eq!(line.strip_suffix('\n').and_then(Message::read), Some(message));
        }
        assert_eq!(Message::Failed("a\nb".to_owned()).to_string(), "failed a b\n");
        assert_eq!(Message::read("nonsense"), None);
    }
}
