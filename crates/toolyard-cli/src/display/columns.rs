//! Texts in columns of a terminal, where some characters are two columns wide and some none.

use super::plain;
use console::measure_text_width;

/// How many characters are looked at for each column: more of them have no width, and are left out.
const CHARS_PER_COLUMN: usize = 8;

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    measure_text_width(text)
}

/// A text from outside on one line of plain characters, in at most so many columns; `…` shows that there is more.
pub(crate) fn fit(text: &str, columns: usize) -> String {
    let looked_at = columns.saturating_mul(CHARS_PER_COLUMN).saturating_add(1);
    let mut rest = text.chars();
    let on_a_line = rest.by_ref().take(looked_at).map(|c| if c.is_control() { ' ' } else { c });
    let clean = plain(&on_a_line.collect::<String>());
    if rest.next().is_none() && width(&clean) <= columns {
        return clean;
    }
    let mut shown = cut(&clean, columns.saturating_sub(1)).to_owned();
    if columns > 0 {
        shown.push('…');
    }
    shown
}

/// As much of the beginning of a plain text as takes at most so many columns.
pub(crate) fn cut(text: &str, columns: usize) -> &str {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|end| width(&text[..*end]) <= columns).last();
    &text[..end.unwrap_or_default()]
}

/// As much of the end of a text as takes so many columns, after a sign for what is left out.
pub(crate) fn fit_end(text: &str, columns: usize) -> String {
    let clean = plain(text);
    if width(&clean) <= columns {
        return clean;
    }
    let mut begins = clean.char_indices().map(|(at, _)| &clean[at..]);
    let end = begins.find(|rest| width(rest) < columns).unwrap_or_default();
    if columns == 0 { String::new() } else { format!("…{end}") }
}

/// A text with spaces behind it, up to so many columns.
pub(crate) fn padded(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// A text with spaces before it, up to so many columns.
pub(crate) fn padded_left(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// KT-13
    #[test]
    fn wide_characters_take_two_columns() {
        assert_eq!((width("ab"), width("漢字"), width("e\u{301}")), (2, 4, 1));
        assert_eq!(fit("漢字漢字", 8), "漢字漢字");
        assert_eq!(fit("漢字漢字", 6), "漢字…");
        assert_eq!(fit("漢字漢字", 4), "漢…");
        assert_eq!(
            (fit("abc", 0).as_str(), fit("abc", 1).as_str(), fit("a\nb", 3).as_str()),
            ("", "…", "a b")
        );
        assert_eq!(padded("漢", 4), "漢  ");
        assert_eq!(padded_left("漢", 4), "  漢");
    }
}
