//! A breaker's memory: how attempts ended over the last slices of time (CB-2).

use std::{num::NonZeroU64, time::Duration};
use toolyard_core::BreakerPolicy;

const SLICES: usize = BreakerPolicy::SLICES as usize;

/// The number of a slice of time, from 0.
pub(crate) type Slice = u32;

/// Divides time into slices.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slicing(NonZeroU64);

impl Slicing {
    pub(crate) fn new(window: Duration) -> Self {
        let nanos = u64::try_from((window / BreakerPolicy::SLICES).as_nanos()).unwrap_or(u64::MAX);
        Self(NonZeroU64::new(nanos).expect("a window is never shorter than its minimum"))
    }

    /// The slice that contains this moment.
    pub(crate) fn slice_at(self, now: Duration) -> Slice {
        let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        Slice::try_from(nanos / self.0).unwrap_or(Slice::MAX)
    }
}

/// How many attempts succeeded and failed. Ignored ones (V4) are in neither count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Counts {
    pub(crate) successes: u64,
    pub(crate) failures: u64,
}

impl Counts {
    /// The share that failed; 0 if there are none.
    pub(crate) fn failure_ratio(self) -> f64 {
        let all = self.successes + self.failures;
        if all == 0 { 0.0 } else { self.failures as f64 / all as f64 }
    }

    fn add(&mut self, other: Self) {
        self.successes += other.successes;
        self.failures += other.failures;
    }

    fn subtract(&mut self, other: Self) {
        self.successes -= other.successes;
        self.failures -= other.failures;
    }
}

/// The last slices, the current one included, and their sum.
#[derive(Debug, Default)]
pub(crate) struct Window {
    head: Slice,
    slices: [Counts; SLICES],
    sum: Counts,
}

impl Window {
    /// Adds attempts that ended in a slice. Threads may report an older slice late; it is counted there if it is
    /// still in the window.
    pub(crate) fn add(&mut self, slice: Slice, counts: Counts) {
        self.advance(slice);
        if self.head - slice < BreakerPolicy::SLICES {
            self.slices[place(slice)].add(counts);
            self.sum.add(counts);
        }
    }

    /// The sum as of the latest slice it has seen.
    pub(crate) fn sum(&self) -> Counts {
        self.sum
    }

    /// Clears all counts, but keeps the current slice.
    pub(crate) fn clear(&mut self) {
        self.slices = Default::default();
        self.sum = Counts::default();
    }

    /// Moves on to a slice and drops those that are too old by then.
    pub(crate) fn advance(&mut self, to: Slice) {
        // However long ago the last look was, one round over the slices clears them all.
        let passed = to.saturating_sub(self.head).min(BreakerPolicy::SLICES);
        for slice in 0..passed {
            let old = std::mem::take(&mut self.slices[place(to - slice)]);
            self.sum.subtract(old);
        }
        self.head = self.head.max(to);
    }
}

fn place(slice: Slice) -> usize {
    slice as usize % SLICES
}
