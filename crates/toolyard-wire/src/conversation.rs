//! Calls and their outcomes as a conversation keeps them: the model's message with the calls, and the answer.
//!
//! ```text
//!   Message ────────┬─► assistant messages   the calls as the model wrote them
//!   outcomes ───────┴─► tool messages        one result per call: what encode gives
//! ```

mod assistant;
mod mismatch;

pub use mismatch::Mismatch;

use crate::{Format, Message, encode};
use serde_json::Value;
use toolyard_core::Outcome;

/// Two neighbours in a conversation: the model's calls, and what they came to.
///
/// Both are lists of what a request carries in a row: messages (`openai-chat`, `anthropic`), items
/// (`openai-responses`) or contents (`gemini`). `neutral` has one object each, `{"calls":[…]}` and `{"results":[…]}`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ToolMessages {
    /// The model's message with the calls.
    pub assistant: Vec<Value>,
    /// What answers them.
    pub tool: Vec<Value>,
}

impl ToolMessages {
    /// All of it, in the order in which a request carries it.
    pub fn into_messages(self) -> Vec<Value> {
        self.assistant.into_iter().chain(self.tool).collect()
    }
}

/// Writes calls and their outcomes as messages for the next request, for one who keeps the conversation by itself:
/// the model's message with the calls, and what answers them, under the ids of the calls. Without calls there are
/// none.
///
/// The calls come from a [`decode`](crate::decode)d message, or from [`Message::new`] where they were made by hand;
/// the outcomes are theirs in call order, as a batch gives them. What came with a call and belongs to it goes back
/// with it where `to` is the format it came in (Gemini's `thoughtSignature`, the `status` of OpenAI Responses), and
/// so does the lack of an id. What the model said beside its calls is not known here: who has the provider's own
/// message sends that, and of this only [`tool`](ToolMessages::tool).
///
/// # Errors
/// [`Mismatch`] when calls and outcomes do not fit each other, or the calls not the format: a provider would refuse
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
    let tool = match encode(message, outcomes, to) {
        Value::Array(messages) => messages,
        message => vec![message],
    };
    Ok(ToolMessages { assistant: assistant::messages(message, to), tool })
}

#[cfg(test)]
mod tests;
