//! Detects the format of a response by its shape.
//!
//! ```text
//!   choices, tool_calls ─ openai-chat     output, …_call items ─ openai-responses
//!   candidates, parts ─── gemini          blocks, tool_use ───── anthropic         calls ─ neutral
//! ```

use crate::{
    DecodeError, Format,
    json::{self, Fields},
    sse::{looks_like_sse, sse_events},
};
use serde_json::Value;

/// Detects the format of a response: whole JSON, a part of it, or SSE text.
///
/// # Errors
/// Those of [`decode`](crate::decode), of which this is the first half: not JSON, too large, of no known format,
/// or a provider's error.
///
/// # Examples
/// ```
/// use toolyard_wire::{Format, detect};
/// assert_eq!(detect(r#"{"candidates":[]}"#), Ok(Format::Gemini));
/// assert_eq!(detect("data: {\"type\":\"message_start\"}\n\n"), Ok(Format::Anthropic));
/// assert!(detect(r#"{"hello":1}"#).is_err());
/// ```
pub fn detect(text: &str) -> Result<Format, DecodeError> {
    let text = json::bounded(text)?;
    if looks_like_sse(text) {
        return of_stream(text);
    }
    of_value(&json::parse(text)?)
}

/// The format of SSE text, from the first event whose shape decides it.
pub(crate) fn of_stream(text: &str) -> Result<Format, DecodeError> {
    let mut format = StreamFormat::default();
    for (index, event) in sse_events(text).enumerate() {
        if let Some(found) = format.observe(&event.data).map_err(|error| error.in_event(index + 1))? {
            return Ok(found);
        }
    }
    Err(format.unknown())
}

/// Detects the format of SSE text event by event.
#[derive(Debug, Default)]
pub(crate) struct StreamFormat {
    /// A description of the first event whose shape did not decide the format.
    seen: Option<String>,
}

impl StreamFormat {
    /// The format, if this event decides it.
    pub(crate) fn observe(&mut self, data: &str) -> Result<Option<Format>, DecodeError> {
        if matches!(data.trim_ascii(), "" | "[DONE]") {
            return Ok(None);
        }
        let value = json::parse(data)?;
        if let Some(format) = of_event(&value) {
            return Ok(Some(format));
        }
        json::refuse_provider_error(&value)?;
        self.seen.get_or_insert_with(|| json::describe(&value));
        Ok(None)
    }

    /// The error of a stream in which no event decided the format.
    pub(crate) fn unknown(&self) -> DecodeError {
        let seen = self.seen.as_ref();
        let seen = seen.map_or("SSE text without data".to_owned(), |seen| format!("SSE events with {seen}"));
        DecodeError::UnknownFormat { seen }
    }
}

/// The format of a whole value.
pub(crate) fn of_value(value: &Value) -> Result<Format, DecodeError> {
    json::refuse_provider_error(value)?;
    let found = match value {
        Value::Object(fields) if fields.contains_key("turns") && !fields.contains_key("calls") => {
            return Err(DecodeError::Episode);
        }
        Value::Object(fields) => of_message(fields).or_else(|| of_item(fields)),
        Value::Array(items) => items
            .iter()
            .filter_map(Value::as_object)
            .find_map(|item| of_event_fields(item).or_else(|| of_item(item))),
        _ => None,
    };
    found.ok_or_else(|| DecodeError::UnknownFormat { seen: json::describe(value) })
}

/// The format of one event of a stream.
pub(crate) fn of_event(value: &Value) -> Option<Format> {
    of_event_fields(value.as_object()?)
}

fn of_event_fields(fields: &Fields) -> Option<Format> {
    const ANTHROPIC: [&str; 7] = [
        "message_start",
        "message_delta",
        "message_stop",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "ping",
    ];
    let kind = json::text(fields, "type");
    if kind.starts_with("response.") {
        return Some(Format::OpenAiResponses);
    }
    if ANTHROPIC.contains(&kind) {
        return Some(Format::Anthropic);
    }
    of_envelope(fields)
}

/// The format by the envelope of a whole response, which two formats also use for the events of a stream.
fn of_envelope(fields: &Fields) -> Option<Format> {
    let has = |key| fields.contains_key(key);
    if has("choices") {
        return Some(Format::OpenAiChat);
    }
    // A refused prompt and the last event of a stream have no candidates.
    let gemini = ["candidates", "promptFeedback", "usageMetadata"];
    gemini.into_iter().any(has).then_some(Format::Gemini)
}

fn of_message(fields: &Fields) -> Option<Format> {
    let has = |key| fields.contains_key(key);
    if let Some(format) = of_envelope(fields) {
        return Some(format);
    }
    if has("output") && !has("call_id") {
        return Some(Format::OpenAiResponses);
    }
    if has("calls") {
        return Some(Format::Neutral);
    }
    if has("tool_calls") {
        return Some(Format::OpenAiChat);
    }
    if has("parts") {
        return Some(Format::Gemini);
    }
    match fields.get("content") {
        Some(Value::Array(blocks)) => Some(of_blocks(blocks)),
        Some(Value::String(_) | Value::Null) if has("role") => Some(Format::OpenAiChat),
        _ => None,
    }
}

