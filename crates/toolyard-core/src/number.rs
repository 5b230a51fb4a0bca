//! Whole numbers, however JSON writes them.

use serde_json::Value;

/// Up to here, a number with a fraction or an exponent stands for exactly one whole number.
const EXACT_MAX: f64 = 9_007_199_254_740_991.0;

/// The whole number from 0 that a value is: JSON has one kind of number, and some programs write 1000 as `1e3` or
/// `1000.0`. `None` for anything else, and for such spellings beyond 2^53, which may stand for several numbers.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::whole_number;
/// assert_eq!(whole_number(&json!(1e3)), Some(1000));
/// assert_eq!(whole_number(&json!(1.5)), None);
/// ```
pub fn whole_number(value: &Value) -> Option<u64> {
    let is_whole = |number: &f64| number.fract() == 0.0 && (0.0..=EXACT_MAX).contains(number);
    value.as_u64().or_else(|| value.as_f64().filter(is_whole).map(|number| number as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_whole_however_it_is_written() {
        let read = |text: &str| whole_number(&serde_json::from_str(text).unwrap());
        for (text, number) in [
            ("0", 0),
            ("-0.0", 0),
            ("1000", 1000),
            ("1e3", 1000),
            ("1E+3", 1000),
            ("1000.0", 1000),
            ("9007199254740991.0", 9_007_199_254_740_991),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(read(text), Some(number), "{text}");
        }
        for text in ["1.5", "-1", "-1e3", "9007199254740992.0", "1e300", "\"1\"", "true", "null", "[1]"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
