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
/// use std::{num::NonZeroU32, time::Duration};
/// use toolyard_core::BreakerPolicy;
/// let touchy = BreakerPolicy::default()
///     .with_consecutive(NonZeroU32::new(3))
///     .with_open(Duration::from_secs(5), Duration::from_secs(60))?;
/// assert_eq!(touchy.window(), Duration::from_secs(60));
/// assert!(touchy.with_ratio(f64::NAN).is_err());
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
    };

    /// Sets whether the breaker opens automatically.
    #[must_use]
    pub const fn with_enabled(mut self, enabled: bool) -> Self {
        self.enabled = enabled;
        self
    }

    /// Sets the length of the sliding window.
    ///
    /// # Errors
    /// [`PolicyError`] if it is below [`WINDOW_MIN`](Self::WINDOW_MIN).
    pub fn with_window(mut self, window: Duration) -> Result<Self, PolicyError> {
        self.window = PolicyError::at_least("window", Self::WINDOW_MIN, window)?;
        Ok(self)
    }

    /// Sets the minimum number of failures in the window.
    #[must_use]
    pub const fn with_failures_min(mut self, least: NonZeroU32) -> Self {
        self.failures_min = least;
        self
    }

    /// Sets the minimum share of the attempts in the window that have failed.
    ///
    /// # Errors
    /// [`PolicyError`] unless it is above 0 and at most 1.
    pub fn with_ratio(mut self, ratio: f64) -> Result<Self, PolicyError> {
        if !(ratio > 0.0 && ratio <= 1.0) {
            return Err(PolicyError::Number { key: "ratio", wanted: "above 0 and at most 1", given: ratio });
        }
        self.ratio = ratio;
        Ok(self)
    }

    /// Sets how many failures in a row open the breaker, regardless of the window.
    #[must_use]
    pub const fn with_consecutive(mut self, failures: Option<NonZeroU32>) -> Self {
        self.consecutive = failures;
        self
    }

    /// Sets how long the breaker stays open at first, and at most if probes keep failing.
    ///
    /// # Errors
    /// [`PolicyError`] if a time is zero or `open_max` is shorter than `open_for`.
    pub fn with_open(mut self, open_for: Duration, open_max: Duration) -> Result<Self, PolicyError> {
        self.open_for = PolicyError::nonzero("open_for", open_for)?;
        self.open_max = PolicyError::at_least("open_max", open_for, open_max)?;
        Ok(self)
    }

    /// Sets the largest share by which the open time is shifted, either way.
    ///
    /// # Errors
    /// [`PolicyError`] unless it is at least 0 and below 1.
    pub fn with_jitter(mut self, jitter: f64) -> Result<Self, PolicyError> {
        if !(0.0..1.0).contains(&jitter) {
            return Err(PolicyError::Number { key: "jitter", wanted: "from 0 to below 1", given: jitter });
        }
        self.jitter = jitter;
        Ok(self)
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
    failures_min: NonZeroU32,
    ratio: f64,
    consecutive: Option<NonZeroU32>,
    open_for: Duration,
    open_max: Duration,
    jitter: f64,
}

impl Default for Parts {
    fn default() -> Self {
        let policy = BreakerPolicy::DEFAULT;
        let BreakerPolicy { enabled, window, failures_min, ratio, consecutive, open_for, open_max, jitter } =
            policy;
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
            .with_window(parts.window)?
            .with_ratio(parts.ratio)?
            .with_open(parts.open_for, parts.open_max)?
            .with_jitter(parts.jitter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SECOND: Duration = Duration::from_secs(1);

    fn check(refused: Result<BreakerPolicy, PolicyError>, key: &str) {
        assert_eq!(refused.map_err(|error| error.key()), Err(key));
    }

    /// CB-2, CB-4: settings that make no sense are refused, by name.
    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let policy = BreakerPolicy::default();
        check(policy.with_window(Duration::ZERO), "window");
        check(policy.with_window(SECOND / 2), "window");
        check(policy.with_open(Duration::ZERO, SECOND), "open_for");
        check(policy.with_open(SECOND, SECOND / 2), "open_max");
        for ratio in [0.0, -0.5, 1.01, f64::NAN, f64::INFINITY] {
            check(policy.with_ratio(ratio), "ratio");
        }
        for jitter in [-0.1, 1.0, f64::NAN, f64::INFINITY] {
            check(policy.with_jitter(jitter), "jitter");
        }
        assert!(policy.with_ratio(1.0).and_then(|policy| policy.with_jitter(0.0)).is_ok());
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
        let policy = BreakerPolicy::DISABLED.with_consecutive(NonZeroU32::new(3));
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
