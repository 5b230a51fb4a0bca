//! The error for calls and outcomes that do not match each other or the format.

use crate::Format;
use std::collections::HashSet;
use toolyard_core::{Arguments, Call, Outcome};

/// Why calls and outcomes cannot be written as messages.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// The numbers of calls and outcomes differ.
    #[error("{calls} calls but {outcomes} outcomes: pass one outcome per call, in call order")]
    Count {
        /// How many calls there are.
        calls: usize,
        /// How many outcomes there are.
        outcomes: usize,
    },
    /// The outcome at a call's position belongs to another call.
    #[error("the outcome at position {at} is for call '{outcome}', but the call there is '{call}'")]
    Id {
        /// The position, from 0.
        at: usize,
        /// The id of the call.
        call: String,
        /// The id of the outcome.
        outcome: String,
    },
    /// The outcome at a call's position is of another tool.
    #[error("the outcome at position {at} is for tool '{outcome}', but the call there is for '{call}'")]
    Tool {
        /// The position, from 0.
        at: usize,
        /// The tool that is called.
        call: String,
        /// The tool of the outcome.
        outcome: String,
    },
    /// Two calls share an id, which no provider accepts.
    #[error("the call at position {at} reuses the id '{id}'")]
    Twice {
        /// The position of the later one, from 0.
        at: usize,
        /// The id.
        id: String,
    },
    /// The arguments of a call are not an object, and the format has no place for anything else.
    #[error("the arguments of call '{id}' are not a JSON object, which {format} requires")]
    Arguments {
        /// The call.
        id: String,
        /// The format.
        format: Format,
    },
}

pub(super) fn check(calls: &[Call], outcomes: &[Outcome], format: Format) -> Result<(), Mismatch> {
    if calls.len() != outcomes.len() {
        return Err(Mismatch::Count { calls: calls.len(), outcomes: outcomes.len() });
    }
    let mut ids = HashSet::new();
    for (at, (call, outcome)) in calls.iter().zip(outcomes).enumerate() {
        let text = |text: &str| text.to_owned();
        if call.id != outcome.call_id {
            let (call, outcome) = (text(call.id.as_str()), text(outcome.call_id.as_str()));
            return Err(Mismatch::Id { at, call, outcome });
        }
        if call.name != outcome.tool {
            return Err(Mismatch::Tool { at, call: text(&call.name), outcome: text(&outcome.tool) });
        }
        if !ids.insert(&call.id) {
            return Err(Mismatch::Twice { at, id: text(call.id.as_str()) });
        }
        if wants_object(format) && !is_object(&call.arguments) {
            return Err(Mismatch::Arguments { id: text(call.id.as_str()), format });
        }
    }
    Ok(())
}

/// Whether this format carries arguments as an object rather than as text.
fn wants_object(format: Format) -> bool {
    matches!(format, Format::Anthropic | Format::Gemini)
}

fn is_object(arguments: &Arguments) -> bool {
    match arguments {
        Arguments::Json(value) => value.is_object(),
        Arguments::Text(_) => arguments.to_value().is_object(),
    }
}
