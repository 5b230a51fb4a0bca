//! The arguments of a call, laid out to be read.

use super::{
    extent::Extent,
    text::{ends, plain},
};
use serde_json::Value;

/// The arguments as lines of JSON, one field per line. Every cut says how much is left out, outside of quotes, so that
/// no text in the arguments can imitate it.
pub(super) fn lines(arguments: &Value, extent: Extent) -> Vec<String> {
    let mut text = String::new();
    render(arguments, (0, extent), &mut text);
    extent.lines(text.lines().map(str::to_owned).collect())
}

fn render(value: &Value, (level, extent): (usize, Extent), into: &mut String) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let fields = fields.iter().map(|(name, value)| (Some(name), value));
            enclosed(['{', '}'], fields, (level, extent), into);
        }
        Value::Array(items) if !items.is_empty() => {
            enclosed(['[', ']'], items.iter().map(|item| (None, item)), (level, extent), into);
        }
        Value::String(text) => into.push_str(&ends(text, extent.text_chars_max(), quoted)),
        other => into.push_str(&other.to_string()),
    }
}

fn enclosed<'a>(
    [open, close]: [char; 2],
    items: impl ExactSizeIterator<Item = (Option<&'a String>, &'a Value)>,
    (level, extent): (usize, Extent),
    into: &mut String,
) {
    let last = items.len() - 1;
    into.push(open);
    for (at, (name, value)) in items.enumerate() {
        begin_line(level + 1, into);
        if let Some(name) = name {
            into.push_str(&ends(name, extent.text_chars_max(), quoted));
            into.push_str(": ");
        }
        render(value, (level + 1, extent), into);
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
        assert_eq!(lines(&arguments, Extent::Cut), expect.lines().collect::<Vec<_>>());
    }

    /// PO-4: the arguments are the real ones, and no text in them ends its line or leaves its quotes.
    #[test]
    fn texts_stay_in_their_quotes() {
        let arguments = json!({"a\u{1b}[2J": "x\"\n}\u{1b}[1A\r\u{202e}"});
        let expect = ["{", r#"  "a\u001b[2J": "x\"\n}\u001b[1A\r\u202e""#, "}"];
        assert_eq!(lines(&arguments, Extent::Cut), expect);
        let back: Value = serde_json::from_str(&lines(&arguments, Extent::Cut).join("\n")).unwrap();
        assert_eq!(back, arguments);
    }

    /// PO-4: of what is long, the start and the end are shown, and how much is between them.
    #[test]
    fn what_is_cut_says_how_much_is_left_out() {
        let chars_max = Extent::Cut.text_chars_max();
        let long = json!("x".repeat(chars_max) + "the end");
        let expect = format!("\"{}\" … 7 more characters … \"{}the end\"", "x".repeat(600), "x".repeat(193));
        assert_eq!(lines(&long, Extent::Cut), [expect]);
        let many = json!((0..100).collect::<Vec<_>>());
        let shown = lines(&many, Extent::Cut);
        assert_eq!((shown.len(), shown[45].as_str()), (61, "… 42 more lines …"));
        assert_eq!((shown[44].as_str(), shown[46].as_str(), shown[60].as_str()), ("  43,", "  86,", "]"));
        for whole in [long, many] {
            let back: Value = serde_json::from_str(&lines(&whole, Extent::Whole).join("\n")).unwrap();
            assert_eq!(back, whole);
        }
    }
}
