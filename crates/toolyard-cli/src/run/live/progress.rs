//! How far the episodes of a run are.

use std::time::Duration;
use tokio::time::Instant;

/// The turns of the episodes.
#[derive(Debug)]
pub(super) struct Progress {
    /// Those that were done before this run, or will not run.
    not_run: u64,
    /// Those that have ended in this run.
    ended: u64,
    /// All of them, if they were counted before.
    total: Option<u64>,
    since: Instant,
}

impl Progress {
    pub(super) fn new(done: u64, total: Option<u64>, now: Instant) -> Self {
        Self { not_run: done, ended: 0, total, since: now }
    }

    pub(super) fn turn_ended(&mut self) {
        self.ended += 1;
    }

    pub(super) fn skip(&mut self, turns: u64) {
        self.not_run += turns;
    }

    /// The turns that are done, and all of them.
    pub(super) fn position(&self) -> (u64, u64) {
        let done = self.not_run + self.ended;
        (done, self.total.unwrap_or(done))
    }

    /// Failed calls, turns per second so far, and how long the rest takes at that rate.
    pub(super) fn text(&self, failed: u64, now: Instant) -> String {
        let elapsed = now.saturating_duration_since(self.since).as_secs_f64();
        if self.ended == 0 || elapsed <= 0.0 {
            return format!("{failed} failed");
        }
        let rate = self.ended as f64 / elapsed;
        let (done, total) = self.position();
        let left = match self.total {
            Some(_) => {
                let left = Duration::try_from_secs_f64(total.saturating_sub(done) as f64 / rate);
                format!("  {} left", clock(left.unwrap_or(Duration::MAX)))
            }
            None => String::new(),
        };
        format!("{failed} failed  {rate:.1}/s{left}")
    }
}

/// A time in whole seconds, minutes or hours: `8s`, `2m05s`, `3h07m`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KT-12: the total stays, whatever is done; one that is not known is not made up.
    #[test]
    fn the_total_does_not_move() {
        let now = Instant::now();
        let later = now + Duration::from_secs(10);
        let mut counted = Progress::new(40, Some(400), now);
        assert_eq!((counted.position(), counted.text(0, later)), ((40, 400), "0 failed".to_owned()));
        (0..30).for_each(|_| counted.turn_ended());
        counted.skip(30);
        assert_eq!(counted.position(), (100, 400));
        assert_eq!(counted.text(2, later), "2 failed  3.0/s  1m40s left");
        let mut piped = Progress::new(0, None, now);
        (0..30).for_each(|_| piped.turn_ended());
        assert_eq!((piped.position().0, piped.text(2, later)), (30, "2 failed  3.0/s".to_owned()));
    }

    #[test]
    fn times_are_short() {
        let texts = [8, 125, 11_220].map(|seconds| clock(Duration::from_secs(seconds)));
        assert_eq!(texts, ["8s", "2m05s", "3h07m"]);
    }
}
