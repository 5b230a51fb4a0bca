//! When the engine stops calling a tool that fails, and for how long (CB-2, CB-4).

use super::PolicyError;
use serde::{Deserialize, Serialize};
use std::{num::NonZeroU32, time::Duration};

/// When the engine stops calling a tool that fails, and for how long (CB-2, CB-4).
///
/// A breaker opens on a failure if, over the sliding window, at least `failures_min` attempts have failed and they make
/// up at least a share of `ratio` of the attempts that count. With `consecutive`, it also opens after that many
/// failures in a row. It stays open for `open_for × 2^(k−1)`, at most `open_max`, where k is how often it has opened
/// since it was last closed. `jitter` shifts that time by up to its share either way, so that breakers that opened
/// together do not probe together.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use toolyard_core::BreakerPolicy;
/// let touchy = BreakerPolicy::default()
///     .with_consecutive(3)
///     .with_open(Duration::from_secs(5), Duration::from_secs(60))
///     .checked()?;
/// assert_eq!(touchy.window(), Duration::from_secs(60));
/// assert!(touchy.with_ratio(f64::NAN).checked().is_err()); // an engine is not built with it
/// assert!(!BreakerPolicy::DISABLED.is_enabled());
/// # Ok::<(), toolyard_core::PolicyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Parts")]
pub struct BreakerPolicy {
    enabled: bool,
    window: Duration,
    failures_min: NonZeroU32,
    ratio: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    consecutive: Option<NonZeroU32>,
    open_for: Duration,
    open_max: Duration,
    jitter: f64,
    /// The first setting that was refused.
    #[serde(skip)]
    fault: Option<PolicyError>,
}

impl BreakerPolicy {
    /// A breaker that never opens automatically. An operator can still force it.
    pub const DISABLED: Self = Self { enabled: false, ..Self::DEFAULT };

    /// The number of slices in the window. Old attempts leave the window one slice at a time.
    pub const SLICES: u32 = 10;

    /// The shortest window. An attempt counts when it ends, so a shorter window would hold next to nothing.
    pub const WINDOW_MIN: Duration = Duration::from_secs(1);

    const DEFAULT: Self = Self {
        enabled: true,
        window: Duration::from_secs(60),
        failures_min: NonZeroU32::new(5).expect("5 is not zero"),
        ratio: 0.5,
        consecutive: None,
        open_for: Duration::from_secs(30),
        open_max: Duration::from_secs(300),
        jitter: 0.2,
        fault: None,
    };

    /// Sets whether the breaker opens automatically.
    #[must_use]
    pub const fn with_enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Sets the length of the sliding window, at least [`WINDOW_MIN`](Self::WINDOW_MIN).
    #[must_use]
    pub fn with_window(self, window: Duration) -> Self {
        self.set(PolicyError::at_least("window", Self::WINDOW_MIN, window), |policy, window| {
            policy.window = window;
        })
    }

    /// Sets the minimum number of failures in the window, at least 1.
    #[must_use]
    pub fn with_failures_min(self, least: u32) -> Self {
        self.set(PolicyError::count("failures_min", least), |policy, least| policy.failures_min = least)
    }

    /// Sets the minimum share of the attempts in the window that have failed, above 0 and at most 1.
    #[must_use]
    pub fn with_ratio(self, ratio: f64) -> Self {
        let wanted = "above 0 and at most 1";
        let ratio = PolicyError::number("ratio", wanted, ratio, ratio > 0.0 && ratio <= 1.0);
        self.set(ratio, |policy, ratio| policy.ratio = ratio)
    }

    /// Sets how many failures in a row open the breaker, regardless of the window: at least 1, or `None` if that is not
    /// looked at.
    #[must_use]
    pub fn with_consecutive(self, failures: impl Into<Option<u32>>) -> Self {
        let failures = failures.into().map(|failures| PolicyError::count("consecutive", failures));
        self.set(failures.transpose(), |policy, failures| policy.consecutive = failures)
    }

    /// Sets how long the breaker stays open at first, longer than zero, and at most if probes keep failing, no shorter
    /// than that.
    #[must_use]
    pub fn with_open(self, open_for: Duration, open_max: Duration) -> Self {
        let times = PolicyError::nonzero("open_for", open_for)
            .and_then(|open_for| Ok((open_for, PolicyError::at_least("open_max", open_for, open_max)?)));
        self.set(times, |policy, times| (policy.open_for, policy.open_max) = times)
    }

    /// Sets the largest share by which the open time is shifted, either way: at least 0 and below 1.
    #[must_use]
    pub fn with_jitter(self, jitter: f64) -> Self {
        let wanted = "from 0 to below 1";
        let jitter = PolicyError::number("jitter", wanted, jitter, (0.0..1.0).contains(&jitter));
        self.set(jitter, |policy, jitter| policy.jitter = jitter)
    }

    /// Sets what was not refused, and keeps the first refusal.
    fn set<T>(mut self, value: Result<T, PolicyError>, set: impl FnOnce(&mut Self, T)) -> Self {
        match value {
            Ok(value) => set(&mut self, value),
            Err(error) => self.fault = self.fault.or(Some(error)),
        }
        self
    }

