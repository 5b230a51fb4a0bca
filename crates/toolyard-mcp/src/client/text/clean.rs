//! Makes texts of servers fit for a person's terminal and a model's eyes.

use serde_json::Value;

/// Maximum number of characters of a description.
pub(crate) const DESCRIPTION_MAX: usize = 8192;

/// Maximum number of characters of a name that are shown.
pub(crate) const NAME_MAX: usize = 200;

/// Keywords of a schema whose values are data, which is left as it is.
const DATA: &[&str] = &["enum", "const", "default", "examples", "example"];

/// The text without invisible characters, cut to at most `chars_max` characters.
pub(crate) fn text(text: &str, chars_max: usize) -> String {
    let mut clean = text.chars().filter(|c| is_visible(*c));
    let mut kept: String = clean.by_ref().take(chars_max).collect();
    if clean.next().is_some() {
        kept.pop();
        kept.push('…');
    }
    kept
}

/// A value without invisible characters; as a text if it has any, or is longer than `chars_max` characters.
pub(crate) fn value(value: Value, chars_max: usize) -> Value {
    if let Value::String(original) = &value {
        return text(original, chars_max).into();
    }
    let written = value.to_string();
    let shown = text(&written, chars_max);
    if written == shown { value } else { shown.into() }
}

/// Whether a character is visible. Control characters, direction marks, and tags that only models see are not.
pub(crate) fn is_visible(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        '\u{61c}' | '\u{2028}' | '\u{2029}' => false,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => false,
        '\u{e0000}'..='\u{e0fff}' => false,
        c => !c.is_control(),
    }
}

/// Cleans the descriptions, titles and comments within a schema.
pub(crate) fn schema(schema: &mut Value) {
    match schema {
        Value::Object(words) => {
            for (word, value) in words.iter_mut() {
                match value {
                    Value::String(original)
                        if matches!(word.as_str(), "description" | "title" | "$comment") =>
                    {
                        *original = text(original, DESCRIPTION_MAX);
                    }
                    _ if DATA.contains(&word.as_str()) => {}
                    value => self::schema(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(self::schema),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A logged value keeps its form if it is short and hides nothing.
    #[test]
    fn values_that_are_long_or_hide_something_become_texts() {
        assert_eq!(value(json!({"n": 1}), 10), json!({"n": 1}));
        assert_eq!(value(json!("a\u{202e}b"), 10), json!("ab"));
        assert_eq!(value(json!(["a\u{202e}b"]), 10), json!("[\"ab\"]"));
        assert_eq!(value(json!(["aaaaaaaaaa"]), 10), json!("[\"aaaaaaa…"));
    }

    #[test]
    fn nothing_hidden_is_left() {
        assert_eq!(text("a\u{1b}[2J\u{7}b\r\nc\u{202e}\u{e0041}\u{200b}d", 99), "a[2Jb\ncd");
        assert_eq!(text("abcdef", 4), "abc…");
        assert_eq!(text("äöü", 3), "äöü");
    }

    #[test]
    fn a_schema_is_clean_to_its_depth_and_its_data_stay() {
        let mut dirty = json!({
            "properties": {"description": {"type": "string", "description": "x\u{1b}"}},
            "default": {"description": "\u{1b}"},
        });
        schema(&mut dirty);
        let clean = json!({
            "properties": {"description": {"type": "string", "description": "x"}},
            "default": {"description": "\u{1b}"},
        });
        assert_eq!(dirty, clean);
    }
}
