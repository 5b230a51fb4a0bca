//! OpenAI Chat: a `tool` message per call. It carries only text and has no error flag.

use super::answer::Answer;
use serde_json::{Value, json};

pub(super) fn messages(answers: &[Answer<'_>]) -> Value {
    let message = |answer: &Answer<'_>| {
        json!({
            "role": "tool",
            "tool_call_id": answer.id(),
            "content": answer.text(),
        })
    };
    answers.iter().map(message).collect()
}
