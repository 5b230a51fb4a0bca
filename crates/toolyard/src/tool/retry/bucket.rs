//! A tool's retry budget (RT-5).

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use toolyard_core::ErrorKind;

/// What one retry took from a [`Bucket`]. Refunded if the retry succeeds and lost otherwise, so that a tool that
/// stays down is not called again and again. The default is nothing.
#[derive(Debug, Default, PartialEq, Eq)]
#[must_use = "a retry that succeeds returns its tokens"]
pub(crate) struct Paid(u32);

/// A tool's retry budget, shared by all sessions and forks (RT-5).
///
/// Lock-free. A stale read costs one retry more or less, so nothing here orders other memory.
#[derive(Debug)]
pub(crate) struct Bucket {
    tokens: AtomicU32,
    /// Its capacity, with which it also starts.
    tokens_max: u32,
}

impl Bucket {
    const RETRY: u32 = 10;
    /// A timeout has held its permits to the end, so retrying it costs more.
    const RETRY_AFTER_TIMEOUT: u32 = 20;
    const CLEAN_SUCCESS: u32 = 1;

    /// Makes a full bucket.
    pub(crate) const fn new(tokens_max: u32) -> Self {
        Self { tokens: AtomicU32::new(tokens_max), tokens_max }
    }

    /// Takes what a retry after this failure costs; `None` if there are not enough tokens.
    pub(crate) fn pay(&self, after: ErrorKind) -> Option<Paid> {
        let cost = if after == ErrorKind::Timeout { Self::RETRY_AFTER_TIMEOUT } else { Self::RETRY };
        let taken = self.tokens.fetch_update(Relaxed, Relaxed, |tokens| tokens.checked_sub(cost));
        taken.is_ok().then_some(Paid(cost))
    }

    /// Returns the tokens of a retry that has succeeded.
    pub(crate) fn refund(&self, paid: Paid) {
        self.put(paid.0);
    }

    /// Adds a token for a first attempt that has succeeded. A full bucket is only read.
    pub(crate) fn first_success(&self) {
        self.put(Self::CLEAN_SUCCESS);
    }

    /// Tokens left.
    #[cfg(test)]
    pub(crate) fn tokens(&self) -> u32 {
        self.tokens.load(Relaxed)
    }

    fn put(&self, tokens: u32) {
        let more =
            |held: u32| (held < self.tokens_max).then(|| held.saturating_add(tokens).min(self.tokens_max));
        // A full bucket stays as it is.
        let _ = self.tokens.fetch_update(Relaxed, Relaxed, more);
    }
}
