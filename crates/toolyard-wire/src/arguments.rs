//! Arguments as they stand in a result.

use serde_json::Value;
use toolyard_core::Arguments;

/// A value as it is; a text as a string, however it reads: it is what the model wrote. A value that is itself a string
/// becomes its JSON text, which is the same to whoever parses it.
pub(crate) fn to_json(arguments: &Arguments) -> Value {
    match arguments {
        Arguments::Json(value) if !value.is_string() => value.as_ref().clone(),
        arguments => arguments.text().into_owned().into(),
    }
}

/// The arguments that were written so.
pub(crate) fn from_json(value: Value) -> Arguments {
    match value {
        Value::String(text) => text.into(),
        value => value.into(),
    }
}
