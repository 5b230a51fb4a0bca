//! Provider formats in and out: decodes a model's answer into calls, and encodes their outcomes as the part of
//! the next request that carries them. The text beside the calls is kept and can go back with them.
//!
//! ```text
//!   response JSON ──┐                                    ┌─ OpenAI Chat       [{"role":"tool"}…]
//!   SSE text ───────┼► decode ─► Message ─► batch        ├─ OpenAI Responses  [function_call_output…]
//!   one event ──────┤   ▲          │          │          ├─ Anthropic         user message of tool_result
//!   pieces of SSE ──┘   │          │       outcomes ─►───┼─ Gemini            Content of functionResponse
//!     StreamDecoder ────┤          └─────► encode ───────┴─ neutral           {"results":[…]}
//!     SseDecoder ───────┘
//!
//!   JSON lines ─► Episode ─► turns          ToolSpec ─► definitions ─► tools of a request (NameMap)
//!
//!   any wire ◄─► CallMeta, ResultMeta       Outcome ◄─► outcome_to_json, outcome_from_json
//! ```
//!
//! Owns the shapes, the providers' and its own, and nothing else: no I/O, no clock, no opinion on what a call may do.
//! Arguments are not parsed here: arguments that a provider sends as text stay text, so that broken JSON makes that
//! one call `invalid_input` and never fails the batch.
//!
//! # Examples
//! ```
//! use toolyard_core::{Outcome, Routing, ToolOutput};
//! use toolyard_wire::{Format, decode, encode};
//! let body = r#"{"role":"assistant","tool_calls":[
//!     {"id":"call_1","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Paris\"}"}}]}"#;
//! let message = decode(body, None)?;
//! assert_eq!(message.format(), Format::OpenAiChat);
//!
//! let sunny = Outcome::new(&message.calls()[0], Routing::Read, Ok(ToolOutput::text("sunny")));
//! let next = encode(&message, &[sunny], message.format());
//! assert_eq!(next[0]["tool_call_id"], "call_1");
//! # Ok::<(), toolyard_wire::DecodeError>(())
//! ```

#[cfg(test)]
mod arbitrary;
mod arguments;
pub mod bounds;
mod conversation;
mod decode;
mod definitions;
mod detect;
mod draft;
mod encode;
pub mod episodes;
mod error;
mod field_error;
mod fields;
mod format;
mod found;
mod ids;
mod json;
mod message;
mod meta;
mod names;
mod outcome;
mod response;
mod sse;
mod stream;
pub mod wording;

pub use conversation::{Mismatch, ToolMessages, build_tool_result_messages};
pub use decode::decode;
pub use definitions::{Dialect, UnknownDialect, definitions};
pub use detect::detect;
pub use encode::{Results, encode};
pub use episodes::{ClassHint, Episode, EpisodeError, EpisodeTool, TurnResults};
pub use error::DecodeError;
pub use field_error::FieldError;
pub use format::{Format, UnknownFormat};
pub use message::Message;
pub use meta::{CallMeta, FailureMeta, META_PREFIX, ResultMeta};
pub use names::{NameMap, NameRule};
pub use outcome::{error_to_json, outcome_from_json, outcome_to_json};
pub use response::ToolResponse;
pub use sse::{SseDecoder, SseEvent, SseEvents, SseSplitter, begins_like_sse, sse_events};
pub use stream::StreamDecoder;
pub use toolyard_core::whole_number;
