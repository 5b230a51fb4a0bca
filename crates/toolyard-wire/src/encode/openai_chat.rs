//! OpenAI Chat: a `tool` message per call. It carries text alone and has no mark for errors.

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