    /// The policy, if none of its settings was refused. Whoever takes a policy, such as an engine that is built, looks at
    /// this.
    ///
    /// # Errors
    /// The first setting that was refused.
    pub fn checked(self) -> Result<Self, PolicyError> {
        self.fault.map_or(Ok(self), Err)
    }

    /// Whether the breaker opens automatically.
    pub const fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// The length of the sliding window.
    pub const fn window(&self) -> Duration {
        self.window
    }

    /// The minimum number of failures in the window.
    pub const fn failures_min(&self) -> NonZeroU32 {
        self.failures_min
    }

    /// The minimum share of the attempts in the window that have failed.
    pub const fn ratio(&self) -> f64 {
        self.ratio
    }

    /// How many failures in a row open the breaker.
    pub const fn consecutive(&self) -> Option<NonZeroU32> {
        self.consecutive
    }

    /// How long the breaker stays open at first.
    pub const fn open_for(&self) -> Duration {
        self.open_for
    }

    /// How long the breaker stays open at most, before jitter.
    pub const fn open_max(&self) -> Duration {
        self.open_max
    }

    /// The largest share by which the open time is shifted.
    pub const fn jitter(&self) -> f64 {
        self.jitter
    }
}

// Its numbers are never NaN.
impl Eq for BreakerPolicy {}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The fields as serialised, not yet validated.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Parts {
    enabled: bool,
    window: Duration,
    failures_min: u32,
    ratio: f64,
    consecutive: Option<u32>,
    open_for: Duration,
    open_max: Duration,
    jitter: f64,
}

impl Default for Parts {
    fn default() -> Self {
        let policy = BreakerPolicy::DEFAULT;
        let BreakerPolicy { enabled, window, ratio, open_for, open_max, jitter, .. } = policy;
        let (failures_min, consecutive) =
            (policy.failures_min.get(), policy.consecutive.map(NonZeroU32::get));
        Self { enabled, window, failures_min, ratio, consecutive, open_for, open_max, jitter }
    }
}

impl TryFrom<Parts> for BreakerPolicy {
    type Error = PolicyError;

    fn try_from(parts: Parts) -> Result<Self, PolicyError> {
        Self::DEFAULT
            .with_enabled(parts.enabled)
            .with_failures_min(parts.failures_min)
            .with_consecutive(parts.consecutive)
            .with_window(parts.window)
            .with_ratio(parts.ratio)
            .with_open(parts.open_for, parts.open_max)
            .with_jitter(parts.jitter)
            .checked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SECOND: Duration = Duration::from_secs(1);

    fn check(refused: BreakerPolicy, key: &str) {
        assert_eq!(refused.checked().map_err(|error| error.key()), Err(key));
    }

    /// KT-4, CB-2, CB-4: settings that make no sense are refused, by name.
    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let policy = BreakerPolicy::default();
        check(policy.with_window(Duration::ZERO), "window");
        check(policy.with_window(SECOND / 2), "window");
        check(policy.with_open(Duration::ZERO, SECOND), "open_for");
        check(policy.with_open(SECOND, SECOND / 2), "open_max");
        check(policy.with_failures_min(0), "failures_min");
        check(policy.with_consecutive(0), "consecutive");
        check(policy.with_failures_min(0).with_ratio(7.0).with_failures_min(1), "failures_min");
        for ratio in [0.0, -0.5, 1.01, f64::NAN, f64::INFINITY] {
            check(policy.with_ratio(ratio), "ratio");
        }
        for jitter in [-0.1, 1.0, f64::NAN, f64::INFINITY] {
            check(policy.with_jitter(jitter), "jitter");
        }
        assert!(policy.with_ratio(1.0).with_jitter(0.0).with_consecutive(None).checked().is_ok());
    }

    /// CB-2, CB-4: the defaults.
    #[test]
    fn a_policy_is_as_the_rules_say_unless_it_is_told() {
        let policy = BreakerPolicy::default();
        assert!(policy.is_enabled() && policy.consecutive().is_none());
        assert_eq!((policy.window(), policy.failures_min().get(), policy.ratio()), (60 * SECOND, 5, 0.5));
        let open = (policy.open_for(), policy.open_max(), policy.jitter());
        assert_eq!(open, (30 * SECOND, 300 * SECOND, 0.2));
    }

    /// CB-2, CB-4: a deserialised policy is validated like a constructed one.
    #[test]
    fn a_policy_reads_back_and_is_checked() {
        let policy = BreakerPolicy::DISABLED.with_consecutive(3);
        let json = serde_json::to_value(policy).unwrap();
        assert_eq!(serde_json::from_value::<BreakerPolicy>(json).unwrap(), policy);
        assert_eq!(serde_json::from_value::<BreakerPolicy>(json!({})).unwrap(), BreakerPolicy::default());
        let bad = [
            json!({ "failures_min": 0 }),
            json!({ "consecutive": 0 }),
            json!({ "ratio": 2.0 }),
            json!({ "jitter": -0.1 }),
            json!({ "open_max": { "secs": 1, "nanos": 0 } }),
            json!({ "slices": 20 }),
        ];
        for json in bad {
            assert!(serde_json::from_value::<BreakerPolicy>(json.clone()).is_err(), "{json}");
        }
    }
}
