//! Decodes a stream into calls while it runs, each as soon as it is complete.
//!
//! ```text
//!   event data ─► StreamDecoder ─┬─ open calls, by index: text so far
//!                                ├─► the calls that this event completed
//!                                └─► Message, with all calls so far
//! ```
//!
//! Owns the fragments. Knows nothing of sockets or SSE lines: [`sse_events`](crate::sse_events) and
//! [`SseSplitter`](crate::SseSplitter) split those.

mod anthropic;
mod gemini;
mod neutral;
mod openai_chat;
mod openai_responses;
mod partial_args;

use crate::{
    DecodeError, Format, Message,
    bounds::BODY_BYTES_MAX,
    detect,
    found::{Found, Text},
    json, whole_number,
};
use serde_json::Value;
use toolyard_core::Call;

/// Decodes one streamed answer, event by event.
///
/// # Examples
/// ```
/// use toolyard_wire::{Format, StreamDecoder};
/// let mut stream = StreamDecoder::new(Format::Anthropic);
/// let start = r#"{"type":"content_block_start","index":0,
///     "content_block":{"type":"tool_use","id":"toolu_1","name":"now","input":{}}}"#;
/// assert!(stream.push(start)?.is_empty());
/// let calls = stream.push(r#"{"type":"content_block_stop","index":0}"#)?;
/// assert_eq!(calls[0].name.as_ref(), "now");
/// assert!(stream.finish().is_empty());
/// # Ok::<(), toolyard_wire::DecodeError>(())
/// ```
#[derive(Debug)]
pub struct StreamDecoder {
    fragments: Fragments,
    message: Message,
    bytes: usize,
    /// Whether no event had data so far.
    is_blank: bool,
}

#[derive(Debug)]
enum Fragments {
    Neutral(neutral::Lines),
    OpenAiChat(openai_chat::Deltas),
    OpenAiResponses(openai_responses::Items),
    Anthropic(anthropic::Blocks),
    Gemini(Box<gemini::Parts>),
}

/// Assembles the calls of one format's stream. Complete calls are pushed to `out`, in order.
trait Assemble {
    /// Processes one event.
    fn event(&mut self, event: Value, out: &mut Found) -> Result<(), DecodeError>;

    /// The provider says that the stream is over (`[DONE]`): open calls are complete.
    fn done(&mut self, _out: &mut Found) {}

    /// The stream has ended. Open calls were cut off, and are pushed with arguments that do not parse.
    fn cut(&mut self, _out: &mut Found) {}
}

impl StreamDecoder {
    /// Creates a decoder for one stream of this format. In the neutral format each event is a call or a batch.
    pub fn new(format: Format) -> Self {
        let fragments = match format {
            Format::Neutral => Fragments::Neutral(neutral::Lines),
            Format::OpenAiChat => Fragments::OpenAiChat(openai_chat::Deltas::default()),
            Format::OpenAiResponses => Fragments::OpenAiResponses(openai_responses::Items::default()),
            Format::Anthropic => Fragments::Anthropic(anthropic::Blocks::default()),
            Format::Gemini => Fragments::Gemini(Box::default()),
        };
        Self { fragments, message: Message::empty(format), bytes: 0, is_blank: true }
    }

    /// Takes the data of one event and returns the calls it completed, in call order. Blank data does nothing.
    ///
    /// # Errors
    /// [`DecodeError`] when the event is not JSON or not of this format, when it is an error of the provider,
    /// or when the stream is larger than [`BODY_BYTES_MAX`]. Earlier calls stay, and so do those that this event
    /// completed before the error; [`finish`](Self::finish) returns those still open.
    pub fn push(&mut self, event_data: &str) -> Result<Vec<Call>, DecodeError> {
        self.bytes = self.bytes.saturating_add(event_data.len());
        if self.bytes > BODY_BYTES_MAX {
            return Err(DecodeError::TooLarge { max: BODY_BYTES_MAX });
        }
        let data = event_data.trim_ascii();
        self.is_blank &= data.is_empty();
        match data {
            "" => Ok(Vec::new()),
            "[DONE]" => {
                let mut found = Found::default();
                self.fragments.assembler().done(&mut found);
                Ok(self.add(found))
            }
            data => self.push_value(json::parse(data)?),
        }
    }

    pub(crate) fn push_value(&mut self, event: Value) -> Result<Vec<Call>, DecodeError> {
        json::refuse_provider_error(&event)?;
        let format = self.message.format();
        if detect::of_event(&event).is_some_and(|seen| seen != format) {
            let seen = format!("a stream event: {}", json::describe(&event));
            return Err(DecodeError::WrongFormat { format, seen });
        }
        let mut found = Found::default();
        let read = self.fragments.assembler().event(event, &mut found);
        // An event may complete a call and be wrong after that; the call still belongs to the message.
        let calls = self.add(found);
        read.map(|()| calls)
    }

    /// Ends the stream and returns the calls that were still open. Part of their arguments is missing, so they hold
    /// text that does not parse, and the engine answers them `invalid_input`. At the end of a stream that was not
    /// cut off no call is open.
    pub fn finish(&mut self) -> Vec<Call> {
        let mut found = Found::default();
        self.fragments.assembler().cut(&mut found);
        if !found.drafts.is_empty() {
            self.message.set_cut();
        }
        self.add(found)
    }

    /// Whether the stream had no data at all, as opposed to an answer without calls.
    pub(crate) fn is_blank(&self) -> bool {
        self.is_blank
    }

    /// Marks the stream as broken off, though perhaps not inside a call.
    pub(crate) fn set_cut(&mut self) {
        self.message.set_cut();
    }

    /// The calls so far as a message, for encoding their results.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// The calls so far as a message, by value. Calls that are still open are lost: [`finish`](Self::finish) first.
    pub fn into_message(self) -> Message {
        self.message
    }

    fn add(&mut self, found: Found) -> Vec<Call> {
        let before = self.message.calls().len();
        for text in found.texts {
            self.message.push_piece(Text { calls_before: before + text.calls_before, ..text });
        }
        let add = |draft| self.message.push(draft).clone();
        found.drafts.into_iter().map(add).collect()
    }
}

impl Fragments {
    fn assembler(&mut self) -> &mut dyn Assemble {
        match self {
            Self::Neutral(lines) => lines,
            Self::OpenAiChat(deltas) => deltas,
            Self::OpenAiResponses(items) => items,
            Self::Anthropic(blocks) => blocks,
            Self::Gemini(parts) => parts.as_mut(),
        }
    }
}

/// The index of a streamed call, within its bound. A missing one is 0, because some servers leave it out.
fn index(value: Option<Value>, place: &'static str) -> Result<u64, DecodeError> {
    let index = value.as_ref().and_then(whole_number).unwrap_or_default();
    let max = crate::bounds::FRAGMENT_INDEX_MAX;
    if index > max {
        return Err(DecodeError::IndexTooLarge { place, index, max });
    }
    Ok(index)
}

#[cfg(test)]
mod tests;
