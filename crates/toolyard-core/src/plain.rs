//! Which characters a person sees as they are.

use std::fmt;

/// Characters that count as printable but show nothing: fillers, variation selectors, tags.
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

/// Whether a character is seen, and has no other effect than that.
///
/// Not plain are control and format characters, which act on a terminal or change the reading order, separators of
/// lines, white space other than a space, characters for private use, and those that count as printable but show
/// nothing. A mark that combines with the character before it is plain.
///
/// # Examples
/// ```
/// use toolyard_core::is_plain;
/// assert!(is_plain('a') && is_plain(' ') && is_plain('\\') && is_plain('漢') && is_plain('\u{301}'));
/// assert!(!is_plain('\n') && !is_plain('\u{202e}') && !is_plain('\u{a0}') && !is_plain('\u{3164}'));
/// ```
pub fn is_plain(char: char) -> bool {
    if matches!(char, ' '..='~') {
        return true;
    }
    // The standard library knows what is printable. It accepts marks only after another character.
    let is_printable = || !format!("x{char}").escape_debug().skip(1).any(|shown| shown == '\\');
    !BLANK.iter().any(|(first, last)| (*first..=*last).contains(&char)) && is_printable()
}

/// Writes a character as JSON escapes it, so that it is seen.
///
/// # Errors
/// Those of writing.
///
/// # Examples
/// ```
/// let mut shown = String::new();
/// toolyard_core::json_escape('\u{202e}', &mut shown).unwrap();
/// toolyard_core::json_escape('\u{e0041}', &mut shown).unwrap();
/// assert_eq!(shown, r"\u202e\udb40\udc41");
/// ```
pub fn json_escape(char: char, into: &mut impl fmt::Write) -> fmt::Result {
    char.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(into, "\\u{unit:04x}"))
}
