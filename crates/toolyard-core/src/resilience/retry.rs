//! How often a call is tried, and how long the engine waits between attempts (RT-1, RT-2).

use super::PolicyError;
use serde::{Deserialize, Serialize};
use std::{num::NonZeroU32, time::Duration};

/// How much longer than its step a delay can be with [`Jitter::Half`], as a share of the step.
const HALF: f64 = 0.5;

/// How delays are spread, so that calls that failed together do not retry together (RT-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// Between the step and one and a half times the step. The default.
    #[default]
    Half,
    /// Between zero and the step.
    Full,
}

/// The fewest tokens that a retry bucket may hold: what one retry after a timeout takes (RT-5).
const BUCKET_MIN: u32 = 20;

/// How often a call is tried, and how long the engine waits between attempts (RT-1, RT-2).
///
/// The *step* after attempt n is `base × factor^(n−1)`. The delay is the step with its jitter, and never longer than
/// `cap`. Which failures are retried at all is not configurable (RT-1).
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use toolyard_core::{Jitter, RetryPolicy};
/// // 3 attempts: 0.1–0.15 s before the second, 0.4–0.6 s before the third.
/// let policy = RetryPolicy::default();
/// assert_eq!(policy.max_attempts().get(), 3);
///
/// let patient = policy
///     .with_max_attempts(5)
///     .with_delays(Duration::from_secs(1), 2.0, Duration::from_secs(30))
///     .with_jitter(Jitter::Full)
///     .checked()?;
/// assert!(patient.with_max_attempts(0).checked().is_err()); // an engine is not built with it
/// # Ok::<(), toolyard_core::PolicyError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Parts")]
pub struct RetryPolicy {
    max_attempts: NonZeroU32,
    base: Duration,
    factor: f64,
    cap: Duration,
    jitter: Jitter,
    bucket: u32,
    /// The first setting that was refused.
    #[serde(skip)]
    fault: Option<PolicyError>,
}

impl RetryPolicy {
    /// One attempt: no failure is retried.
    pub const NONE: Self = Self { max_attempts: NonZeroU32::MIN, ..Self::DEFAULT };

    const DEFAULT: Self = Self {
        max_attempts: NonZeroU32::new(3).expect("3 is not zero"),
        base: Duration::from_millis(100),
        factor: 4.0,
        cap: Duration::from_secs(10),
        jitter: Jitter::Half,
        bucket: 100,
        fault: None,
    };

    /// Sets the maximum number of attempts, including the first: at least 1.
    #[must_use]
    pub fn with_max_attempts(self, most: u32) -> Self {
        self.set(PolicyError::count("max_attempts", most), |policy, most| policy.max_attempts = most)
    }

    /// Sets the step after the first attempt, longer than zero; the factor by which it grows, a number from 1; and the
    /// longest delay, no shorter than the step.
    #[must_use]
    pub fn with_delays(self, base: Duration, factor: f64, cap: Duration) -> Self {
        let is_factor = factor.is_finite() && factor >= 1.0;
        let delays = PolicyError::number("factor", "a number from 1", factor, is_factor).and_then(|factor| {
            let base = PolicyError::nonzero("base", base)?;
            Ok((base, factor, PolicyError::at_least("cap", base, cap)?))
        });
        self.set(delays, |policy, delays| (policy.base, policy.factor, policy.cap) = delays)
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

    /// Sets how delays are spread.
    #[must_use]
    pub const fn with_jitter(mut self, jitter: Jitter) -> Self {
        self.jitter = jitter;
        self
    }

    /// Sets how many tokens the tool's retry bucket holds, which all sessions and forks share: at least 20. A retry takes 10,
    /// after a timeout 20, and returns them when it succeeds; a tool that many agents call at once needs as many as their
    /// retries take together (RT-5).
    #[must_use]
    pub fn with_bucket(self, tokens: u32) -> Self {
        let is_enough = tokens >= BUCKET_MIN;
        let enough = PolicyError::number("bucket", "at least 20 tokens", f64::from(tokens), is_enough);
        self.set(enough, |policy, _| policy.bucket = tokens)
    }

    /// The maximum number of attempts, including the first.
    pub const fn max_attempts(&self) -> NonZeroU32 {
        self.max_attempts
    }

    /// The step after the first attempt.
    pub const fn base(&self) -> Duration {
        self.base
    }

    /// The factor by which the step grows from attempt to attempt.
    pub const fn factor(&self) -> f64 {
        self.factor
    }

    /// The longest delay.
    pub const fn cap(&self) -> Duration {
        self.cap
    }

    /// How delays are spread.
    pub const fn jitter(&self) -> Jitter {
        self.jitter
    }

    /// How many tokens the tool's retry bucket holds (RT-5).
    pub const fn bucket(&self) -> u32 {
        self.bucket
    }

    /// The delay after attempt number `ended`, from 1 (RT-2). `chance` is a random number in `0.0..1.0`.
    ///
    /// Steps are capped before jitter in such a way that the longest delay is the cap and delays at the cap still differ;
    /// otherwise calls that failed together would keep coming back together.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use toolyard_core::RetryPolicy;
    /// let policy = RetryPolicy::default();
    /// assert_eq!(policy.delay(1, 0.0), Duration::from_millis(100));
    /// assert!(policy.delay(2, 0.9) < Duration::from_millis(600));
    /// ```
    pub fn delay(&self, ended: u32, chance: f64) -> Duration {
        debug_assert!(ended > 0 && (0.0..1.0).contains(&chance), "attempt {ended}, chance {chance}");
        let (base, cap) = (self.base.as_secs_f64(), self.cap.as_secs_f64());
        let step = base * self.factor.powf(f64::from(ended.saturating_sub(1)));
        let seconds = match self.jitter {
            Jitter::Half => step.min(base.max(cap / (1.0 + HALF))) * (1.0 + HALF * chance),
            Jitter::Full => step.min(cap) * chance,
        };
        Duration::try_from_secs_f64(seconds).map_or(self.cap, |delay| delay.min(self.cap))
    }
}

// The factor is never NaN.
impl Eq for RetryPolicy {}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The fields as serialised, not yet validated.
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Parts {
    max_attempts: u32,
    base: Duration,
    factor: f64,
    cap: Duration,
    jitter: Jitter,
    bucket: u32,
}

impl Default for Parts {
    fn default() -> Self {
        let RetryPolicy { max_attempts, base, factor, cap, jitter, bucket, .. } = RetryPolicy::DEFAULT;
        Self { max_attempts: max_attempts.get(), base, factor, cap, jitter, bucket }
    }
}

impl TryFrom<Parts> for RetryPolicy {
    type Error = PolicyError;

