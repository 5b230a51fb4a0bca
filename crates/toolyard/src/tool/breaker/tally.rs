//! Successes that the machine has not counted yet.

use super::window::Slice;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of successful attempts in one slice of time. The upper half of the word is the slice and the lower half
/// the count, so that no success is ever counted in another slice.
#[derive(Debug, Default)]
pub(crate) struct Tally(AtomicU64);

impl Tally {
    /// Adds one, if `slice` is the tally's. Returns whether it was.
    pub(crate) fn add(&self, slice: Slice) -> bool {
        let one_more = |word| {
            let (of, count) = parts(word);
            (of == slice && count < u32::MAX).then(|| word + 1)
        };
        self.0.fetch_update(Relaxed, Relaxed, one_more).is_ok()
    }

    /// Takes the count and its slice. The tally continues with the slice `from`, or with its own if that is later.
    /// Only one thread at a time may call this.
    pub(crate) fn take(&self, from: Slice) -> (Slice, u32) {
        let (slice, _) = parts(self.0.load(Relaxed));
        parts(self.0.swap(u64::from(slice.max(from)) << 32, Relaxed))
    }
}

fn parts(word: u64) -> (Slice, u32) {
    ((word >> 32) as Slice, word as u32)
}
