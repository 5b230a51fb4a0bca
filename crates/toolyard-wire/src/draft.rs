//! A call as a decoder found it, before it gets its internal id.

use crate::json::Fields;
use serde_json::{Value, json};
use std::time::Duration;
use toolyard_core::Arguments;

/// A call as found in a message or a stream.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// The id under which the result goes back, empty if the provider left it empty; `None` if it sent none.
    pub(crate) id: Option<String>,
    /// The provider's own second id.
    pub(crate) provider_id: Option<String>,
    /// The name; empty if the provider sent none, and then the engine answers that it knows no such tool.
    pub(crate) name: String,
    pub(crate) arguments: Arguments,
    /// Whether the call is to a custom tool, whose input is free text.
    pub(crate) custom: bool,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) timeout: Option<Duration>,
    /// All remaining fields.
    pub(crate) passthrough: Fields,
}

impl Draft {
    /// The id, if the provider gave the call one.
    pub(crate) fn own_id(&self) -> Option<&str> {
        self.id.as_deref().filter(|id| !id.is_empty())
    }
}

/// The arguments of a complete call. Missing, null and wholly empty arguments become `{}`; text stays text, even
/// where the provider promises an object.
pub(crate) fn arguments(value: Option<Value>) -> Arguments {
    match value {
        None | Some(Value::Null) => Arguments::empty(),
        Some(Value::String(text)) if text.is_empty() => Arguments::empty(),
        Some(Value::String(text)) => text.into(),
        Some(value) => value.into(),
    }
}

/// The arguments of a call that was cut off. Text stays text, and a value becomes text that does not parse. Missing
/// arguments become empty text, which the engine refuses: arguments that were never sent must not run as `{}`.
pub(crate) fn cut_arguments(value: Option<Value>) -> Arguments {
    match value {
        None | Some(Value::Null) => "".into(),
        Some(Value::String(text)) => text.into(),
        Some(value) => unclosed(&value),
    }
}

/// The JSON text of a value without its last character, so that no parser takes it for complete.
pub(crate) fn unclosed(value: &Value) -> Arguments {
    let mut text = value.to_string();
    text.pop();
    text.into()
}

/// The arguments of a custom tool's call. Its input is free text, not JSON, so it becomes the single argument
/// `input`; otherwise the engine's parser would refuse nearly every such call.
pub(crate) fn custom_input(value: Option<Value>) -> Arguments {
    let input = match value {
        None | Some(Value::Null) => Value::String(String::new()),
        Some(value) => value,
    };
    json!({ "input": input }).into()
}

/// The arguments of a custom tool's call that was cut off.
pub(crate) fn cut_custom_input(input: &str) -> Arguments {
    unclosed(&json!({ "input": input }))
}
