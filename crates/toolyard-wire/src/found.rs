//! What a decoder found in a message or in one event: calls, and the model's own text beside them, in their order.

use crate::{draft::Draft, json::Fields};
use serde_json::Value;

/// Text that the model wrote beside its calls.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Text {
    /// How many of the message's calls stand before it.
    pub(crate) calls_before: usize,
    /// As the provider wrote it, because it goes back that way: a block, a part or an item with all of its fields;
    /// the content of a Chat message.
    pub(crate) wire: Value,
}

impl Text {
    /// The text alone.
    pub(crate) fn plain(&self) -> String {
        let mut plain = String::new();
        collect(&self.wire, &mut plain);
        plain
    }

    /// Continues a streamed text with its next piece; gives the piece back if it is a text of its own.
    pub(crate) fn join(&mut self, next: Value) -> Option<Value> {
        match (&mut self.wire, next) {
            (Value::String(text), Value::String(more)) => text.push_str(&more),
            // A part with further fields, such as a signature, must stay as it is.
            (Value::Object(part), Value::Object(more)) if is_plain_part(part) && is_plain_part(&more) => {
                if let Some(Value::String(text)) = part.get_mut("text") {
                    text.push_str(crate::json::text(&more, "text"));
                }
            }
            (_, next) => return Some(next),
        }
        None
    }
}

fn is_plain_part(part: &Fields) -> bool {
    part.len() == 1 && part.contains_key("text")
}

/// Appends the text of a block, a part, an item or a list of those. The recursion is as deep as the JSON, which the
/// parser has bounded.
fn collect(value: &Value, plain: &mut String) {
    match value {
        Value::String(text) => plain.push_str(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, plain)),
        Value::Object(fields) => {
            let text = ["text", "refusal", "content"].iter().find_map(|key| fields.get(*key));
            text.into_iter().for_each(|text| collect(text, plain));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The calls and texts found, in order.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) drafts: Vec<Draft>,
    pub(crate) texts: Vec<Text>,
}

impl Found {
    pub(crate) fn push(&mut self, draft: Draft) {
        self.drafts.push(draft);
    }

    /// Adds a text after the calls so far.
    pub(crate) fn push_text(&mut self, wire: Value) {
        self.texts.push(Text { calls_before: self.drafts.len(), wire });
    }

    /// Adds all that was found elsewhere.
    pub(crate) fn append(&mut self, other: Self) {
        let before = self.drafts.len();
        let moved = |text: Text| Text { calls_before: text.calls_before + before, ..text };
        self.texts.extend(other.texts.into_iter().map(moved));
        self.drafts.extend(other.drafts);
    }
}

impl Extend<Draft> for Found {
    fn extend<I: IntoIterator<Item = Draft>>(&mut self, drafts: I) {
        self.drafts.extend(drafts);
    }
}

impl From<Vec<Draft>> for Found {
    fn from(drafts: Vec<Draft>) -> Self {
        Self { drafts, texts: Vec::new() }
    }
}
