//! The engine's clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// The engine's time: tokio's clock, which tests can pause, and the wall time at which it started.
///
/// Every wait of the engine is a tokio timer and every instant comes from here, so pausing tokio's clock pauses the
/// whole engine. Wall time is the start plus the elapsed time on that clock, so it never jumps.
///
/// # Examples
/// ```
/// use std::time::{Duration, SystemTime};
/// use toolyard::Clock;
/// let clock = Clock::starting_at(SystemTime::UNIX_EPOCH + Duration::from_secs(1));
/// assert!(clock.wall_ms(clock.now()) >= 1000);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    started_at: Instant,
    wall_at_start: Duration,
}

/// An instant, as events have it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    /// Milliseconds from the Unix epoch.
    pub(crate) wall_ms: u64,
    /// Microseconds from the clock's start.
    pub(crate) mono_us: u64,
}

impl Clock {
    /// A clock that starts at the system's wall time.
    pub fn system() -> Self {
        Self::starting_at(SystemTime::now())
    }

    /// A clock that starts at the wall time `wall`, for reproducible runs.
    pub fn starting_at(wall: SystemTime) -> Self {
        let wall_at_start = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started_at: Instant::now(), wall_at_start }
    }

    /// The current instant.
    pub fn now(&self) -> Instant {
        Instant::now()
    }

    /// Microseconds from the clock's start to `at`.
    pub fn mono_us(&self, at: Instant) -> u64 {
        self.stamp(at).mono_us
    }

    /// Milliseconds from the Unix epoch to `at`.
    pub fn wall_ms(&self, at: Instant) -> u64 {
        self.stamp(at).wall_ms
    }

    /// The times of an event at this instant.
    pub(crate) fn stamp(&self, at: Instant) -> Stamp {
        let since_start = at.saturating_duration_since(self.started_at);
        let wall = self.wall_at_start + since_start;
        // In 64 bits, because this is done for every event.
        let whole =
            |seconds: u64, parts: u64, rest: u32| seconds.saturating_mul(parts).saturating_add(rest.into());
        Stamp {
            wall_ms: whole(wall.as_secs(), 1_000, wall.subsec_millis()),
            mono_us: whole(since_start.as_secs(), 1_000_000, since_start.subsec_micros()),
        }
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}
