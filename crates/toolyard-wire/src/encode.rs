//! Encodes outcomes as the part of the next request that answers the calls.
//!
//! ```text
//!   Message + outcomes ─► one Answer per call, in call order ─► the format's own writer ─► JSON
//! ```
//!
//! Owns the shapes, and ensures for every format that each call is answered exactly once, whatever happened.

mod answer;
mod anthropic;
mod gemini;
mod neutral;
mod openai_chat;
mod openai_responses;
mod results;

use crate::{Format, Message};
pub(crate) use answer::{Answer, answers};
pub use results::Results;
use serde_json::Value;
use toolyard_core::Outcome;

/// Writes the results of a message's calls in the form that the next request needs:
///
/// - `openai-chat`: an array of `{"role":"tool",…}` messages;
/// - `openai-responses`: an array of `function_call_output` and `custom_tool_call_output` items;
/// - `anthropic`: one user message with every `tool_result`;
/// - `gemini`: one user `Content` with every `functionResponse`;
/// - `neutral`: `{"results":[{call_id, provider_id?, name, status, content, structured?, error?, passthrough?}…]}`, each
///   error as [`error_to_json`](crate::error_to_json) writes it.
///
/// There is one result per call, in call order. Outcomes are matched to calls by position, and by id if they are
/// out of order; a call without an outcome is answered with an error ([`NO_RESULT`](crate::wording::NO_RESULT)).
/// Images are included if the format carries them; elsewhere, and in errors, the text names them instead.
///
/// All of them are in memory together; [`Results`] writes them one at a time.
///
/// `to` may differ from the format in which the calls came. Calls then keep their ids, generated ones included,
/// and fields that only the first format knows are left out.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::{CallError, ErrorKind, Outcome, Routing};
/// use toolyard_wire::{Format, decode, encode};
/// let message = decode(r#"{"calls":[{"call_id":"c","name":"rm","arguments":{}}]}"#, None)?;
/// let denied = CallError::new(ErrorKind::UserDenied, "User denied this operation.").with_advice("");
/// let outcome = Outcome::new(&message.calls()[0], Routing::ShortCircuit, Err(denied));
/// assert_eq!(encode(&message, &[outcome], Format::Anthropic), json!({
///     "role": "user",
///     "content": [{"type": "tool_result", "tool_use_id": "c", "is_error": true,
///                  "content": "User denied this operation."}],
/// }));
/// # Ok::<(), toolyard_wire::DecodeError>(())
/// ```
pub fn encode(message: &Message, outcomes: &[Outcome], to: Format) -> Value {
    Results::new(message, outcomes, to).to_value()
}

#[cfg(test)]
mod tests;
