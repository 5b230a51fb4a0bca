//! How often the attempts of a tool may start.

use serde::{Deserialize, Serialize};
use std::{fmt, num::NonZeroU32, str::FromStr, time::Duration};

/// Why a rate is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// The text is not spelt as a rate.
    #[error(
        "'{0}' is not a rate: write a whole number and a time, such as \"5/s\", \"100/min\", \"1/10s\" or \"10/s burst 20\""
    )]
    Form(String),
    /// The number of attempts, the period or the burst is zero.
    #[error("a rate needs at least one attempt, a period above zero and a burst of at least one")]
    Zero,
    /// The rate is above one attempt per nanosecond.
    #[error("a rate must be at most one attempt per nanosecond")]
    TooFast,
    /// The period is not in whole milliseconds, or longer than [`Rate::PER_MAX`].
    #[error("the period of a rate must be whole milliseconds and at most a day")]
    Period,
    /// A spent burst would take longer than [`Rate::REFILL_MAX`] to refill.
    #[error("a burst must refill within ten years")]
    Burst,
}

/// How many attempts of a tool may start per period, and how many of them at once (RT-10).
///
/// A rate is a bucket of `burst` tokens that starts full: each attempt takes one, and one is added every
/// [`interval`](Self::interval). Without an explicit burst, the bucket holds as many tokens as the rate has attempts:
/// `100/min` lets a hundred start at once and then one every 0.6 s, whereas `100/min burst 1` spaces them evenly.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use toolyard_core::Rate;
/// let rate: Rate = "10/s burst 20".parse()?;
/// assert_eq!(rate, Rate::per_second(10)?.with_burst(20)?);
/// assert_eq!(rate.interval(), Duration::from_millis(100));
/// assert_eq!(rate.to_string(), "10/s burst 20");
/// # Ok::<(), toolyard_core::RateError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rate {
    attempts: NonZeroU32,
    per: Duration,
    burst: NonZeroU32,
}

impl Rate {
    /// The longest period of a rate.
    pub const PER_MAX: Duration = Duration::from_secs(24 * 60 * 60);

    /// The longest time in which a spent burst refills.
    pub const REFILL_MAX: Duration = Duration::from_secs(10 * 365 * 24 * 60 * 60);

    /// A rate of this many attempts per period.
    ///
    /// # Errors
    /// [`RateError::Zero`], [`RateError::Period`] or [`RateError::TooFast`].
    pub fn new(attempts: u32, per: Duration) -> Result<Self, RateError> {
        let attempts = NonZeroU32::new(attempts).filter(|_| !per.is_zero()).ok_or(RateError::Zero)?;
        if !per.subsec_nanos().is_multiple_of(1_000_000) || per > Self::PER_MAX {
            return Err(RateError::Period);
        }
        if u128::from(attempts.get()) > per.as_nanos() {
            return Err(RateError::TooFast);
        }
        Ok(Self { attempts, per, burst: attempts })
    }

    /// A rate of this many attempts per second.
    ///
    /// # Errors
    /// The same as for [`new`](Self::new).
    pub fn per_second(attempts: u32) -> Result<Self, RateError> {
        Self::new(attempts, Duration::from_secs(1))
    }

    /// A rate of this many attempts per minute.
    ///
    /// # Errors
    /// The same as for [`new`](Self::new).
    pub fn per_minute(attempts: u32) -> Result<Self, RateError> {
        Self::new(attempts, Duration::from_secs(60))
    }

    /// Sets how many attempts may start at once.
    ///
    /// # Errors
    /// [`RateError::Zero`] or [`RateError::Burst`].
    pub fn with_burst(self, burst: u32) -> Result<Self, RateError> {
        let burst = NonZeroU32::new(burst).ok_or(RateError::Zero)?;
        let refill = self.interval().checked_mul(burst.get());
        if refill.is_none_or(|refill| refill > Self::REFILL_MAX) {
            return Err(RateError::Burst);
        }
        Ok(Self { burst, ..self })
    }

    /// The number of attempts per [`period`](Self::per).
    pub fn attempts(&self) -> NonZeroU32 {
        self.attempts
    }

    /// The period over which attempts are counted.
    pub fn per(&self) -> Duration {
        self.per
    }

    /// The maximum number of attempts at once.
    pub fn burst(&self) -> NonZeroU32 {
        self.burst
    }

    /// The time in which one token is added, rounded up to a nanosecond so that it never exceeds the rate.
    pub fn interval(&self) -> Duration {
        let nanos = self.per.as_nanos().div_ceil(u128::from(self.attempts.get()));
        Duration::from_nanos(u64::try_from(nanos).expect("a day has fewer than 2^64 nanoseconds"))
    }
}

/// Units of time in milliseconds, the largest first. The first spelling is the one that is written.
const UNITS: [(&[&str], u64); 4] =
    [(&["h"], 3_600_000), (&["min", "m"], 60_000), (&["s", "sec"], 1_000), (&["ms"], 1)];

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.per.as_millis();
        let whole = |unit: &&(&[&str], u64)| millis.is_multiple_of(u128::from(unit.1));
        let (names, unit) = UNITS.iter().find(whole).expect("a rate's period is whole milliseconds");
        write!(f, "{}/", self.attempts)?;
        match millis / u128::from(*unit) {
            1 => f.write_str(names[0])?,
            count => write!(f, "{count}{}", names[0])?,
        }
        if self.burst == self.attempts { Ok(()) } else { write!(f, " burst {}", self.burst) }
    }
}

impl FromStr for Rate {
    type Err = RateError;

    /// Reads a number, `/`, a period (`s`, `min`, `h` or `ms`, optionally after a whole number) and optionally
    /// ` burst ` with the number of attempts at once.
    fn from_str(text: &str) -> Result<Self, RateError> {
        let form = || RateError::Form(text.to_owned());
        let mut words = text.split_ascii_whitespace();
        let (attempts, per) = words.next().and_then(|word| word.split_once('/')).ok_or_else(form)?;
        let rate = Self::new(parse_digits(attempts).ok_or_else(form)?, period(per).ok_or_else(form)?)?;
        match (words.next(), words.next(), words.next()) {
            (None, ..) => Ok(rate),
            (Some("burst"), Some(burst), None) => rate.with_burst(parse_digits(burst).ok_or_else(form)?),
            _ => Err(form()),
        }
    }
}

/// Parses a text of digits only: no sign, fraction or exponent.
fn parse_digits(text: &str) -> Option<u32> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

fn period(text: &str) -> Option<Duration> {
    let (count, name) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
    let count = if count.is_empty() { 1 } else { parse_digits(count)? };
    let (_, unit) = UNITS.iter().find(|(names, _)| names.contains(&name))?;
    Some(Duration::from_millis(u64::from(count) * unit))
}

impl TryFrom<String> for Rate {
    type Error = RateError;

    fn try_from(text: String) -> Result<Self, RateError> {
        text.parse()
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}

#[cfg(test)]
mod tests;
