//! A call as a decoder found it, before it has an id of ours.

use crate::json::Fields;
use serde_json::{Value, json};
use std::time::Duration;
use toolyard_core::Arguments;

/// A call as it was found in a message or a stream.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    /// The id that results are given back under; `None` where the provider sent none.
    pub(crate) id: Option<String>,
    /// The provider's own second id.
    pub(crate) provider_id: Option<String>,
    /// The name; empty where the provider sent none. The engine then knows no such tool.
    pub(crate) name: String,
    pub(crate) arguments: Arguments,
    /// Whether it is a custom tool's call, whose input is free text.
    pub(crate) custom: bool,
    pub(crate) idempotency_key: Option<String>,
    pub(crate) timeout: Option<Duration>,
    /// The fields that nothing above took.
    pub(crate) rest: Fields,
}

/// The arguments of a complete call. Missing, null and wholly empty ones are none; text stays text, which
/// includes text where the provider promises an object.
pub(crate) fn arguments(value: Option<Value>) -> Arguments {
    match value {
        None | Some(Value::Null) => Arguments::empty(),
        Some(Value::String(text)) if text.is_empty() => Arguments::empty(),
        Some(Value::String(text)) => text.into(),
        Some(value) => value.into(),
    }
}

/// The arguments of a call that was cut off. They stay as they are, except that none at all stays empty text,
/// which the engine refuses: what was never sent must not run as `{}`.
pub(crate) fn cut_arguments(value: Option<Value>) -> Arguments {
    match value {
        None | Some(Value::Null) => "".into(),
        Some(Value::String(text)) => text.into(),
        Some(value) => unclosed(&value),
    }
}

/// The JSON text of a value without its last character: text that no parser takes for complete.
pub(crate) fn unclosed(value: &Value) -> Arguments {
    let mut text = value.to_string();
    text.pop();
    text.into()
}

/// The arguments of a custom tool's call. Its input is free text and no JSON, so it becomes the one argument
/// `input`; without that the engine's parser would refuse nearly all of them.
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
