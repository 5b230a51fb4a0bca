//! Writes calls and their outcomes as a conversation keeps them: the model's message with the calls, and the answer.
//!
//! ```text
//!   Message ────────┬─► assistant messages   text and calls as the model wrote them
//!   outcomes ───────┴─► tool messages        one result per call, as `encode` writes them
//! ```

mod assistant;
mod mismatch;

pub use mismatch::Mismatch;

use crate::{Format, Message, encode};
use serde_json::Value;
use toolyard_core::Outcome;

/// Two neighbouring parts of a conversation: the model's calls, and their results.
///
/// Both are lists of the entries of a request: messages (`openai-chat`, `anthropic`), items (`openai-responses`)
/// or contents (`gemini`). `neutral` has one object each, `{"calls":[…],"text":…}` and `{"results":[…]}`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolMessages {
    /// The model's message with the calls.
    pub assistant: Vec<Value>,
    /// The messages that answer them.
    pub tool: Vec<Value>,
}

impl ToolMessages {
    /// Both parts, in the order in which a request carries them.
    pub fn into_messages(self) -> Vec<Value> {
        self.assistant.into_iter().chain(self.tool).collect()
    }
}

/// Writes calls and their outcomes as messages for the next request.
///
/// For callers that keep the conversation themselves: the model's message with the calls, and the messages that
/// answer them under the calls' ids. Without calls there are no messages.
///
/// The calls come from a [`decode`](crate::decode)d message, or from [`Message::new`] if they were made by hand; the
/// outcomes are in call order, as a batch returns them. If `to` is the format in which the calls came, fields that
/// belong to a call go back with it (Gemini's `thoughtSignature`, the `status` of OpenAI Responses), and a missing
/// id stays missing; an empty one becomes a generated one in both messages.
///
/// The text that the model wrote beside its calls ([`Message::text`]) goes back with them: where it stood among them,
/// or before them in a format that has no such order (`openai-chat`, `neutral`); blank text is left out. Nothing else
/// that stood there is known here, neither reasoning nor calls that the provider ran itself: a caller that needs those
/// sends the provider's own message, and uses only [`tool`](ToolMessages::tool) of these.
///
/// # Errors
/// [`Mismatch`] when calls and outcomes do not match, or a call does not fit the format: a provider would refuse
/// such messages, or the model would read one call's result as another's.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::{Call, Outcome, Routing, ToolOutput};
/// use toolyard_wire::{Format, Message, build_tool_result_messages};
/// let call = Call::new("call_1", "weather", json!({"city": "Oslo"}));
/// let outcomes = [Outcome::new(&call, Routing::Read, Ok(ToolOutput::text("sunny")))];
/// let message = Message::new(Format::OpenAiChat, vec![call]);
/// let messages = build_tool_result_messages(&message, &outcomes, Format::OpenAiChat)?;
/// assert_eq!(messages.into_messages(), [
///     json!({"role": "assistant", "content": null, "tool_calls": [
///         {"id": "call_1", "type": "function",
///          "function": {"name": "weather", "arguments": "{\"city\":\"Oslo\"}"}}]}),
///     json!({"role": "tool", "tool_call_id": "call_1", "content": "sunny"}),
/// ]);
/// # Ok::<(), toolyard_wire::Mismatch>(())
/// ```
pub fn build_tool_result_messages(
    message: &Message,
    outcomes: &[Outcome],
    to: Format,
) -> Result<ToolMessages, Mismatch> {
    mismatch::check(message.calls(), outcomes, to)?;
    if message.is_empty() {
        return Ok(ToolMessages { assistant: Vec::new(), tool: Vec::new() });
    }
    let message = message.without_empty_ids();
    let tool = match encode(&message, outcomes, to) {
        Value::Array(messages) => messages,
        message => vec![message],
    };
    Ok(ToolMessages { assistant: assistant::messages(&message, to), tool })
}

#[cfg(test)]
mod tests;
