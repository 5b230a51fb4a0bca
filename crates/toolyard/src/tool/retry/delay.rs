//! How long to wait between two attempts (RT-2).

use std::time::Duration;
use toolyard_core::{Jitter, RetryPolicy};

/// How much longer than its step a delay can be with [`Jitter::Half`], as a share of the step.
const HALF: f64 = 0.5;

/// The delay after attempt number `ended` (RT-2). `chance` is in `0.0..1.0`.
///
/// Steps are capped before jitter in such a way that the longest delay is the cap and delays at the cap still differ;
/// otherwise calls that failed together would keep coming back together.
pub(crate) fn delay(policy: &RetryPolicy, ended: u32, chance: f64) -> Duration {
    debug_assert!(ended > 0 && (0.0..1.0).contains(&chance), "attempt {ended}, chance {chance}");
    let (base, cap) = (policy.base().as_secs_f64(), policy.cap().as_secs_f64());
    let step = base * policy.factor().powf(f64::from(ended.saturating_sub(1)));
    let seconds = match policy.jitter() {
        Jitter::Half => step.min(base.max(cap / (1.0 + HALF))) * (1.0 + HALF * chance),
        Jitter::Full => step.min(cap) * chance,
    };
    Duration::try_from_secs_f64(seconds).map_or(policy.cap(), |delay| delay.min(policy.cap()))
}
