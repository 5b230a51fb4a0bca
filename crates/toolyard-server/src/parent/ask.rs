//! What the parent asks for, a line each (AG-14).

use super::{definition::Definition, reply::Reply};
use crate::{
    http::pointer,
    problem::Problem,
    routes::{agents::Fork, confirmations::Given, sessions::Open},
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, value::RawValue};
use toolyard::{Call, CallId, EventKind, TimeoutScope};
use toolyard_wire::{CallMeta, Format, bounds::CALL_ID_BYTES_MAX};

/// The version of the protocol.
pub(super) const PROTOCOL: u64 = 1;

/// The longest name of a request, a turn or a person, in bytes.
const NAME_BYTES_MAX: usize = 128;

/// The most calls of a turn.
pub(super) const TURN_CALLS_MAX: usize = 10_000;

/// What a line says of itself, as far as it can be read: an error about it says so too.
#[derive(Debug, Default)]
pub(super) struct Head {
    pub(super) op: Option<String>,
    pub(super) id: Option<Value>,
    pub(super) turn: Option<String>,
}

/// One line of the parent.
#[derive(Debug)]
pub(super) enum Ask {
    Hello(Hello),
    Open(OpenSession),
    Fork(ForkAgent),
    Close(String),
    Definitions(WantedDefinitions),
    Respond(Box<Respond>),
    Calls(Calls),
    TurnEnd,
    Cancel(Option<CallId>),
    Confirmation(Confirmation),
    Register(Box<Definition>),
    Unregister(String),
    Reply(String, Reply),
    Bye,
}

#[derive(Debug, Default)]
pub(super) struct Hello {
    pub(super) confirm: bool,
    pub(super) meta: bool,
    pub(super) deltas: bool,
    /// The kinds of events that are wanted, all if it is empty; `None` if none are.
    pub(super) events: Option<Vec<String>>,
}

#[derive(Debug)]
pub(super) struct OpenSession {
    pub(super) session: String,
    pub(super) open: Open,
}

#[derive(Debug)]
pub(super) struct ForkAgent {
    pub(super) of: OfSession,
    pub(super) fork: Fork,
}

/// Which agent of which session it is about.
#[derive(Debug, Default, Deserialize)]
pub(super) struct OfSession {
    pub(super) session: Option<String>,
    pub(super) agent: Option<String>,
}

#[derive(Debug)]
pub(super) struct WantedDefinitions {
    pub(super) of: OfSession,
    pub(super) to: Option<String>,
}

#[derive(Debug)]
pub(super) struct Respond {
    pub(super) of: OfSession,
    /// The turn that it waits for.
    pub(super) after: Option<String>,
    pub(super) message: Box<RawValue>,
    pub(super) from: Option<Format>,
    pub(super) to: Option<Format>,
    pub(super) each: bool,
}

#[derive(Debug)]
pub(super) struct Calls {
    pub(super) of: OfSession,
    pub(super) after: Option<String>,
    pub(super) calls: Vec<Call>,
    /// Whether others follow.
    pub(super) more: bool,
    /// Whether they belong to a turn that is open.
    pub(super) continues: bool,
    /// The invocation that makes them.
    pub(super) within: Option<String>,
}

#[derive(Debug)]
pub(super) struct Confirmation {
    pub(super) request_id: String,
    pub(super) who: Option<String>,
    pub(super) given: Given,
}

/// Reads what a line says of itself.
///
/// # Errors
/// A [`Problem`], with what can be said.
pub(super) fn head(line: &str) -> (Head, Result<(), Problem>) {
    #[derive(Deserialize)]
    struct Written {
        op: Option<Value>,
        id: Option<Value>,
        turn: Option<Value>,
    }
    let mut head = Head::default();
    if !line.trim_start().starts_with('{') {
        return (head, Err(Problem::malformed("a line must be one JSON object")));
    }
    let written: Written = match serde_json::from_str(line) {
        Ok(written) => written,
        Err(error) => return (head, Err(Problem::malformed(format!("this is no JSON object: {error}")))),
    };
    let is_name = |text: &str| (1..=NAME_BYTES_MAX).contains(&text.len());
    let mut checked = Ok(());
    match written.id {
        Some(Value::String(name)) if is_name(&name) => head.id = Some(name.into()),
        Some(number @ Value::Number(_)) if number.is_i64() || number.is_u64() => head.id = Some(number),
        None | Some(Value::Null) => {}
        Some(_) => {
            let why = format!("an id is a whole number or a string of 1 to {NAME_BYTES_MAX} bytes");
            checked = Err(Problem::invalid("/id", why));
        }
    }
    match written.turn {
        Some(Value::String(name)) if is_name(&name) => head.turn = Some(name),
        None | Some(Value::Null) => {}
        Some(_) => {
            let why = format!("a turn is a string of 1 to {NAME_BYTES_MAX} bytes");
            checked = Err(Problem::invalid("/turn", why));
        }
    }
    match written.op {
        Some(Value::String(op)) => head.op = Some(op),
        _ => checked = Err(Problem::invalid("/op", "field 'op' must be a string")),
    }
    (head, checked)
}

