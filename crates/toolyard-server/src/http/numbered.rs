//! Values of headers that end in a number.

use axum::http::HeaderValue;
use std::fmt::Write as _;

/// These texts, one after another, and the number behind them; `None` if that cannot be a value.
pub(crate) fn numbered(texts: &[&str], number: u64) -> Option<HeaderValue> {
    let digits = number.checked_ilog10().unwrap_or(0) as usize + 1;
    // Exactly as large as it has to be, so that it need not be moved, nor counted apart.
    let mut value = String::with_capacity(texts.iter().map(|text| text.len()).sum::<usize>() + digits);
    texts.iter().for_each(|text| value.push_str(text));
    write!(value, "{number}").ok()?;
    HeaderValue::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number is written whole, however many digits it has.
    #[test]
    fn a_value_ends_in_its_number() {
        for number in [0, 9, 10, 99, 100, u64::MAX] {
            assert_eq!(numbered(&["a", "/"], number).unwrap(), format!("a/{number}").as_str());
        }
        assert_eq!(numbered(&["\n"], 1), None);
    }
}
