//! The retries a tool has left (RT-5).

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use toolyard_core::ErrorKind;

/// What one retry took from a [`Bucket`]. Given back when the retry succeeds, else lost: so a tool that stays
/// down is not asked again and again.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a retry that succeeds gives back what it took"]
pub(crate) struct Paid(u32);

/// The retries a tool has left, for all sessions and forks together (RT-5).
///
/// Lock-free. A number that is read late costs one retry more or less, so nothing here orders other memory.
#[derive(Debug)]
pub(crate) struct Bucket(AtomicU32);

impl Bucket {
    /// What it holds at most, and at first.
    pub(crate) const TOKENS_MAX: u32 = 100;

    const RETRY: u32 = 10;
    /// A timeout has held its permits to the end, so trying again is dearer.
    const RETRY_AFTER_TIMEOUT: u32 = 20;
    const CLEAN_SUCCESS: u32 = 1;

    /// A full one.
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(Self::TOKENS_MAX))
    }

    /// Takes what a retry after this failure costs; `None` if that is not there.
    pub(crate) fn pay(&self, after: ErrorKind) -> Option<Paid> {
        let cost = if after == ErrorKind::Timeout { Self::RETRY_AFTER_TIMEOUT } else { Self::RETRY };
        let taken = self.0.fetch_update(Relaxed, Relaxed, |tokens| tokens.checked_sub(cost));
        taken.is_ok().then_some(Paid(cost))
    }

    /// The retry that this was paid for has succeeded.
    pub(crate) fn refund(&self, paid: Paid) {
        self.put(paid.0);
    }

    /// A first attempt has succeeded. A full bucket is only looked at.
    pub(crate) fn first_success(&self) {
        self.put(Self::CLEAN_SUCCESS);
    }

    /// Tokens left.
    #[cfg(test)]
    pub(crate) fn tokens(&self) -> u32 {
        self.0.load(Relaxed)
    }

    fn put(&self, tokens: u32) {
        let more = |held: u32| (held < Self::TOKENS_MAX).then(|| (held + tokens).min(Self::TOKENS_MAX));
        // A full bucket stays as it is.
        let _ = self.0.fetch_update(Relaxed, Relaxed, more);
    }
}

impl Default for Bucket {
    fn default() -> Self {
        Self::new()
    }
}
