//! Decodes a whole text into a [`Message`].
//!
//! ```text
//!   text ── SSE? ── yes ─► every event ─► StreamDecoder ─► Message
//!            └───── no ──► a plain batch in the neutral form? ── yes ─► Message
//!                           └──────────────────────────── no ──► JSON ─► detect ─► the format's own reader ─► Message
//! ```

mod anthropic;
mod gemini;
mod neutral;
mod openai_chat;
mod openai_responses;
mod plain;

pub(crate) use anthropic::{is_text as is_text_block, tool_use};
pub(crate) use gemini::{function_call, text_part};
pub(crate) use neutral::{call as neutral_call, calls as neutral_calls};
pub(crate) use openai_responses::{
    is_call as is_response_call, is_text as is_response_text, output_calls, output_item,
};

use crate::{
    DecodeError, Format, Message, StreamDecoder, detect,
    found::Found,
    json,
    sse::{SseEvent, looks_like_sse, sse_events},
};
use serde_json::Value;

/// Reads a model's answer: whole response JSON, SSE text, or just the part with the calls (the assistant
/// message, the `output` array, a list of content blocks, a Gemini `Content`).
///
/// Without a format, the format is detected. A response without tool calls is an empty [`Message`], not an error:
/// the model is done. The text beside the calls is kept ([`Message::text`]). If a provider offers several answers (`choices`, `candidates`), the first is read. Calls of
/// tools that the provider runs itself are skipped.
///
/// SSE text that breaks off gives the calls received so far, the last one perhaps with broken arguments;
/// [`Message::is_cut`] is then true.
///
/// # Errors
/// [`DecodeError`] when the text cannot be read as an answer at all. Broken arguments are not an error: they stay
/// text, and the engine answers that call alone.
///
/// # Examples
/// ```
/// use toolyard_wire::{DecodeError, decode};
/// let blocks = r#"[{"type":"tool_use","id":"toolu_1","name":"now","input":{}}]"#;
/// assert_eq!(decode(blocks, None)?.calls()[0].id.as_str(), "toolu_1");
/// assert!(decode(r#"{"role":"assistant","content":"hello"}"#, None)?.is_empty());
/// assert!(matches!(decode("{", None), Err(DecodeError::Truncated { .. })));
/// # Ok::<(), DecodeError>(())
/// ```
pub fn decode(text: &str, format: Option<Format>) -> Result<Message, DecodeError> {
    let text = json::bounded(text)?;
    if looks_like_sse(text) {
        let format = format.map_or_else(|| detect::of_stream(text), Ok)?;
        return sse(text, format);
    }
    if matches!(format, None | Some(Format::Neutral))
        && let Some(drafts) = plain::calls(text)
    {
        return Ok(Message::of(Format::Neutral, drafts.into()));
    }
    let value = json::parse(text)?;
    let format = format.map_or_else(|| detect::of_value(&value), Ok)?;
    json::refuse_provider_error(&value)?;
    match chunks(value) {
        Ok(events) => stream(events, format),
        Err(value) => Ok(Message::of(format, whole(value, format)?)),
    }
}

fn whole(value: Value, format: Format) -> Result<Found, DecodeError> {
    match format {
        Format::Neutral => neutral::calls(value),
        Format::OpenAiChat => openai_chat::calls(value),
        Format::OpenAiResponses => openai_responses::calls(value),
        Format::Anthropic => anthropic::calls(value),
        Format::Gemini => gemini::calls(value),
    }
}

/// The events of a stream that came as JSON instead of SSE: Gemini streams an array unless asked for SSE, and a
/// log may hold single chunks. Returns the value in `Err` if it is not a stream.
fn chunks(value: Value) -> Result<Vec<Value>, Value> {
    match value {
        Value::Array(items) if items.iter().any(is_chunk) => Ok(items),
        value if is_chunk(&value) && value["candidates"].is_null() => Ok(vec![value]),
        value => Err(value),
    }
}

fn is_chunk(value: &Value) -> bool {
    match detect::of_event(value) {
        Some(Format::OpenAiChat) => value["choices"][0].get("delta").is_some(),
        Some(Format::Gemini) => value.get("candidates").is_some(),
        Some(Format::OpenAiResponses | Format::Anthropic) => true,
        Some(Format::Neutral) | None => false,
    }
}

fn stream(events: Vec<Value>, format: Format) -> Result<Message, DecodeError> {
    let mut decoder = StreamDecoder::new(format);
    for event in events {
        decoder.push_value(event)?;
    }
    decoder.finish();
    Ok(decoder.into_message())
}

fn sse(text: &str, format: Format) -> Result<Message, DecodeError> {
    let mut decoder = StreamDecoder::new(format);
    for (index, event) in sse_events(text).enumerate() {
        match decoder.push(&event.data) {
            Ok(_) => {}
            Err(error) if is_cut(&event, &error) => return cut(decoder, error.in_event(index + 1)),
            Err(error) => return Err(error.in_event(index + 1)),
        }
    }
    if decoder.is_blank() {
        return Err(DecodeError::Empty);
    }
    decoder.finish();
    Ok(decoder.into_message())
}

/// Whether the error means that the text ends inside this event, rather than that the event is broken.
pub(crate) fn is_cut(event: &SseEvent<'_>, error: &DecodeError) -> bool {
    !event.ended && matches!(error, DecodeError::Truncated { .. } | DecodeError::NotJson { .. })
}

/// The message as received before the text broke off, or the error if it has no call.
fn cut(mut decoder: StreamDecoder, error: DecodeError) -> Result<Message, DecodeError> {
    decoder.finish();
    let mut message = decoder.into_message();
    message.set_cut();
    if message.is_empty() { Err(error) } else { Ok(message) }
}

/// The error for a value that is not of the expected format.
fn wrong_format(format: Format, value: &Value) -> DecodeError {
    DecodeError::WrongFormat { format, seen: json::describe(value) }
}

#[cfg(test)]
mod tests;
