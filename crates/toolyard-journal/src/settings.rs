//! How a journal is written.

use serde::{Deserialize, Serialize};
use std::{fmt, time::Duration};

/// What a record that is durable survives (JR-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// The loss of power: every commit waits until the disk has it.
    #[default]
    Full,
    /// The end of this process, however it ends. What the operating system had not written when it stopped is lost.
    Process,
}

impl Durability {
    /// The word used in settings and in the file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Process => "process",
        }
    }

    /// How a connection of SQLite commits so.
    pub(crate) const fn pragmas(self) -> &'static str {
        match self {
            Self::Full => {
                "PRAGMA synchronous = FULL; PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON"
            }
            Self::Process => {
                "PRAGMA synchronous = NORMAL; PRAGMA fullfsync = OFF; PRAGMA checkpoint_fullfsync = OFF"
            }
        }
    }
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a journal is opened and written.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use toolyard_journal::{Durability, Settings};
/// let settings = Settings::default().durability(Durability::Process).lock_wait(Duration::from_secs(2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Settings {
    pub(crate) durability: Durability,
    pub(crate) lock_wait: Duration,
    pub(crate) linger: Duration,
    pub(crate) retry_for: Duration,
    pub(crate) queue_records_max: usize,
    pub(crate) queue_bytes_max: usize,
    pub(crate) keep_open: Duration,
    pub(crate) keep_keys: Duration,
    pub(crate) keep_results: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            durability: Durability::Full,
            lock_wait: Duration::from_secs(10),
            linger: Duration::from_millis(20),
            retry_for: Duration::from_secs(10),
            queue_records_max: 65_536,
            queue_bytes_max: 64 << 20,
            keep_open: Duration::from_secs(30 * 24 * 3600),
            keep_keys: Duration::from_secs(30 * 24 * 3600),
            keep_results: Duration::from_secs(24 * 3600),
        }
    }
}

impl Settings {
    /// What a durable record survives: [`Durability::Full`] by default.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// How long opening waits while another process has the file: 10 s by default (JR-4).
    pub fn lock_wait(mut self, at_most: Duration) -> Self {
        self.lock_wait = at_most;
        self
    }

    /// How long a record that nothing waits for may wait for a group to go with: 20 ms by default (JR-2). A crash loses
    /// at most what came in this time, and while that is written, and of calls that only read.
    pub fn linger(mut self, at_most: Duration) -> Self {
        self.linger = at_most;
        self
    }

    /// How long a group is tried while the disk is full or the file is busy, until those who wait for it are told that it
    /// has failed: 10 s by default (JR-12).
    pub fn retry_for(mut self, at_most: Duration) -> Self {
        self.retry_for = at_most;
        self
    }

    /// How many records may wait for the writer (65 536 by default), and how many bytes of them (64 MiB). One that finds
    /// the queue full fails. Those that nobody waits for, of calls that only read, have half of both, and are left out if that
    /// is full (JR-3). A record that is larger than the bound goes when none of its kind waits.
    pub fn queue_max(mut self, records: usize, bytes: usize) -> Self {
        (self.queue_records_max, self.queue_bytes_max) = (records, bytes);
        self
    }

    /// How long a turn stays open that nobody resumes: 30 days by default, from the beginning of the epoch after the one that
    /// has left it. When the journal is opened later than that, its calls end: those that were started `interrupted`, the
    /// others `cancelled`, both with the reason `expired` (JR-10).
    pub fn keep_open(mut self, at_most: Duration) -> Self {
        self.keep_open = at_most;
        self
    }

    /// For how long a key is known after the last start of a call under it: 30 days by default (JR-10).
    pub fn keep_keys(mut self, at_most: Duration) -> Self {
        self.keep_keys = at_most;
        self
    }

    /// For how long its result is replayed by another engine: 24 hours by default (JR-10).
    pub fn keep_results(mut self, at_most: Duration) -> Self {
        self.keep_results = at_most;
        self
    }
}