/// A message with a list of contents is Anthropic's, but a message *item* of Responses looks almost the same.
fn of_blocks(blocks: &[Value]) -> Format {
    match blocks.first().and_then(|block| block["type"].as_str()) {
        Some("output_text" | "refusal") => Format::OpenAiResponses,
        _ => Format::Anthropic,
    }
}

/// The format of one item of a list: an output item, a content block, a part, a tool call.
fn of_item(fields: &Fields) -> Option<Format> {
    const BLOCKS: [&str; 4] = ["text", "thinking", "redacted_thinking", "container_upload"];
    const ITEMS: [&str; 4] = ["message", "reasoning", "compaction", "mcp_list_tools"];
    let has = |key| fields.contains_key(key);
    if has("functionCall") || has("thoughtSignature") {
        return Some(Format::Gemini);
    }
    let kind = json::text(fields, "type");
    if (kind == "function" && has("function")) || (kind == "custom" && has("custom")) {
        return Some(Format::OpenAiChat);
    }
    if BLOCKS.contains(&kind) || kind.ends_with("tool_use") || kind.ends_with("tool_result") {
        return Some(Format::Anthropic);
    }
    if ITEMS.contains(&kind) || kind.ends_with("_call") || kind.ends_with("_output") {
        return Some(Format::OpenAiResponses);
    }
    if kind.is_empty() && has("function") {
        return Some(Format::OpenAiChat);
    }
    if kind.is_empty() && has("name") && (has("call_id") || has("arguments")) {
        return Some(Format::Neutral);
    }
    // A part of a Gemini `Content` that is only text, or a call in snake case.
    let talk = kind.is_empty() && has("text") || has("function_call") && !has("role");
    talk.then_some(Format::Gemini)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: Format) {
        assert_eq!(detect(text), Ok(expect), "{text}");
    }

    #[test]
    fn whole_responses_are_distinguished() {
        check(r#"{"choices":[{"message":{}}]}"#, Format::OpenAiChat);
        check(r#"{"object":"response","output":[]}"#, Format::OpenAiResponses);
        check(r#"{"type":"message","role":"assistant","content":[]}"#, Format::Anthropic);
        check(r#"{"candidates":[]}"#, Format::Gemini);
        check(r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#, Format::Gemini);
        check(r#"{"calls":[]}"#, Format::Neutral);
    }

    #[test]
    fn parts_of_responses_are_distinguished() {
        check(r#"{"role":"assistant","content":"hi"}"#, Format::OpenAiChat);
        check(r#"{"role":"assistant","content":null,"tool_calls":[]}"#, Format::OpenAiChat);
        check(r#"[{"id":"c","type":"function","function":{}}]"#, Format::OpenAiChat);
        check(r#"[{"type":"reasoning"},{"type":"function_call"}]"#, Format::OpenAiResponses);
        check(r#"{"type":"function_call"}"#, Format::OpenAiResponses);
        check(r#"[{"type":"text","text":"x"},{"type":"tool_use"}]"#, Format::Anthropic);
        check(r#"{"role":"assistant","content":[{"type":"tool_use"}]}"#, Format::Anthropic);
        check(r#"{"role":"model","parts":[]}"#, Format::Gemini);
        check(r#"[{"text":"x"},{"functionCall":{"name":"f"}}]"#, Format::Gemini);
        check(r#"[{"call_id":"c","name":"f"}]"#, Format::Neutral);
    }

    #[test]
    fn streams_are_distinguished() {
        check("data: {\"choices\":[]}\n\n", Format::OpenAiChat);
        check("event: x\ndata: {\"type\":\"response.created\"}\n\n", Format::OpenAiResponses);
        check(": hi\r\n\r\ndata: {\"type\":\"ping\"}\r\n\r\n", Format::Anthropic);
        check("data: {\"candidates\":[]}\n\n", Format::Gemini);
        check(r#"[{"candidates":[]},{"candidates":[]}]"#, Format::Gemini);
    }

    #[test]
    fn an_unknown_shape_says_what_was_seen_and_what_there_is() {
        let error = detect(r#"{"hello":1,"world":2}"#).unwrap_err().to_string();
        assert_eq!(
            error,
            "unknown format: found an object with the keys hello, world; the formats are neutral, openai-chat, \
             openai-responses, anthropic and gemini, name one with --from"
        );
    }

    #[test]
    fn an_episode_is_sent_to_its_own_reader() {
        assert_eq!(detect(r#"{"id":"e","turns":[]}"#), Err(DecodeError::Episode));
    }
}