/// Reads a line whose head could be read.
///
/// # Errors
/// A [`Problem`]: its operation is unknown, or a field is missing or wrong.
pub(super) fn ask(head: &Head, line: &str) -> Result<Ask, Problem> {
    let op = head.op.as_deref().unwrap_or_default();
    match op {
        "hello" => hello(line).map(Ask::Hello),
        "open" => open(line).map(Ask::Open),
        "fork" => Ok(Ask::Fork(ForkAgent { of: read(line)?, fork: only(line, FORK)? })),
        "close" => name(line, "session", |names| names.session).map(Ask::Close),
        "definitions" => definitions(line).map(Ask::Definitions),
        "respond" => respond(line).map(|respond| Ask::Respond(Box::new(respond))),
        "tool_calls" => calls(line).map(Ask::Calls),
        "turn_end" => Ok(Ask::TurnEnd),
        "cancel" => Ok(Ask::Cancel(read::<Names>(line)?.tool_call_id.map(CallId::from))),
        "confirmation" => confirmation(line).map(Ask::Confirmation),
        "register" => read::<Registered>(line).map(|read| Ask::Register(Box::new(read.definition))),
        "unregister" => name(line, "tool", |names| names.tool).map(Ask::Unregister),
        "tool_result" | "tool_failed" | "tool_delta" => {
            let call_id = name(line, "call_id", |names| names.call_id)?;
            Reply::read(op, line).map(|reply| Ask::Reply(call_id, reply))
        }
        "bye" => Ok(Ask::Bye),
        _ => {
            let op: String = op.chars().take(64).flat_map(char::escape_debug).collect();
            Err(Problem::malformed(format!("there is no operation '{op}'")))
        }
    }
}

/// Reads the fields of a line, with an error that names the one which is wrong.
pub(super) fn read<T: DeserializeOwned>(line: &str) -> Result<T, Problem> {
    let mut from = serde_json::Deserializer::from_str(line);
    serde_path_to_error::deserialize(&mut from).map_err(|error| refused(&error))
}

fn refused<E: std::error::Error>(error: &serde_path_to_error::Error<E>) -> Problem {
    let at = pointer(error.path());
    let what = error.inner().to_string();
    // A line is one line: where in it says nothing that the field does not.
    let what = what.split(" at line 1 column ").next().unwrap_or(&what);
    match at.as_str() {
        "" | "/" => Problem::invalid("", what),
        field => Problem::invalid(field, format!("'{field}': {what}")),
    }
}

#[derive(Deserialize)]
struct Registered {
    definition: Definition,
}

const OPEN: &[&str] = &["capabilities", "confirmations", "limits"];
const FORK: &[&str] = &["name", "capabilities", "only_tools"];
const CONFIRMATION: &[&str] = &["decision", "digest", "reason", "arguments"];

/// Reads an object of these fields of a line.
fn only<T: DeserializeOwned>(line: &str, these: &[&str]) -> Result<T, Problem> {
    let mut fields: serde_json::Map<String, Value> = read(line)?;
    fields.retain(|name, value| these.contains(&name.as_str()) && !value.is_null());
    serde_path_to_error::deserialize(Value::Object(fields)).map_err(|error| refused(&error))
}

fn open(line: &str) -> Result<OpenSession, Problem> {
    Ok(OpenSession { session: name(line, "session", |names| names.session)?, open: only(line, OPEN)? })
}

fn definitions(line: &str) -> Result<WantedDefinitions, Problem> {
    #[derive(Deserialize)]
    struct Written {
        to: Option<String>,
    }
    let Written { to } = read(line)?;
    Ok(WantedDefinitions { of: read(line)?, to })
}

fn confirmation(line: &str) -> Result<Confirmation, Problem> {
    #[derive(Deserialize)]
    struct Written {
        request_id: String,
        who: Option<String>,
    }
    let Written { request_id, who } = read(line)?;
    if who.as_ref().is_some_and(|who| !(1..=NAME_BYTES_MAX).contains(&who.len())) {
        return Err(Problem::invalid("/who", format!("a name has 1 to {NAME_BYTES_MAX} bytes")));
    }
    Ok(Confirmation { request_id, who, given: only(line, CONFIRMATION)? })
}

/// Fields that are a name, whichever of them a line has.
#[derive(Deserialize)]
struct Names {
    session: Option<String>,
    tool: Option<String>,
    call_id: Option<String>,
    tool_call_id: Option<String>,
}

/// The name that must be there.
fn name(line: &str, field: &str, which: fn(Names) -> Option<String>) -> Result<String, Problem> {
    let missing = || Problem::invalid(&format!("/{field}"), format!("field '{field}' is missing"));
    which(read(line)?).ok_or_else(missing)
}

