//! Texts and times in the form that people see.

mod columns;
mod json;

pub(crate) use columns::{cut, fit, fit_end, padded, padded_left, width};
pub(crate) use json::json_text;
pub(crate) use toolyard::sheet::plain;

use std::{fmt, time::Duration};

/// A text from outside on one line of plain characters, clipped to `chars_max`.
pub(crate) fn clip(text: &str, chars_max: usize) -> String {
    let on_a_line = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    // One character beyond the limit shows that there is more; the rest need not be read.
    let clean = plain(&on_a_line.take(chars_max + 1).collect::<String>());
    let mut clean = clean.chars();
    let mut shown: String = clean.by_ref().take(chars_max).collect();
    if clean.next().is_some() {
        shown.pop();
        shown.push('…');
    }
    shown
}

/// `1 call`, `2 calls`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ if noun.ends_with("ch") => format!("{number} {noun}es"),
        _ => format!("{number} {noun}s"),
    }
}

/// A time in about three digits: `12 µs`, `0.42 ms`, `17.3 ms`, `2.41 s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Brief(pub(crate) Duration);

impl fmt::Display for Brief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.as_micros();
        let text = match micros {
            0..100 => format!("{micros} µs"),
            100..10_000 => format!("{:.2} ms", self.0.as_secs_f64() * 1e3),
            10_000..100_000 => format!("{:.1} ms", self.0.as_secs_f64() * 1e3),
            100_000..1_000_000 => format!("{:.0} ms", self.0.as_secs_f64() * 1e3),
            _ => format!("{:.2} s", self.0.as_secs_f64()),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_about_three_digits() {
        let check =
            |micros, expect: &str| assert_eq!(Brief(Duration::from_micros(micros)).to_string(), expect);
        check(7, "7 µs");
        check(420, "0.42 ms");
        check(17_340, "17.3 ms");
        check(2_410_000, "2.41 s");
    }

    #[test]
    fn long_and_odd_texts_are_one_short_line() {
        assert_eq!(clip("a\nb", 9), "a b");
        assert_eq!(clip("abcdef", 4), "abc…");
        assert_eq!(clip("abcd", 4), "abcd");
        assert_eq!(clip("a\u{202e}b", 9), "a\\u202eb");
    }
}
