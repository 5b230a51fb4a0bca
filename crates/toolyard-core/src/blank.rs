//! Characters that a person does not see, though they count as printable.

/// Characters that count as printable but show nothing.
const BLANK: &[(char, char)] = &[
    ('\u{34f}', '\u{34f}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{2800}', '\u{2800}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0f}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// Whether a character counts as printable but shows nothing: a filler, a variation selector, a tag.
///
/// White space, control and format characters are not among them: [`char::escape_debug`] and [`char::is_whitespace`]
/// know those.
///
/// # Examples
/// ```
/// use toolyard_core::is_blank;
/// assert!(is_blank('\u{3164}') && is_blank('\u{fe0f}'));
/// assert!(!is_blank('a') && !is_blank(' '));
/// ```
pub fn is_blank(char: char) -> bool {
    BLANK.iter().any(|(first, last)| (*first..=*last).contains(&char))
}