    fn try_from(parts: Parts) -> Result<Self, PolicyError> {
        let policy = Self::DEFAULT.with_max_attempts(parts.max_attempts).with_jitter(parts.jitter);
        policy.with_delays(parts.base, parts.factor, parts.cap).with_bucket(parts.bucket).checked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SECOND: Duration = Duration::from_secs(1);

    /// KT-4, RT-2: delays that make no sense are refused, by the name of the setting.
    #[test]
    fn delays_that_make_no_sense_are_refused() {
        let check = |base, factor, cap, key: &str| {
            let refused = RetryPolicy::default().with_delays(base, factor, cap).checked();
            assert_eq!(refused.map_err(|error| error.key()), Err(key), "{base:?} {factor} {cap:?}");
        };
        check(Duration::ZERO, 4.0, SECOND, "base");
        check(SECOND, 4.0, SECOND / 2, "cap");
        for factor in [0.999, 0.0, -1.0, f64::NAN, f64::INFINITY] {
            check(SECOND, factor, SECOND, "factor");
        }
        let none = RetryPolicy::default().with_max_attempts(0).with_max_attempts(2).checked();
        assert_eq!(
            none.map_err(|error| error.to_string()),
            Err("max_attempts must be at least 1, not 0".into())
        );
        assert!(RetryPolicy::default().with_delays(SECOND, 1.0, SECOND).checked().is_ok());
        let small = RetryPolicy::default().with_bucket(19).checked();
        assert_eq!(
            small.map_err(|error| error.to_string()),
            Err("bucket must be at least 20 tokens, not 19".into())
        );
        assert_eq!(RetryPolicy::default().with_bucket(20).checked().map(|policy| policy.bucket()), Ok(20));
    }

    /// RT-1, RT-2: the defaults, and the policy without retries.
    #[test]
    fn a_policy_is_as_the_rules_say_unless_it_is_told() {
        let policy = RetryPolicy::default();
        assert_eq!((policy.max_attempts().get(), policy.base()), (3, SECOND / 10));
        assert_eq!((policy.factor(), policy.cap(), policy.jitter()), (4.0, 10 * SECOND, Jitter::Half));
        assert_eq!(RetryPolicy::NONE.max_attempts().get(), 1);
    }

    /// RT-2: a deserialised policy is validated like a constructed one.
    #[test]
    fn a_policy_reads_back_and_is_checked() {
        let policy = RetryPolicy::default().with_delays(SECOND, 1.5, 3 * SECOND).checked().unwrap();
        let policy = policy.with_jitter(Jitter::Full).with_max_attempts(1);
        let json = serde_json::to_value(policy).unwrap();
        assert_eq!(json["jitter"], "full");
        assert_eq!(serde_json::from_value::<RetryPolicy>(json).unwrap(), policy);
        assert_eq!(serde_json::from_value::<RetryPolicy>(json!({})).unwrap(), RetryPolicy::default());

        let bad = [
            json!({ "max_attempts": 0 }),
            json!({ "max_attempts": -1 }),
            json!({ "factor": 0.5 }),
            json!({ "jitter": "none" }),
            json!({ "bucket": 19 }),
            json!({ "attempts": 3 }),
            json!({ "base": { "secs": 0, "nanos": 0 } }),
            json!({ "base": { "secs": -1, "nanos": 0 } }),
            json!({ "cap": { "secs": 0, "nanos": 1 } }),
        ];
        for json in bad {
            assert!(serde_json::from_value::<RetryPolicy>(json.clone()).is_err(), "{json}");
        }
    }
}
