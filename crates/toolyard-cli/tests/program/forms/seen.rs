//! What was seen of a call.

use super::form::Form;
use serde_json::Value;

/// What became of a call.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) form: Form,
    pub(super) result: Value,
    pub(super) events: Vec<Value>,
}

impl Seen {
    /// The text of its result.
    pub(super) fn text(&self) -> &str {
        self.result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {}", self.result))
    }

    /// It failed with this code.
    pub(super) fn fails(&self, code: &str) {
        assert_eq!(self.result["error"]["code"], code, "{}", self.result);
    }

    /// It failed, and this is known of its effect.
    pub(super) fn has_outcome(&self, outcome: &str) {
        assert_eq!(self.result["error"]["outcome"], outcome, "{}", self.result);
    }

    /// Its result says this somewhere.
    pub(super) fn says(&self, text: &str) {
        assert!(self.result.to_string().contains(text), "{}", self.result);
    }

    /// How many times it was tried.
    pub(super) fn attempts(&self) -> usize {
        self.events.iter().filter(|event| event["event"] == "dispatch.attempt").count()
    }

    /// What was streamed while it ran.
    pub(super) fn streamed(&self) -> String {
        let deltas = self.events.iter().filter(|event| event["event"] == "tool.output_delta");
        deltas.map(|event| event["text"].as_str().unwrap_or_else(|| panic!("no text: {event}"))).collect()
    }
}