fn hello(line: &str) -> Result<Hello, Problem> {
    #[derive(Deserialize)]
    struct Written {
        protocol: u64,
        confirm: Option<bool>,
        meta: Option<bool>,
        deltas: Option<bool>,
        events: Option<Events>,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Events {
        All(bool),
        Kinds(Vec<String>),
    }
    let Written { protocol, confirm, meta, deltas, events } = read(line)?;
    if protocol != PROTOCOL {
        let why = format!("protocol {protocol} is not spoken here; {PROTOCOL} is");
        return Err(Problem::invalid("/protocol", why));
    }
    let events = match events {
        None | Some(Events::All(false)) => None,
        Some(Events::All(true)) => Some(Vec::new()),
        Some(Events::Kinds(kinds)) => Some(known_kinds(kinds)?),
    };
    let is = Option::unwrap_or_default;
    Ok(Hello { confirm: is(confirm), meta: is(meta), deltas: is(deltas), events })
}

/// Kinds of events, none of which would never come.
fn known_kinds(kinds: Vec<String>) -> Result<Vec<String>, Problem> {
    if kinds.is_empty() {
        return Err(Problem::invalid("/events", "name at least one kind of events, or say true"));
    }
    match kinds.iter().find(|kind| !EventKind::NAMES.contains(&kind.as_str())) {
        None => Ok(kinds),
        Some(kind) => {
            let (kind, all) = (kind.escape_debug(), EventKind::NAMES.join(", "));
            Err(Problem::invalid("/events", format!("there are no events '{kind}': there are {all}")))
        }
    }
}

fn respond(line: &str) -> Result<Respond, Problem> {
    #[derive(Deserialize)]
    struct Written {
        session: Option<String>,
        agent: Option<String>,
        after: Option<String>,
        message: Box<RawValue>,
        from: Option<String>,
        to: Option<String>,
        each: Option<bool>,
    }
    let Written { session, agent, after, message, from, to, each } = read(line)?;
    Ok(Respond {
        of: OfSession { session, agent },
        after,
        message,
        from: format("from", from)?,
        to: format("to", to)?,
        each: each.unwrap_or_default(),
    })
}

fn format(field: &str, named: Option<String>) -> Result<Option<Format>, Problem> {
    named.map(|word| word.parse().map_err(|error| Problem::invalid(&format!("/{field}"), error))).transpose()
}

fn calls(line: &str) -> Result<Calls, Problem> {
    #[derive(Deserialize)]
    struct Written {
        session: Option<String>,
        agent: Option<String>,
        after: Option<String>,
        calls: Vec<WrittenCall>,
        more: Option<bool>,
        continues: Option<bool>,
        within: Option<String>,
    }
    let Written { session, agent, after, calls, more, continues, within } = read(line)?;
    let (more, continues) = (more.unwrap_or_default(), continues.unwrap_or_default());
    let has_place = session.is_some() || agent.is_some() || after.is_some();
    if continues && (has_place || within.is_some()) {
        let why = "a turn that continues has its session, agent and what it waits for already";
        return Err(Problem::invalid("/continues", why));
    }
    if within.is_some() && (has_place || more) {
        let why = "calls within an invocation have neither session, agent, after nor more";
        return Err(Problem::invalid("/within", why));
    }
    let calls = calls.into_iter().enumerate().map(|(at, call)| call.read(at)).collect::<Result<_, _>>()?;
    Ok(Calls { of: OfSession { session, agent }, after, calls, more, continues, within })
}

#[derive(Deserialize)]
struct WrittenCall {
    tool_call_id: String,
    tool: String,
    args: Box<RawValue>,
    meta: Option<Value>,
}

impl WrittenCall {
    fn read(self, at: usize) -> Result<Call, Problem> {
        let wrong = |field: &str, why: String| Problem::invalid(&format!("/calls/{at}/{field}"), why);
        if !(1..=CALL_ID_BYTES_MAX).contains(&self.tool_call_id.len()) {
            let why = format!("field 'tool_call_id' must have 1 to {CALL_ID_BYTES_MAX} bytes");
            return Err(wrong("tool_call_id", why));
        }
        let mut call = Call::with_arguments(self.tool_call_id, self.tool, self.args.get());
        if let Some(meta) = &self.meta {
            let meta = CallMeta::read(meta).map_err(|error| wrong("meta", error.to_string()))?;
            let taken = [("call_id", meta.call_id().is_some()), ("agent", meta.agent().is_some())];
            if let Some((name, _)) = taken.iter().find(|(_, is_set)| *is_set) {
                return Err(wrong("meta", format!("field 'meta.{name}' cannot be set here")));
            }
            meta.apply(&mut call, TimeoutScope::Attempt);
        }
        Ok(call)
    }
}

#[cfg(test)]
mod tests;
