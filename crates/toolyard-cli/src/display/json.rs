//! JSON that does nothing to a terminal.

use std::borrow::Cow;
use toolyard::{is_plain, json_escape};

/// JSON text with escapes for whatever is not plainly visible: control and format characters, odd spaces, line and
/// paragraph separators. The data stay the same, because such characters occur only inside strings.
pub(crate) fn json_text(text: &str) -> Cow<'_, str> {
    let is_odd = |char: char| match char {
        '\0'..='~' => false,
        char => !is_plain(char),
    };
    let Some(first) = text.find(is_odd) else { return Cow::Borrowed(text) };
    let mut shown = text[..first].to_owned();
    for char in text[first..].chars() {
        match is_odd(char) {
            true => json_escape(char, &mut shown).expect("writing to a string cannot fail"),
            false => shown.push(char),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// JSON is the same data after it, and has nothing in it that acts on a terminal or ends a line elsewhere.
    #[test]
    fn json_has_no_odd_characters() {
        let odd = "a\u{2028}b\u{2029}c\u{85}d\u{9b}31m\u{7f}exe\u{202e}gpj\u{200b}\u{feff}\u{e0041}";
        let data = serde_json::json!({odd: [odd, "grüße 漢字 🌱", 1.5]});
        for text in [data.to_string(), format!("{data:#}")] {
            let shown = json_text(&text);
            assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), data);
            assert!(shown.chars().all(|char| char == '\n' || is_plain(char)), "{shown}");
            assert!(shown.contains("a\\u2028b\\u2029c\\u0085d\\u009b31m\\u007f"), "{shown}");
            assert!(shown.contains("grüße 漢字 🌱"));
        }
        assert!(matches!(json_text("{\"a\":\"grüße\"}\n"), Cow::Borrowed(_)));
    }
}
