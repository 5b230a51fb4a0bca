//! Names of files in texts: a name draws nothing.

use std::fmt;

/// A name on one line. Whatever ends a line, acts on a terminal, changes the reading order or is not seen is escaped as
/// in JSON, so that a name looks like one name and no line of a listing can be invented by another entry.
pub(crate) struct OneLine<'a>(pub(crate) &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(is_odd) {
            let (plain, from) = rest.split_at(at);
            f.write_str(plain)?;
            let mut chars = from.chars();
            for unit in chars.next().into_iter().flat_map(|odd| odd.encode_utf16(&mut [0; 2]).to_vec()) {
                write!(f, "\\u{unit:04x}")?;
            }
            rest = chars.as_str();
        }
        f.write_str(rest)
    }
}

/// Whether a character has another effect than being shown: control and format characters, separators of lines, odd
/// spaces.
fn is_odd(char: char) -> bool {
    if matches!(char, ' '..='~') {
        return false;
    }
    // The standard library knows what is printable; it accepts marks only after another character.
    format!("x{char}").escape_debug().skip(1).any(|shown| shown == '\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_draws_nothing() {
        for (name, shown) in [
            ("a b.txt", "a b.txt"),
            ("größe-ü-日本.md", "größe-ü-日本.md"),
            ("e\u{301}", "e\u{301}"),
            ("it's \"so\"", "it's \"so\""),
            ("a\nb/", "a\\u000ab/"),
            ("\u{1b}[2Jx", "\\u001b[2Jx"),
            ("gpj.\u{202e}exe", "gpj.\\u202eexe"),
            ("a\u{85}b\u{2028}", "a\\u0085b\\u2028"),
            ("\u{e0041}", "\\udb40\\udc41"),
        ] {
            assert_eq!(OneLine(name).to_string(), shown);
        }
    }
}
