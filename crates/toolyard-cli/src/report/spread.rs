//! How times are spread: percentiles, from a bounded number of counters.

use super::json::ms;
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use std::time::Duration;

/// Significant digits: a percentile is at most a thousandth above the time that it stands for.
const DIGITS: u8 = 3;

/// Longer times count as this one. It bounds the counters: some 60 KiB for times up to a minute, 120 KiB for all.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// Times in microseconds, counted by size.
#[derive(Debug, Clone)]
pub(super) struct Spread {
    counts: Histogram<u32>,
    max: Duration,
}

impl Default for Spread {
    fn default() -> Self {
        let counts = Histogram::new(DIGITS).expect("there are from 0 to 5 digits");
        Self { counts, max: Duration::ZERO }
    }
}

/// The percentiles that reports show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Percentiles {
    pub(super) p50: Duration,
    pub(super) p95: Duration,
    pub(super) p99: Duration,
    pub(super) max: Duration,
}

impl Spread {
    /// Counts a time.
    pub(super) fn add(&mut self, time: Duration) {
        self.max = self.max.max(time.min(LONGEST));
        let micros = time.min(LONGEST).as_micros();
        let micros = u64::try_from(micros).expect("a week is few microseconds");
        self.counts.record(micros).expect("the counters grow with the times");
    }

    /// The percentiles: each is a time that at least so many percent of the times do not exceed. `None` without times.
    pub(super) fn percentiles(&self) -> Option<Percentiles> {
        let at = |percent: f64| Duration::from_micros(self.counts.value_at_percentile(percent)).min(self.max);
        let some = Percentiles { p50: at(50.0), p95: at(95.0), p99: at(99.0), max: self.max };
        (!self.counts.is_empty()).then_some(some)
    }

    /// The percentiles as data.
    pub(super) fn json(&self) -> Value {
        self.percentiles().map_or(Value::Null, |Percentiles { p50, p95, p99, max }| {
            json!({"p50": ms(p50), "p95": ms(p95), "p99": ms(p99), "max": ms(max)})
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KT-11: percentiles are those of the sorted times, within a thousandth.
    #[test]
    fn percentiles_are_those_of_the_sorted_times() {
        let times: Vec<u64> = (1..=997).map(|n| n * n * 37 % 9_999_991).collect();
        let mut spread = Spread::default();
        times.iter().for_each(|time| spread.add(Duration::from_micros(*time)));
        let mut sorted = times;
        sorted.sort_unstable();
        let found = spread.percentiles().unwrap();
        for (percent, found) in [(50, found.p50), (95, found.p95), (99, found.p99), (100, found.max)] {
            let exact = sorted[(sorted.len() * percent).div_ceil(100) - 1];
            let found = u64::try_from(found.as_micros()).unwrap();
            assert!((exact..=exact + exact / 1000).contains(&found), "p{percent}: {found} for {exact}");
        }
    }

    #[test]
    fn odd_times_are_counted() {
        let mut spread = Spread::default();
        assert_eq!((spread.percentiles(), spread.json()), (None, Value::Null));
        spread.add(Duration::ZERO);
        assert_eq!(spread.percentiles().unwrap().max, Duration::ZERO);
        spread.add(Duration::MAX);
        assert_eq!(spread.percentiles().unwrap().max, LONGEST);
        assert_eq!(spread.percentiles().unwrap().p50, Duration::ZERO);
    }
}
