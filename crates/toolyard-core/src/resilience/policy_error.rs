//! Why a setting is refused.

use std::{num::NonZeroU32, time::Duration};

/// A setting of a [`RetryPolicy`](super::RetryPolicy) or a [`BreakerPolicy`](super::BreakerPolicy) that is invalid.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// A duration is zero.
    #[error("{key} must be longer than zero")]
    Zero {
        /// The setting.
        key: &'static str,
    },
    /// A duration is below its bound.
    #[error("{key} must be at least {least:?}, not {given:?}")]
    Short {
        /// The setting.
        key: &'static str,
        /// The bound.
        least: Duration,
        /// The value that was given.
        given: Duration,
    },
    /// A number is out of its range, or not a number.
    #[error("{key} must be {wanted}, not {given}")]
    Number {
        /// The setting.
        key: &'static str,
        /// The range, in words.
        wanted: &'static str,
        /// The value that was given.
        given: f64,
    },
}

impl PolicyError {
    /// The name of the refused setting, as in the configuration.
    pub const fn key(&self) -> &'static str {
        match self {
            Self::Zero { key } | Self::Short { key, .. } | Self::Number { key, .. } => key,
        }
    }

    pub(super) fn count(key: &'static str, given: u32) -> Result<NonZeroU32, Self> {
        NonZeroU32::new(given).ok_or(Self::Number { key, wanted: "at least 1", given: 0.0 })
    }

    pub(super) fn number(
        key: &'static str,
        wanted: &'static str,
        given: f64,
        is_wanted: bool,
    ) -> Result<f64, Self> {
        if is_wanted { Ok(given) } else { Err(Self::Number { key, wanted, given }) }
    }

    pub(super) fn nonzero(key: &'static str, given: Duration) -> Result<Duration, Self> {
        if given.is_zero() { Err(Self::Zero { key }) } else { Ok(given) }
    }

    pub(super) fn at_least(key: &'static str, least: Duration, given: Duration) -> Result<Duration, Self> {
        if given < least { Err(Self::Short { key, least, given }) } else { Ok(given) }
    }
}
