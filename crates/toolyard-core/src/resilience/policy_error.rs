//! Why a setting is refused.

use std::time::Duration;

/// A setting of a [`RetryPolicy`](super::RetryPolicy) or a [`BreakerPolicy`](super::BreakerPolicy) that makes
/// no sense.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A duration of zero.
    #[error("{key} must be longer than zero")]
    Zero {
        /// The setting.
        key: &'static str,
    },
    /// A duration under its bound.
    #[error("{key} must be at least {least:?}, not {given:?}")]
    Short {
        /// The setting.
        key: &'static str,
        /// The bound.
        least: Duration,
        /// What was given.
        given: Duration,
    },
    /// A number that is out of its range, or none at all.
    #[error("{key} must be {wanted}, not {given}")]
    Number {
        /// The setting.
        key: &'static str,
        /// The range, in words.
        wanted: &'static str,
        /// What was given.
        given: f64,
    },
}

impl PolicyError {
    /// The setting that is refused, by its name in the configuration.
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Zero { key } | Self::Short { key, .. } | Self::Number { key, .. } => key,
        }
    }

    pub(super) fn nonzero(key: &'static str, given: Duration) -> Result<Duration, Self> {
        if given.is_zero() { Err(Self::Zero { key }) } else { Ok(given) }
    }

    pub(super) fn at_least(key: &'static str, least: Duration, given: Duration) -> Result<Duration, Self> {
        if given < least { Err(Self::Short { key, least, given }) } else { Ok(given) }
    }
}
