//! Where the engine's time comes from.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// The engine's time: tokio's clock, which a test can pause, and the wall time at which it began.
///
/// Every wait of the engine is a tokio timer and every instant comes from here, so paused time moves the
/// whole engine. Wall time is the start plus what the clock has run since: it never jumps.
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

impl Clock {
    /// The machine's time.
    pub fn system() -> Self {
        Self::starting_at(SystemTime::now())
    }

    /// A clock whose wall time is `wall` now, for runs that are to be the same each time.
    pub fn starting_at(wall: SystemTime) -> Self {
        let wall_at_start = wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { started_at: Instant::now(), wall_at_start }
    }

    /// Now.
    pub fn now(&self) -> Instant {
        Instant::now()
    }

    /// Microseconds from the clock's start to `at`.
    pub fn mono_us(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.started_at).as_micros()).unwrap_or(u64::MAX)
    }

    /// Milliseconds from 1970 to `at`.
    pub fn wall_ms(&self, at: Instant) -> u64 {
        let wall = self.wall_at_start + at.saturating_duration_since(self.started_at);
        u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::system()
    }
}
