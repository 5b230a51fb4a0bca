//! The tokens of a rate: governor's GCRA, with instants passed in.

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

/// A bucket of tokens. Not for concurrent use: the lock of its line guards it.
#[derive(Debug)]
pub(crate) struct Bucket {
    limiter: RateLimiter<NotKeyed, FullAt, ManualClock, NoOpMiddleware<Nanos>>,
    full_at: FullAt,
    /// The instant from which its nanoseconds count.
    born: Instant,
    interval: u64,
    /// How much earlier than in an even spacing a token may be taken: all of a burst but the first are free at once.
    slack: u64,
}

impl Bucket {
    /// A full bucket.
    pub(crate) fn new(rate: Rate, now: Instant) -> Self {
        let quota = Quota::with_period(rate.interval()).expect("a rate's interval is not zero");
        let full_at = FullAt::default();
        let interval = nanos(rate.interval());
        Self {
            limiter: RateLimiter::new(
                quota.allow_burst(rate.burst()),
                full_at.clone(),
                ManualClock::default(),
            ),
            full_at,
            born: now,
            interval,
            slack: interval * u64::from(rate.burst().get() - 1),
        }
    }

    /// Takes a token, if there is one.
    pub(crate) fn take(&self, now: Instant) -> bool {
        self.limiter.clock().set(self.nanos_at(now));
        self.limiter.check().is_ok()
    }

    /// When a token is free after `ahead` others, if each is taken as early as possible and none before `open`.
    pub(crate) fn at(&self, ahead: usize, open: Instant) -> Instant {
        let open = self.nanos_at(open);
        // A bucket that is full before `open` gets no fuller, so the spacing starts where its first token is taken.
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

/// When the bucket will be full again, in nanoseconds, which is its whole state. Zero if it was never used.
///
/// A state store of our own, because governor's cannot be read, and we need it to compute waiting times.
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

/// A clock that shows the time it was last set to.
#[derive(Debug, Default)]
struct ManualClock(AtomicU64);

impl ManualClock {
    fn set(&self, nanos: u64) {
        self.0.store(nanos, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::from(self.0.load(Ordering::Relaxed))
    }
}
