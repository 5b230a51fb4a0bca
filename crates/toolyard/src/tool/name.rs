//! The names that a tool may have: a person who reads one sees all of it, in its order.

use toolyard_core::is_plain;

/// Maximum number of characters of a name.
const CHARS_MAX: usize = 128;

/// Whether a tool may have this name.
pub(crate) fn is_valid(name: &str) -> bool {
    !name.is_empty() && name.chars().count() <= CHARS_MAX && !name.contains(is_odd)
}

/// A name as errors show it: escaped, and cut if it is longer than any valid one.
pub(crate) fn escaped(name: &str) -> String {
    let mut escaped: String = name.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect();
    if name.chars().nth(CHARS_MAX).is_some() {
        escaped.push('…');
    }
    escaped
}

/// Whether a character has no place in a name.
fn is_odd(char: char) -> bool {
    char == ' ' || !is_plain(char)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_it_looks_like() {
        for name in ["git__add", "a.b-c/d", "größe", "gro\u{308}sse", "読む", "पढ़ो", "it's", "a\\b"]
        {
            assert!(is_valid(name), "{name}");
        }
        let odd =
            ['\u{202e}', '\u{2066}', '\u{200b}', '\u{200d}', '\u{ad}', '\u{feff}', '\u{3164}', '\u{e0041}'];
        let more =
            [' ', '\n', '\t', '\u{a0}', '\u{1b}', '\u{85}', '\u{2028}', '\u{fe0f}', '\u{115f}', '\u{61c}'];
        for char in odd.into_iter().chain(more) {
            assert!(!is_valid(&format!("a{char}b")), "{char:?}");
        }
        assert!(is_valid(&"x".repeat(CHARS_MAX)) && !is_valid(&"x".repeat(CHARS_MAX + 1)) && !is_valid(""));
    }

    #[test]
    fn a_long_or_odd_name_is_shown_cut_and_escaped() {
        assert_eq!(escaped("a\u{202e}b"), "a\\u{202e}b");
        assert_eq!(escaped(&"x".repeat(1_000_000)), format!("{}…", "x".repeat(CHARS_MAX)));
    }
}
