//! An outcome as one JSON object, for servers and agents that pass results on (SM-11).
//!
//! ```text
//!   Outcome ◄──► {call_id, tool_name, arguments, success, output, …}     what was called, and what came of it
//!                 + the facts of a ResultMeta                            attempts, duration_ms, sandbox, …
//!                 + error {code, kind, message, jsonrpc_code, …}         if it failed
//! ```

mod error;
mod output;

pub use error::error_to_json;
pub(crate) use output::facts;

use crate::{
    FieldError, arguments,
    fields::Reader,
    meta::{EDITED, Facts, Times},
};
use serde_json::{Map, Value};
use std::{sync::Arc, time::Duration};
use toolyard_core::{Call, Outcome, Routing};

const ROUTINGS: &str = "short_circuit, read, serial, concurrent";

/// Writes an outcome with everything that is known of it (SM-11).
///
/// | field | what |
/// |---|---|
/// | `call_id`, `tool_name` | as in the call |
/// | `arguments` | as received: text that a model wrote is a string, however it reads |
/// | `success` | whether there is an output |
/// | `output` | the tool's data if there are any, else its text; null if the call failed |
/// | `content` | the parts that the model reads, unless `output` says it all: a text alone, or data alone |
/// | `structured` | the data, where they are themselves a string |
/// | `files_modified`, `command_executed`, `metadata`, `usage` | what the tool tells of the call; if it tells it |
/// | `error` | of a failure: [`error_to_json`] |
/// | `routing`, `run` | how the call was routed, and in which run of its batch |
/// | `attempts`, `dedupe`, `queued_ms`, `ran_ms`, `duration_ms`, `sandbox` | as in [`ResultMeta`](crate::ResultMeta) |
/// | `recorded` | false if the result could not be made durable (SM-4); else left out |
/// | `edited` | the arguments with which it ran, if whoever approved it has changed them (SM-5) |
/// | `cancel_requested` | true if a cancel had reached the call; else left out |
///
/// [`outcome_from_json`] reads it back. What cannot be read back: the `source` of an error, which stays out of the wire,
/// fractions of milliseconds, and more than [`LAST_ERRORS_MAX`](crate::bounds::LAST_ERRORS_MAX) errors inside one
/// another.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::{Call, Outcome, Routing, ToolOutput};
/// use toolyard_wire::{outcome_from_json, outcome_to_json};
/// let call = Call::new("call_1", "weather", json!({"city": "Paris"}));
/// let outcome = Outcome::new(&call, Routing::Read, Ok(ToolOutput::text("sunny")));
/// let written = outcome_to_json(&outcome);
/// assert_eq!(written, json!({
///     "call_id": "call_1", "tool_name": "weather", "arguments": {"city": "Paris"},
///     "success": true, "output": "sunny", "routing": "read", "run": 0,
///     "attempts": 1, "dedupe": "fresh", "queued_ms": 0, "ran_ms": 0, "duration_ms": 0, "sandbox": "host",
/// }));
/// assert_eq!(outcome_from_json(written)?, outcome);
/// # Ok::<(), toolyard_wire::FieldError>(())
/// ```
pub fn outcome_to_json(outcome: &Outcome) -> Value {
    let mut fields = Map::new();
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    put("call_id", outcome.call_id.as_str().into());
    put("tool_name", outcome.tool.as_ref().into());
    put("arguments", arguments::to_json(&outcome.arguments));
    put("success", outcome.success().into());
    match &outcome.status {
        Ok(output) => output::write(output, &mut put),
        Err(error) => {
            put("output", Value::Null);
            put("error", error_to_json(error));
        }
    }
    if let Some(edited) = outcome.edited() {
        put(EDITED, edited.clone());
    }
    let facts = facts_of(outcome);
    facts.write_recorded(&mut fields);
    let mut put = |key: &str, value: Value| fields.insert(key.to_owned(), value);
    put("routing", outcome.routing.as_str().into());
    put("run", outcome.run.into());
    if outcome.cancel_requested {
        put("cancel_requested", true.into());
    }
    facts.write(&mut fields);
    Value::Object(fields)
}

fn facts_of(outcome: &Outcome) -> Facts {
    Facts {
        attempts: outcome.attempts,
        dedupe: outcome.dedupe,
        times: Times::of(outcome.queued(), outcome.ran()),
        sandbox: outcome.sandbox,
        recorded: outcome.recorded,
    }
}

/// Reads an outcome that [`outcome_to_json`] wrote. Names that it does not know are ignored, and so are fields that
/// only say in other words what others say: `error.kind`, `class`, `slug` and `jsonrpc_code`. `routing`, `run`,
/// `dedupe`, `queued_ms`, `ran_ms` and `cancel_requested` may be left out.
///
/// What is read is bounded by the text it comes from, and by the fields' own types.
///
/// # Errors
/// [`FieldError`] names the first field that is missing, or whose value is wrong.
pub fn outcome_from_json(value: Value) -> Result<Outcome, FieldError> {
    let mut reader = Reader::of("outcome", "", value)?;
    let call_id = reader.must("call_id", Reader::any_text)?;
    let tool = reader.must("tool_name", Reader::any_text)?;
    let arguments = arguments::from_json(reader.must("arguments", Reader::any)?);
    let success = reader.must("success", Reader::flag)?;
    let routing = reader.word("routing", ROUTINGS)?;
    let failure = reader.object("error")?;
    let status = match (success, failure) {
        (true, None) => Ok(output::take(&mut reader)?),
        (false, Some(mut failure)) => Err(error::take(&mut failure, 0)?),
        (true, Some(_)) => return Err(reader.conflict("error", "is there although 'success' is true")),
        (false, None) => return Err(reader.missing("error")),
    };
    let routing = match routing {
        Some(routing) => routing,
        None if status.is_ok() => Routing::Read,
        None => Routing::ShortCircuit,
    };
    let mut outcome = Outcome::new(&Call::with_arguments(call_id, tool, arguments), routing, status);
    take_facts(&mut outcome, &mut reader)?;
    Ok(outcome)
}

/// Takes what surrounds the call and its status.
fn take_facts(outcome: &mut Outcome, reader: &mut Reader) -> Result<(), FieldError> {
    let facts = Facts::take(reader)?;
    outcome.attempts = facts.attempts;
    outcome.sandbox = facts.sandbox;
    outcome.dedupe = facts.dedupe;
    outcome.recorded = facts.recorded;
    let time = |millis| Duration::from_millis(millis).into();
    outcome.set_times(time(facts.times.queued_ms), time(facts.times.ran_ms));
    outcome.run = reader.count("run")?.unwrap_or_default();
    outcome.cancel_requested = reader.flag("cancel_requested")?.unwrap_or_default();
    outcome.set_edited(reader.value(EDITED).map(Arc::new));
    Ok(())
}

#[cfg(test)]
mod tests;
