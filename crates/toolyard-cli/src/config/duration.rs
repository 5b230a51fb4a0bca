//! Durations as the configuration spells them.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum DurationError {
    /// Not a number with a unit.
    #[error(
        "'{0}' is not a duration: write a number and a unit, such as \"250ms\", \"30s\", \"5m\" or \"1h\""
    )]
    Form(String),
    /// A duration of zero.
    #[error("'{0}' must be longer than zero")]
    Zero(String),
}

/// Parses a duration: a number, whole or with a fraction, and the unit `ms`, `s`, `m` or `h`.
pub(super) fn parse(text: &str) -> Result<Duration, DurationError> {
    let form = || DurationError::Form(text.to_owned());
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).ok_or_else(form)?;
    let (number, unit) = text.split_at(unit_at);
    let seconds = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(form()),
    };
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let number: f64 = number.parse().map_err(|_| form())?;
    let duration = plain.then(|| Duration::try_from_secs_f64(number * seconds).ok());
    match duration.flatten().ok_or_else(form)? {
        Duration::ZERO => Err(DurationError::Zero(text.to_owned())),
        duration => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, millis: u64) {
        assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
    }

    #[test]
    fn a_number_and_a_unit_are_a_duration() {
        check("250ms", 250);
        check("30s", 30_000);
        check("1.5s", 1_500);
        check("5m", 300_000);
        check("1h", 3_600_000);
    }

    #[test]
    fn zero_and_everything_else_is_refused() {
        assert_eq!(parse("0s"), Err(DurationError::Zero("0s".into())));
        for text in ["", "30", "s", "-1s", "1e3s", "inf s", "30 s", "30sec", "1d", "9e999s"] {
            assert!(matches!(parse(text), Err(DurationError::Form(_))), "{text}");
        }
    }
}
