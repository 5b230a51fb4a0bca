//! What became of a program, and of what it started.

use std::{fmt, process::ExitStatus, time::Duration};

/// How a program itself ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(target_os = "linux", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(target_os = "linux", serde(rename_all = "snake_case"))]
pub enum End {
    /// It exited with this code.
    Exited(i32),
    /// This signal ended it.
    Killed(i32),
    /// It ran into this limit of all its processes together, which ended it, or for which it ended.
    Limit(Limit),
}

impl fmt::Display for End {
    /// In the words of [`ExitStatus`], such as `exit status: 1` or `signal: 9 (SIGKILL)`; a limit by its name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exited(code) => exited(code).fmt(f),
            Self::Killed(signal) => killed(signal).fmt(f),
            Self::Limit(limit) => write!(f, "its limit of {limit}"),
        }
    }
}

/// A limit of all processes of a program together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(target_os = "linux", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(target_os = "linux", serde(rename_all = "snake_case"))]
pub enum Limit {
    /// The memory that they have at once.
    Memory,
    /// The CPU time that they use.
    CpuTime,
    /// How many they are at once, with their threads.
    Processes,
}

impl Limit {
    /// Its name, as errors and grants call it: `memory`, `CPU time`, `processes`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::CpuTime => "CPU time",
            Self::Processes => "processes",
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(unix)]
fn exited(code: i32) -> ExitStatus {
    use std::os::unix::process::ExitStatusExt as _;
    ExitStatus::from_raw(code << 8)
}

#[cfg(unix)]
fn killed(signal: i32) -> ExitStatus {
    use std::os::unix::process::ExitStatusExt as _;
    ExitStatus::from_raw(signal)
}

#[cfg(windows)]
fn exited(code: i32) -> ExitStatus {
    use std::os::windows::process::ExitStatusExt as _;
    ExitStatus::from_raw(code.cast_unsigned())
}

/// There are no signals.
#[cfg(windows)]
use exited as killed;

/// What became of a program, when nothing of it is left to wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// It did not run, so it has done nothing.
    NotStarted(NotStarted),
    /// It was started.
    Ran(Ran),
}

/// Why a program did not run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotStarted {
    /// The system, or its helper, refused to start it, for this reason.
    Refused(String),
    /// It could not be confined as it was to be, for this reason.
    NotConfined(String),
    /// It could not be confined because this machine lets its user make no namespaces, for this reason.
    NoNamespaces(String),
    /// Its helper exited before it started the program: it is no helper, or was killed.
    HelperEnded,
}

impl fmt::Display for NotStarted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(why) | Self::NotConfined(why) | Self::NoNamespaces(why) => f.write_str(why),
            Self::HelperEnded => f.write_str("its helper exited before the program started"),
        }
    }
}

impl std::error::Error for NotStarted {}

/// A program that ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ran {
    /// How it ended by itself; `None` if it was stopped before it had ended.
    pub end: Option<End>,
    /// What became of the other processes. `None` if the helper vanished before it could report them, so that some may
    /// be left.
    pub rest: Option<Rest>,
    /// What it used, with all that it started. `None` without a helper, and if that vanished.
    pub used: Option<Used>,
}

impl Ran {
    /// Nothing is known of how it ended.
    pub(crate) const UNKNOWN: Self = Self { end: None, rest: None, used: None };
}

/// What a program and the processes that it started used, of those that have ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(target_os = "linux", derive(serde::Serialize, serde::Deserialize))]
pub struct Used {
    /// Processor time of all of them, their own and the system's for them.
    pub cpu: Duration,
    /// The most memory that the largest of them had resident, in bytes; in a group that has the controller `memory`, the
    /// most that all of them had together, as it counts. A process begins as a copy of its helper, so that it is some
    /// megabytes at least.
    pub memory_peak: u64,
}

/// The processes that a program left behind. A process group counts only 0 or 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(target_os = "linux", derive(serde::Serialize, serde::Deserialize))]
pub struct Rest {
    /// How many were running when the program had ended, or when it was stopped (then including the program itself).
    pub left: usize,
    /// How many of those could not be ended.
    pub surviving: usize,
}

impl Rest {
    /// The program left nothing.
    #[cfg(target_os = "linux")]
    pub(crate) const NONE: Self = Self { left: 0, surviving: 0 };
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_worded_as_the_system_words_it() {
        assert_eq!(End::Exited(3).to_string(), "exit status: 3");
        assert_eq!(End::Killed(9).to_string(), "signal: 9 (SIGKILL)");
        assert_eq!(End::Limit(Limit::CpuTime).to_string(), "its limit of CPU time");
    }
}
