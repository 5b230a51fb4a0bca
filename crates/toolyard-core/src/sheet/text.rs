//! Makes a model's text safe to be shown: nothing in it moves a cursor, changes the reading order, or is present without
//! being seen.

use crate::{is_plain, json_escape};

/// The number of combining marks shown on one character; more could cover the text around it.
const MARKS_MAX: usize = 2;

/// How a character may be shown.
enum Kind {
    /// It shows itself.
    Letter,
    /// It is shown on the character before it.
    Mark,
    /// It has another effect than being shown.
    Odd,
}

/// The text on one line. Everything that is not plainly visible is escaped as in JSON.
///
/// # Examples
/// ```
/// use toolyard_core::sheet::plain;
/// assert_eq!(plain("grüße\n\u{202e}"), "grüße\\u000a\\u202e");
/// ```
pub fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    // A mark at the start would combine with the text printed before.
    let mut marks = MARKS_MAX;
    for char in text.chars() {
        match kind(char) {
            Kind::Letter => {
                marks = 0;
                shown.push(char);
            }
            Kind::Mark if marks < MARKS_MAX => {
                marks += 1;
                shown.push(char);
            }
            Kind::Mark | Kind::Odd => {
                marks = MARKS_MAX;
                escape(char, &mut shown);
            }
        }
    }
    shown
}

/// A text of up to `chars_max` characters as a whole; a longer one as its start, its end, and the number of characters
/// between them. `part` renders the pieces.
///
/// # Examples
/// ```
/// use toolyard_core::sheet::{ends, plain};
/// assert_eq!(ends("abcdefghi", 8, plain), "abcdef … 1 more characters … hi");
/// ```
pub fn ends(text: &str, chars_max: usize, part: impl Fn(&str) -> String) -> String {
    let chars = text.chars().count();
    if chars <= chars_max {
        return part(text);
    }
    let (tail, head) = (chars_max / 4, chars_max - chars_max / 4);
    let at = |place: usize| text.char_indices().nth(place).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (&text[..at(head)], &text[at(chars - tail)..]);
    let between = chars - chars_max;
    format!("{} … {between} more characters … {}", part(head), part(tail))
}

fn kind(char: char) -> Kind {
    // The standard library escapes a mark that follows no other character.
    let is_mark = || !char.is_ascii() && char.escape_debug().len() > 1;
    match is_plain(char) {
        false => Kind::Odd,
        true if is_mark() => Kind::Mark,
        true => Kind::Letter,
    }
}

fn escape(char: char, into: &mut String) {
    json_escape(char, into).expect("writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PO-4, SM-12: a model cannot draw on the user's screen, or hide anything from the user.
    #[test]
    fn what_is_not_plainly_seen_is_escaped() {
        let check = |text: &str, expect: &str| assert_eq!(plain(text), expect);
        check("\u{1b}[2J\u{7}\r\u{8}\u{7f}", "\\u001b[2J\\u0007\\u000d\\u0008\\u007f");
        check("\u{9b}31m\u{85}", "\\u009b31m\\u0085");
        check("a\nb\tc", "a\\u000ab\\u0009c");
        check("exe\u{202e}gpj\u{2066}\u{200f}\u{61c}", "exe\\u202egpj\\u2066\\u200f\\u061c");
        check("pay\u{200b}\u{200d}\u{feff}\u{ad}\u{2060}", "pay\\u200b\\u200d\\ufeff\\u00ad\\u2060");
        check("a\u{2028}b\u{2029}\u{a0}\u{3000}", "a\\u2028b\\u2029\\u00a0\\u3000");
        check("\u{3164}\u{115f}\u{ffa0}\u{2800}\u{fe0f}", "\\u3164\\u115f\\uffa0\\u2800\\ufe0f");
        check("\u{e0041}\u{e0101}\u{f0000}", "\\udb40\\udc41\\udb40\\udd01\\udb80\\udc00");
    }

    #[test]
    fn what_people_write_is_left_alone() {
        for text in ["rm -rf 'x' \"y\" \\z $(w)", "grüße", "漢字かな", "שלום", "e\u{301}", "हिन्दी", "🌱"]
        {
            assert_eq!(plain(text), text);
        }
    }

    /// PO-4: marks cannot be piled up to cover the text around them.
    #[test]
    fn heaped_marks_are_escaped() {
        assert_eq!(plain("\u{301}a"), "\\u0301a");
        assert_eq!(plain("a\u{301}\u{301}\u{301}\u{301}b"), "a\u{301}\u{301}\\u0301\\u0301b");
        assert_eq!(plain("\u{202e}\u{338}"), "\\u202e\\u0338");
    }

    #[test]
    fn a_long_text_has_its_ends_and_says_what_is_between() {
        assert_eq!(ends("abcdefgh", 8, plain), "abcdefgh");
        assert_eq!(ends("abcdefghi", 8, plain), "abcdef … 1 more characters … hi");
        assert_eq!(ends(&"ü".repeat(100), 4, plain), "üüü … 96 more characters … ü");
    }
}
