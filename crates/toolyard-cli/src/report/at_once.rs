//! How many calls ran at once, according to their events.

use super::json::ms;
use serde_json::{Value, json};
use std::time::Duration;

/// The calls that run, how many there were at most, and for how long they ran: from their permits to their end. A call does
/// not count while it waits for its next attempt: it holds no permit then.
#[derive(Debug, Clone, Default)]
pub(crate) struct AtOnce {
    running: usize,
    most: usize,
    busy: Duration,
}

impl AtOnce {
    /// A call gets its permits, or another attempt starts.
    pub(super) fn begin(&mut self) {
        self.running += 1;
        self.most = self.most.max(self.running);
    }

    /// It has ended, or fails and waits for another attempt, after this time.
    pub(super) fn end(&mut self, ran: Duration) {
        self.running = self.running.saturating_sub(1);
        self.busy += ran;
    }

    /// The average over this time, with two digits after the point.
    fn average(&self, elapsed: Duration) -> Option<f64> {
        let average = self.busy.as_secs_f64() / elapsed.as_secs_f64();
        average.is_finite().then(|| (average * 100.0).round() / 100.0)
    }

    /// In words.
    pub(super) fn text(&self, elapsed: Duration) -> String {
        let average = self.average(elapsed).unwrap_or_default();
        format!("at once: {average:.1} calls on average, {} at most", self.most)
    }

    /// As data.
    pub(super) fn json(&self, elapsed: Duration) -> Value {
        json!({"average": self.average(elapsed), "most": self.most, "busy_ms": ms(self.busy)})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KT-11: the average is over the elapsed time, whatever runs at once.
    #[test]
    fn overlap_is_counted() {
        let second = Duration::from_secs(1);
        let mut at_once = AtOnce::default();
        (0..3).for_each(|_| at_once.begin());
        (0..2).for_each(|_| at_once.end(2 * second));
        at_once.begin();
        (0..2).for_each(|_| at_once.end(second));
        let expect = json!({"average": 1.5, "most": 3, "busy_ms": 6000.0});
        assert_eq!(at_once.json(4 * second), expect);
        assert_eq!(at_once.text(4 * second), "at once: 1.5 calls on average, 3 at most");
        assert_eq!(at_once.json(Duration::ZERO)["average"], Value::Null);
    }
}
