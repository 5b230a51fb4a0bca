//! Names of files in texts: a name draws nothing.

use std::fmt;
use toolyard_core::{is_plain, json_escape};

/// A name on one line. Whatever is not plain is escaped as in JSON, so that a name looks like one name and no line of a
/// listing can be invented by another entry.
pub(crate) struct OneLine<'a>(pub(crate) &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0;
        while let Some(at) = rest.find(|char| !is_plain(char)) {
            let (plain, from) = rest.split_at(at);
            f.write_str(plain)?;
            let mut chars = from.chars();
            chars.next().map_or(Ok(()), |odd| json_escape(odd, f))?;
            rest = chars.as_str();
        }
        f.write_str(rest)
    }
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
            ("a\u{3164}b\u{fe0f}", "a\\u3164b\\ufe0f"),
        ] {
            assert_eq!(OneLine(name).to_string(), shown);
        }
    }
}
