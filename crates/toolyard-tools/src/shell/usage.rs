//! What a command used, as its result says it.

use std::time::Duration;
use toolyard_core::Usage;
use toolyard_process::Ran;

/// What a program that ran for this long used, with all that it started (SB-9). Without a helper, no more than the time is
/// known.
pub fn usage(ran: &Ran, wall: Duration) -> Usage {
    let usage = Usage::lasting(wall);
    ran.used.map_or(usage, |used| usage.cpu(used.cpu).memory_peak(used.memory_peak))
}
