use super::*;
use proptest::prelude::*;
use std::time::Duration;
use toolyard_core::Jitter;

/// The largest `chance`.
const ALMOST_ONE: f64 = 1.0 - f64::EPSILON;

fn check(policy: RetryPolicy, ended: u32, least: Duration, most: Duration) {
    let near = |a: Duration, b: Duration| a.abs_diff(b) <= Duration::from_micros(1);
    assert!(near(policy.delay(ended, 0.0), least), "after {ended}: {:?}", policy.delay(ended, 0.0));
    let longest = policy.delay(ended, ALMOST_ONE);
    assert!(near(longest, most) && longest <= most, "after {ended}: {longest:?}");
}

/// RT-2: 0.1–0.15 s before the second attempt, 0.4–0.6 s before the third.
#[test]
fn the_default_delays_are_those_of_the_rule() {
    check(RetryPolicy::default(), 1, 100 * MILLI, 150 * MILLI);
    check(RetryPolicy::default(), 2, 400 * MILLI, 600 * MILLI);
    check(RetryPolicy::default(), 3, 1600 * MILLI, 2400 * MILLI);
}

/// RT-2: full jitter ranges from zero to the step.
#[test]
fn full_jitter_starts_at_nothing() {
    let policy = RetryPolicy::default().with_jitter(Jitter::Full);
    check(policy, 1, Duration::ZERO, 100 * MILLI);
    check(policy, 2, Duration::ZERO, 400 * MILLI);
    check(policy, 40, Duration::ZERO, 10 * SECOND);
}

/// RT-2: no delay is longer than the cap, and delays at the cap still differ.
#[test]
fn the_cap_bounds_a_delay_and_leaves_it_its_spread() {
    for ended in [5, 100, u32::MAX] {
        check(RetryPolicy::default(), ended, 10 * SECOND * 2 / 3, 10 * SECOND);
    }
    let fixed = RetryPolicy::default().with_delays(SECOND, 1.0, SECOND);
    check(fixed, 7, SECOND, SECOND);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    /// RT-2, I9: whatever the policy, a delay is finite, at most the cap, and with half jitter at least the base.
    #[test]
    fn every_delay_is_in_its_bounds(
        base in 1..u64::MAX, more in 0..u64::MAX, factor in 1.0..f64::MAX,
        full in any::<bool>(), ended in 1..=u32::MAX, chance in 0.0..1.0,
    ) {
        let base = Duration::from_nanos(base);
        let cap = base.saturating_add(Duration::from_secs(more));
        let jitter = if full { Jitter::Full } else { Jitter::Half };
        let policy = RetryPolicy::default().with_delays(base, factor, cap).with_jitter(jitter);
        let delay = policy.delay(ended, chance);
        prop_assert!(delay <= cap);
        // Allows for the precision of 53 bits at a large base.
        prop_assert!(full || delay + base / (1 << 30) + Duration::from_nanos(1) >= base, "{delay:?} < {base:?}");
    }
}
