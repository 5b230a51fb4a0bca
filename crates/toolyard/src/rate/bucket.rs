//! The tokens of a rate: governor's GCRA, over instants that are handed in.

use governor::{
    Quota, RateLimiter,
    clock::Clock,
    middleware::NoOpMiddleware,
    nanos::Nanos,
    state::{NotKeyed, StateStore},
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use toolyard_core::Rate;

/// A bucket of tokens. Not for two hands at once: its line's lock guards it.
#[derive(Debug)]
pub(super) struct Bucket {
    limiter: RateLimiter<NotKeyed, FullAt, Told, NoOpMiddleware<Nanos>>,
    full_at: FullAt,
    /// From where its nanoseconds count.
    born: Instant,
    interval: u64,
    /// By how much a token may come before its time in an even row: all of a burst but the first come at once.
    slack: u64,
}

impl Bucket {
    /// A full bucket.
    pub(super) fn new(rate: Rate, now: Instant) -> Self {
        let quota = Quota::with_period(rate.interval()).expect("a rate's interval is not zero");
        let full_at = FullAt::default();
        let interval = nanos(rate.interval());
        Self {
            limiter: RateLimiter::new(quota.allow_burst(rate.burst()), full_at.clone(), Told::default()),
            full_at,
            born: now,
            interval,
            slack: interval * u64::from(rate.burst().get() - 1),
        }
    }

    /// Takes a token, if there is one.
    pub(super) fn take(&self, now: Instant) -> bool {
        self.limiter.clock().tell(self.nanos_at(now));
        self.limiter.check().is_ok()
    }

    /// When there is a token after `ahead` others, if each is taken as soon as may be, and none before `open`.
    pub(super) fn at(&self, ahead: usize, open: Instant) -> Instant {
        let open = self.nanos_at(open);
        // A bucket that is full before then gets no fuller: the row counts from where its first token is taken.
        let from = self.full_at.get().max(open);
        let row = self.interval.saturating_mul(ahead as u64);
        self.born + Duration::from_nanos(from.saturating_add(row).saturating_sub(self.slack).max(open))
    }

    fn nanos_at(&self, at: Instant) -> u64 {
        nanos(at.saturating_duration_since(self.born))
    }
}

fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).expect("no engine runs for 500 years")
}

/// When the bucket will be full again, in nanoseconds: all there is to know of it. Zero: it was never used.
///
/// A store of our own, because governor's does not let it be read: to tell how long one would have to wait.
#[derive(Debug, Clone, Default)]
struct FullAt(Arc<AtomicU64>);

impl FullAt {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl StateStore for FullAt {
    type Key = NotKeyed;

    fn measure_and_replace<T, F, E>(&self, _: &NotKeyed, decide: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let before = Some(self.get()).filter(|full_at| *full_at > 0);
        let (outcome, full_at) = decide(before.map(Nanos::from))?;
        self.0.store(full_at.as_u64(), Ordering::Relaxed);
        Ok(outcome)
    }
}

/// A clock that shows what it was told.
#[derive(Debug, Default)]
struct Told(AtomicU64);

impl Told {
    fn tell(&self, nanos: u64) {
        self.0.store(nanos, Ordering::Relaxed);
    }
}

impl Clock for Told {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::from(self.0.load(Ordering::Relaxed))
    }
}
