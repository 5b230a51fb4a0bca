//! A time span in eight bytes.

use std::time::Duration;

/// A [`Duration`] in half the space, because every call and every outcome holds two of them.
///
/// Exact to the nanosecond up to 136 years; longer spans are capped at that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Elapsed {
    secs: u32,
    nanos: u32,
}

impl From<Duration> for Elapsed {
    fn from(time: Duration) -> Self {
        Self { secs: u32::try_from(time.as_secs()).unwrap_or(u32::MAX), nanos: time.subsec_nanos() }
    }
}

impl From<Elapsed> for Duration {
    fn from(Elapsed { secs, nanos }: Elapsed) -> Self {
        Self::new(secs.into(), nanos)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_kept_to_the_nanosecond() {
        for time in [Duration::ZERO, Duration::new(0, 999_999_999), Duration::new(u32::MAX.into(), 1)] {
            assert_eq!(Duration::from(Elapsed::from(time)), time);
        }
        assert_eq!(Duration::from(Elapsed::from(Duration::MAX)), Duration::new(u32::MAX.into(), 999_999_999));
    }
}
