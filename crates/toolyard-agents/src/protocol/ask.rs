//! What an agent asks.

use super::{
    PROTOCOL,
    fields::{Fields, needed, optional, text},
};
use serde_json::{Value, value::RawValue};
use toolyard::{Call, CallId, TimeoutScope};
use toolyard_wire::{CallMeta, FieldError};

/// The most calls that one line has.
pub const CALLS_OF_A_LINE_MAX: usize = 1_000;

/// What an agent may say of a call in `meta`.
const META: &str = "idempotency_key, timeout_ms, deadline_ms";

/// One line of an agent (AG-2).
#[derive(Debug, Clone, PartialEq)]
pub enum Ask {
    /// Calls to run, in this order; some may have been refused one by one.
    Calls(Vec<Result<AskedCall, Refused>>),
    /// A greeting.
    Hello(Hello),
    /// To stop a call.
    Cancel(CallId),
    /// What follows waits for what has come.
    TurnEnd,
    /// The agent has nothing more to ask; its result, if it has one.
    Bye(Option<Value>),
}

/// A call that an agent asks for.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedCall {
    /// The call.
    pub call: Call,
    /// The calls that it waits for, and no others; without, it is in the order of its batch (AG-3).
    pub after: Option<Vec<CallId>>,
    /// What is wrong with its `after` or its `meta`: the call is then answered as `invalid_args`.
    pub wrong: Option<String>,
}

/// What an agent wants to hear, beside answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hello {
    /// Whether answers say more of their calls.
    pub meta: bool,
    /// Whether output is passed on that comes before the end of its call.
    pub deltas: bool,
}

/// A line, or one call of it, that is not understood, and does nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// What is wrong with it.
    pub message: String,
    /// The operation of the line, if that could be read.
    pub op: Option<String>,
    /// The call that it names, if that could be read.
    pub tool_call_id: Option<CallId>,
}

impl Refused {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), op: None, tool_call_id: None }
    }

    /// The refusal of this operation, about this call.
    pub(crate) fn of(self, op: impl Into<String>, tool_call_id: Option<CallId>) -> Self {
        Self { op: Some(op.into()), tool_call_id, ..self }
    }
}

/// Reads one line of an agent, without its line end.
///
/// # Errors
/// [`Refused`]: it is no JSON object in UTF-8, its operation is unknown, or a field is missing or wrong.
///
/// # Examples
/// ```
/// use toolyard_agents::protocol::{Ask, ask};
/// let line = r#"{"op":"tool_call","tool_call_id":"c1","tool":"Read","args":{"path":"/a"}}"#;
/// let Ask::Calls(calls) = ask(line.as_bytes())? else { panic!() };
/// assert_eq!(calls[0].as_ref().unwrap().call.name.as_ref(), "Read");
/// assert_eq!(ask(br#"{"op":"sing"}"#).unwrap_err().message, "there is no operation 'sing'");
/// # Ok::<(), toolyard_agents::protocol::Refused>(())
/// ```
pub fn ask(line: &[u8]) -> Result<Ask, Refused> {
    let line = std::str::from_utf8(line).map_err(|error| {
        Refused::new(format!("byte {} of the line is not UTF-8", error.valid_up_to() + 1))
    })?;
    let fields = Fields::of(line)?;
    let named = |refused: Refused| Refused { tool_call_id: fields.id(), ..refused };
    let op = text("op", fields.op).map_err(named)?;
    operation(&op, &fields).map_err(|refused| refused.of(shown(&op), fields.id()))
}

fn operation(op: &str, fields: &Fields<'_>) -> Result<Ask, Refused> {
    match op {
        "tool_call" => Ok(Ask::Calls(vec![Ok(call(fields)?)])),
        "tool_calls" => calls(fields).map(Ask::Calls),
        "hello" => hello(fields).map(Ask::Hello),
        "cancel" => fields.needed_id().map(Ask::Cancel),
        "turn_end" => Ok(Ask::TurnEnd),
        "bye" => optional("result", fields.result, "JSON").map(Ask::Bye),
        _ => Err(Refused::new(format!("there is no operation '{}'", shown(op)))),
    }
}

/// The start of a text of an agent, on one line.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(64).flat_map(char::escape_debug).collect()
}

fn call(fields: &Fields<'_>) -> Result<AskedCall, Refused> {
    let id = fields.needed_id()?;
    let tool = text("tool", fields.tool)?;
    let args = fields.args.ok_or_else(|| Refused::new("field 'args' is missing"))?;
    let mut call = Call::with_arguments(id, tool, args.get());
    let after = optional::<Option<Vec<String>>>("after", fields.after, "a list of ids of calls");
    let meta =
        optional::<Option<Value>>("meta", fields.meta, "an object").and_then(|meta| match meta.flatten() {
            Some(meta) => meta_of(&meta).map(|meta| meta.apply(&mut call, TimeoutScope::Attempt)),
            None => Ok(()),
        });
    let after = after.and_then(|after| match after.flatten() {
        Some(ids) if ids.len() > CALLS_OF_A_LINE_MAX => {
            Err(Refused::new(format!("field 'after' names more than {CALLS_OF_A_LINE_MAX} calls")))
        }
        after => Ok(after),
    });
    let (after, wrong) = match (after, meta) {
        (Ok(after), Ok(())) => (after, None),
        (Err(refused), _) | (_, Err(refused)) => (None, Some(refused.message)),
    };
    Ok(AskedCall { call, after: after.map(|ids| ids.into_iter().map(CallId::from).collect()), wrong })
}

/// What goes with a call: not its id, which stands elsewhere, nor its agent, which is the one that asks.
fn meta_of(meta: &Value) -> Result<CallMeta, Refused> {
    let meta = CallMeta::read(meta).map_err(|error| match error {
        FieldError::Unknown { field, .. } => FieldError::Unknown { field, known: META.to_owned() },
        other => other,
    });
    let meta = meta.map_err(|error| Refused::new(error.to_string()))?;
    let taken = [("call_id", meta.call_id().is_some()), ("agent", meta.agent().is_some())];
    match taken.iter().find(|(_, is_set)| *is_set) {
        Some((name, _)) => Err(Refused::new(format!("field 'meta.{name}' cannot be set by an agent"))),
        None => Ok(meta),
    }
}

fn calls(fields: &Fields<'_>) -> Result<Vec<Result<AskedCall, Refused>>, Refused> {
    let calls: Vec<&RawValue> = needed("calls", fields.calls, "a list of calls")?;
    if calls.len() > CALLS_OF_A_LINE_MAX {
        let why =
            format!("field 'calls' has {} entries; a line has at most {CALLS_OF_A_LINE_MAX}", calls.len());
        return Err(Refused::new(why));
    }
    let each = |entry: &&RawValue| {
        let fields = Fields::of(entry.get())?;
        call(&fields).map_err(|refused| refused.of("tool_calls", fields.id()))
    };
    Ok(calls.iter().map(each).collect())
}

fn hello(fields: &Fields<'_>) -> Result<Hello, Refused> {
    let protocol: u64 = needed("protocol", fields.protocol, "a whole number")?;
    if protocol != PROTOCOL {
        return Err(Refused::new(format!("protocol {protocol} is not spoken here; {PROTOCOL} is")));
    }
    let wants =
        |name, field| Ok(optional::<Option<bool>>(name, field, "true or false")?.flatten().unwrap_or(false));
    Ok(Hello { meta: wants("meta", fields.meta)?, deltas: wants("deltas", fields.deltas)? })
}

#[cfg(test)]
mod tests;
