//! Limits that a group keeps.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Limits of all processes of a confined program together; `None` is no limit. One that is reached is
/// [`End::Limit`](crate::End::Limit).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupLimits {
    /// Bytes of memory, with what the program has in its private `/tmp`, what the kernel keeps of the files that it
    /// reads and writes, and about 2 MiB for the process that supervises it. Nothing of it is swapped out. At the limit
    /// the kernel ends all processes at once.
    pub memory: Option<u64>,
    /// CPU time, in user and kernel mode. It is looked at again as soon as it may have been used, at the earliest after
    /// 10 ms; so it is exceeded by at most the time that all processors can spend meanwhile.
    pub cpu_time: Option<Duration>,
    /// Processes and threads at once. At the limit no other can be started, which most programs end for.
    pub processes: Option<u64>,
}
