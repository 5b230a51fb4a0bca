//! Successes that a breaker was not told of yet.

use super::window::Slice;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many attempts of one slice of time have succeeded: the slice above, the number below, in one word, so that
/// none is ever counted in a slice that it is not of.
#[derive(Debug, Default)]
pub(super) struct Tally(AtomicU64);

impl Tally {
    /// One more, if that is the slice of the tally.
    pub(super) fn add(&self, slice: Slice) -> bool {
        let one_more = |word| {
            let (of, count) = parts(word);
            (of == slice && count < u32::MAX).then(|| word + 1)
        };
        self.0.fetch_update(Relaxed, Relaxed, one_more).is_ok()
    }

    /// Takes what is there, and its slice. The tally goes on from the slice `from`, but never back. One thread at
    /// a time may do so.
    pub(super) fn take(&self, from: Slice) -> (Slice, u32) {
        let (slice, _) = parts(self.0.load(Relaxed));
        parts(self.0.swap(u64::from(slice.max(from)) << 32, Relaxed))
    }
}

fn parts(word: u64) -> (Slice, u32) {
    ((word >> 32) as Slice, word as u32)
}
