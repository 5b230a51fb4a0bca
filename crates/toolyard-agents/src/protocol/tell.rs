//! What an agent is told.

use super::{PROTOCOL, Refused};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Value, json};
use toolyard::{AgentPath, CallId, Outcome, ToolSpec};
use toolyard_wire::ToolResponse;

/// One line for an agent (AG-1, AG-2).
#[derive(Debug)]
pub enum Tell<'a> {
    /// The answer to a call. `meta` if the agent wants to hear more of it.
    Response {
        /// What became of the call.
        outcome: &'a Outcome,
        /// Whether all that is known of it is said.
        meta: bool,
    },
    /// Output that comes before the end of its call.
    Delta {
        /// The call.
        tool_call_id: &'a CallId,
        /// The piece.
        text: &'a str,
    },
    /// The answer to a greeting.
    Welcome(Welcome<'a>),
    /// A line was not understood, and did nothing.
    Error {
        /// What is wrong with it.
        refused: &'a Refused,
        /// Its number, from 1.
        line: u64,
    },
    /// The agent is to end.
    Shutdown {
        /// The time it has, in milliseconds.
        grace_ms: u64,
    },
}

/// What an agent is told of itself.
#[derive(Debug)]
pub struct Welcome<'a> {
    /// Who it is.
    pub agent: &'a AgentPath,
    /// What it was started with.
    pub input: Option<&'a Value>,
    /// The tools that it may call.
    pub tools: &'a [ToolSpec],
}

impl Tell<'_> {
    /// Appends the line, with its line end.
    ///
    /// # Examples
    /// ```
    /// use toolyard::{Call, Outcome, Routing, ToolOutput};
    /// use toolyard_agents::protocol::Tell;
    /// let call = Call::new("c1", "Echo", "{}");
    /// let outcome = Outcome::new(&call, Routing::Read, Ok(ToolOutput::text("hello")));
    /// let mut line = Vec::new();
    /// Tell::Response { outcome: &outcome, meta: false }.write(&mut line);
    /// let expect = r#"{"op":"tool_response","tool_call_id":"c1","ok":true,"result":{"content":[{"type":"text","text":"hello"}],"text":"hello"}}"#;
    /// assert_eq!(String::from_utf8(line).unwrap(), format!("{expect}\n"));
    /// ```
    pub fn write(&self, line: &mut Vec<u8>) {
        serde_json::to_writer(&mut *line, self).expect("what is told can be written as JSON");
        line.push(b'\n');
    }
}

impl Serialize for Tell<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        match self {
            Self::Response { outcome, meta } => {
                map.serialize_entry("op", "tool_response")?;
                ToolResponse { outcome, meta: *meta }.write(&mut map)?;
            }
            Self::Delta { tool_call_id, text } => {
                map.serialize_entry("op", "tool_delta")?;
                map.serialize_entry("tool_call_id", tool_call_id.as_str())?;
                map.serialize_entry("text", text)?;
            }
            Self::Welcome(welcome) => {
                map.serialize_entry("op", "welcome")?;
                map.serialize_entry("protocol", &PROTOCOL)?;
                map.serialize_entry("agent", welcome.agent.as_str())?;
                if let Some(input) = welcome.input {
                    map.serialize_entry("input", input)?;
                }
                let tools: Vec<_> = welcome.tools.iter().map(declared).collect();
                map.serialize_entry("tools", &tools)?;
            }
            Self::Error { refused: Refused { message, op, tool_call_id }, line } => {
                map.serialize_entry("op", "error")?;
                map.serialize_entry("message", message)?;
                map.serialize_entry("line", line)?;
                if let Some(op) = op {
                    map.serialize_entry("refused", op)?;
                }
                if let Some(id) = tool_call_id {
                    map.serialize_entry("tool_call_id", id.as_str())?;
                }
            }
            Self::Shutdown { grace_ms } => {
                map.serialize_entry("op", "shutdown")?;
                map.serialize_entry("grace_ms", grace_ms)?;
            }
        }
        map.end()
    }
}

/// How a tool is declared.
fn declared(spec: &ToolSpec) -> Value {
    json!({
        "name": spec.name,
        "description": spec.description,
        "input_schema": spec.input_schema,
        "side_effects": spec.side_effects.to_string(),
    })
}

#[cfg(test)]
mod tests;
