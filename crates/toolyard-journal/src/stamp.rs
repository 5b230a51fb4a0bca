//! Times, as the file has them: milliseconds since 1970.

use std::time::{Duration, SystemTime};

/// This many milliseconds after 1970, as the file has times.
pub(crate) fn millis(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The time that this number stands for. A year past 9999, which no clock says, is the beginning of 1970.
pub(crate) fn time(millis: i64) -> SystemTime {
    const YEAR_10000: u64 = 253_402_300_800_000;
    let millis = u64::try_from(millis).ok().filter(|millis| *millis < YEAR_10000).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
}
