//! OpenAI Chat: a `tool` message per call. It carries only text and has no error flag.

use super::answer::Answer;
use serde_json::{Value, json};

pub(super) fn message(answer: &Answer<'_>) -> Value {
    json!({
        "role": "tool",
        "tool_call_id": answer.id(),
        "content": answer.text(),
    })
}
