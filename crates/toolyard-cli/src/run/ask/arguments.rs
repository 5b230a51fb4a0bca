//! The arguments of a call, laid out to be read.

use crate::shown::{ends, plain};
use serde_json::Value;

/// The number of characters shown of one text.
const TEXT_CHARS_MAX: usize = 800;

/// The number of lines shown.
const LINES_MAX: usize = 60;

/// The arguments as lines of JSON, one field per line. Every cut says how much is left out, outside of quotes, so that
/// no text in the arguments can imitate it.
pub(super) fn lines(arguments: &Value) -> Vec<String> {
    let mut text = String::new();
    render(arguments, 0, &mut text);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let more = lines.len().saturating_sub(LINES_MAX);
    if more > 0 {
        lines.truncate(LINES_MAX);
        lines.push(format!("… {more} more lines"));
    }
    lines
}

fn render(value: &Value, level: usize, into: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let fields = fields.iter().map(|(name, value)| (Some(name), value));
            enclosed(['{', '}'], fields, level, into);
        }
        Value::Array(items) if !items.is_empty() => {
            enclosed(['[', ']'], items.iter().map(|item| (None, item)), level, into);
        }
        Value::String(text) => into.push_str(&ends(text, TEXT_CHARS_MAX, quoted)),
        other => into.push_str(&other.to_string()),
    }
}

fn enclosed<'a>(
    [open, close]: [char; 2],
    items: impl ExactSizeIterator<Item = (Option<&'a String>, &'a Value)>,
    level: usize,
    into: &mut String,
) {
    let last = items.len() - 1;
    into.push(open);
    for (at, (name, value)) in items.enumerate() {
        begin_line(level + 1, into);
        if let Some(name) = name {
            into.push_str(&ends(name, TEXT_CHARS_MAX, quoted));
            into.push_str(": ");
        }
        render(value, level + 1, into);
        if at < last {
            into.push(',');
        }
    }
    begin_line(level, into);
    into.push(close);
}

fn begin_line(level: usize, into: &mut String) {
    into.push('\n');
    into.extend(std::iter::repeat_n("  ", level));
}

/// A text in quotes, on one line.
fn quoted(text: &str) -> String {
    plain(&Value::from(text).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_stand_on_lines_of_their_own() {
        let arguments = json!({"path": "a.txt", "lines": [1, {"x": null}], "none": {}, "empty": []});
        let expect = r#"{
  "path": "a.txt",
  "lines": [
    1,
    {
      "x": null
    }
  ],
  "none": {},
  "empty": []
}"#;
        assert_eq!(lines(&arguments), expect.lines().collect::<Vec<_>>());
    }

    /// PO-4: the arguments are the real ones, and no text in them ends its line or leaves its quotes.
    #[test]
    fn texts_stay_in_their_quotes() {
        let arguments = json!({"a\u{1b}[2J": "x\"\n}\u{1b}[1A\r\u{202e}"});
        let expect = ["{", r#"  "a\u001b[2J": "x\"\n}\u001b[1A\r\u202e""#, "}"];
        assert_eq!(lines(&arguments), expect);
        let back: Value = serde_json::from_str(&lines(&arguments).join("\n")).unwrap();
        assert_eq!(back, arguments);
    }

    #[test]
    fn what_is_cut_says_how_much_is_left_out() {
        let shown = lines(&json!("x".repeat(TEXT_CHARS_MAX + 9)));
        let expect = format!("\"{}\" … 9 more characters … \"{}\"", "x".repeat(600), "x".repeat(200));
        assert_eq!(shown, [expect]);
        let shown = lines(&json!(vec![0; 100]));
        assert_eq!((shown.len(), shown[LINES_MAX].as_str()), (LINES_MAX + 1, "… 42 more lines"));
    }
}
