//! Wall times as people read them, in UTC.

use std::fmt;

const DAY_MS: u64 = 86_400_000;

/// A day of the Gregorian calendar: `2026-03-01`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Day(u64);

/// A time of the day: `09:05:00.042`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Time(u64);

/// Splits milliseconds since 1970 into the day and the time of day.
pub(crate) const fn moment(wall_ms: u64) -> (Day, Time) {
    (Day(wall_ms / DAY_MS), Time(wall_ms % DAY_MS))
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Eras of 400 years that start on the first of March, so that a leap day is the last day of its year.
        let days = self.0 + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let (day, month) = (day - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
        let year = era * 400 + year + u64::from(month <= 2);
        write!(f, "{year:04}-{month:02}-{day:02}")
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, ms) = (self.0 / 1000, self.0 % 1000);
        write!(f, "{:02}:{:02}:{:02}.{ms:03}", seconds / 3600, seconds / 60 % 60, seconds % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_times_are_those_of_the_calendar() {
        let check = |wall_ms, expect: &str| {
            let (day, time) = moment(wall_ms);
            assert_eq!(format!("{day} {time}"), expect);
        };
        check(0, "1970-01-01 00:00:00.000");
        check(951_782_400_000, "2000-02-29 00:00:00.000");
        check(1_709_251_199_999, "2024-02-29 23:59:59.999");
        check(1_709_251_200_000, "2024-03-01 00:00:00.000");
        check(1_767_225_599_001, "2025-12-31 23:59:59.001");
        let _ = format!("{}", moment(u64::MAX).0);
    }
}
