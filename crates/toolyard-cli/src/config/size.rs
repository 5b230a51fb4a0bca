//! Sizes as the configuration spells them.

/// Why a text is not a size.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SizeError {
    /// Not a number with a unit.
    #[error(
        "'{0}' is not a size: write a whole number and a unit, such as \"512KiB\", \"64MiB\" or \"1GiB\""
    )]
    Form(String),
    /// A size of zero.
    #[error("'{0}' must be more than zero")]
    Zero(String),
}

/// Parses a size: a whole number, and the unit `B`, `KiB`, `MiB` or `GiB`.
pub(crate) fn parse(text: &str) -> Result<u64, SizeError> {
    let form = || SizeError::Form(text.to_owned());
    let unit_at = text.find(|char: char| !char.is_ascii_digit()).ok_or_else(form)?;
    let (number, unit) = text.split_at(unit_at);
    let unit: u64 = match unit {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(form()),
    };
    let number: u64 = number.parse().map_err(|_| form())?;
    match number.checked_mul(unit).ok_or_else(form)? {
        0 => Err(SizeError::Zero(text.to_owned())),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_number_and_a_unit_are_a_size() {
        for (text, bytes) in [("7B", 7), ("512KiB", 512 << 10), ("64MiB", 64 << 20), ("2GiB", 2 << 30)] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
    }

    #[test]
    fn zero_and_everything_else_is_refused() {
        assert_eq!(parse("0MiB"), Err(SizeError::Zero("0MiB".into())));
        for text in ["", "512", "MiB", "-1MiB", "1.5GiB", "1 MiB", "1MB", "1mib", "99999999999GiB"] {
            assert!(matches!(parse(text), Err(SizeError::Form(_))), "{text}");
        }
    }
}
