//! What the parent is told, a line each (AG-14).

use super::ask::{Head, PROTOCOL};
use crate::{events::Kept, problem::Problem, questions::How, routes::confirmations::Question};
use serde::{Serialize, Serializer, ser::SerializeMap as _};
use serde_json::{Value, json, value::RawValue};
use std::time::Duration;
use tokio::time::Instant;
use toolyard::{
    CallId, Outcome, RequestId, ToolContext,
    event::{Cursor, Epoch},
};
use toolyard_wire::ToolResponse;

/// A line, with its end.
fn line(of: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(of).expect("what is told can be written as JSON");
    line.push(b'\n');
    line
}

/// An answer to a request: its operation, its id if it has one, and other fields.
pub(super) fn answer(op: &str, id: Option<&Value>, fields: Value) -> Vec<u8> {
    let mut answer = serde_json::Map::new();
    answer.insert("op".to_owned(), op.into());
    if let Some(id) = id {
        answer.insert("id".to_owned(), id.clone());
    }
    if let Value::Object(fields) = fields {
        answer.extend(fields);
    }
    line(&answer)
}

pub(super) fn welcome(id: Option<&Value>, epoch: Epoch, tools: &[&str]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let fields =
        json!({"protocol": PROTOCOL, "version": version, "epoch": epoch.to_string(), "tools": tools});
    answer("welcome", id, fields)
}

/// A line was refused.
pub(super) fn error(head: &Head, number: u64, problem: &Problem) -> Vec<u8> {
    let mut fields = json!({"code": problem.code(), "message": problem.detail(), "line": number});
    if let Some(op) = &head.op {
        fields["refused"] = op.as_str().into();
    }
    if let Some(turn) = &head.turn {
        fields["turn"] = turn.as_str().into();
    }
    for (name, value) in problem.more() {
        fields[name] = value.clone();
    }
    answer("error", head.id.as_ref(), fields)
}

/// The answer to a call of a turn.
struct Response<'a> {
    turn: &'a str,
    index: usize,
    response: ToolResponse<'a>,
}

impl Serialize for Response<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        map.serialize_entry("op", "tool_response")?;
        map.serialize_entry("turn", self.turn)?;
        map.serialize_entry("index", &self.index)?;
        map.serialize_entry("tool", &*self.response.outcome.tool)?;
        self.response.write(&mut map)?;
        map.end()
    }
}

pub(super) fn response(turn: &str, index: usize, outcome: &Outcome, meta: bool) -> Vec<u8> {
    line(&Response { turn, index, response: ToolResponse { outcome, meta } })
}

/// All calls of a turn have ended.
pub(super) fn turn_ended(turn: &str, number: u64, outcomes: &[Outcome], results: Option<Value>) -> Vec<u8> {
    let failed = outcomes.iter().filter(|outcome| !outcome.success()).count();
    let mut fields = json!({"turn": turn, "number": number, "calls": outcomes.len(), "failed": failed});
    if let Some(results) = results {
        fields["results"] = results;
    }
    answer("turn_ended", None, fields)
}

pub(super) fn delta(turn: &str, id: &CallId, text: &str) -> Vec<u8> {
    line(&json!({"op": "tool_delta", "turn": turn, "tool_call_id": id.as_str(), "text": text}))
}

/// A function is to run.
pub(super) fn invoke(call_id: &str, args: &Value, cx: &ToolContext, turn: Option<&str>) -> Vec<u8> {
    #[derive(Serialize)]
    struct Invoke<'a> {
        op: &'static str,
        call_id: &'a str,
        tool: &'a str,
        args: &'a Value,
        attempt: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        key: Option<&'a str>,
        deadline_ms: Option<u64>,
        session: &'a str,
        agent: &'a str,
        turn: Option<&'a str>,
        tool_call_id: &'a str,
    }
    let left = |deadline: Instant| millis(deadline.saturating_duration_since(Instant::now()));
    line(&Invoke {
        op: "tool_invoke",
        call_id,
        tool: cx.tool(),
        args,
        attempt: cx.attempt(),
        key: cx.idempotency_key(),
        deadline_ms: cx.deadline().map(left),
        session: cx.session().as_str(),
        agent: cx.agent().as_str(),
        turn,
        tool_call_id: cx.call_id().as_str(),
    })
}

pub(super) fn cancel(call_id: &str) -> Vec<u8> {
    line(&json!({"op": "tool_cancel", "call_id": call_id}))
}

/// A question, with the parent's name for its turn.
pub(super) fn confirm(question: &Question, turn: Option<&str>) -> Vec<u8> {
    let mut fields = serde_json::to_value(question).expect("a question can be written as JSON");
    fields["turn"] = turn.into();
    answer("confirm", None, fields)
}

/// A question is open no more.
pub(super) fn confirm_ended(id: RequestId, how: Option<&How>) -> Vec<u8> {
    let mut fields = json!({"request_id": id.to_string()});
    fields["how"] = match how {
        Some(How::Answered(answer)) => {
            fields["decision"] = answer.decision().as_str().into();
            fields["who"] = answer.who().into();
            "answered"
        }
        Some(How::Expired) => "expired",
        Some(How::NotTaken) => "asked_again",
        Some(How::Withdrawn) | None => "withdrawn",
    }
    .into();
    answer("confirm_ended", None, fields)
}

pub(super) fn event(epoch: Epoch, kept: &Kept) -> Vec<u8> {
    #[derive(Serialize)]
    struct Told<'a> {
        op: &'static str,
        cursor: String,
        event: &'a RawValue,
    }
    let event = serde_json::from_str(kept.line()).expect("an event is written as JSON");
    line(&Told { op: "event", cursor: Cursor::new(epoch, kept.position()).to_string(), event })
}

pub(super) fn event_reset(epoch: Epoch, position: u64) -> Vec<u8> {
    line(&json!({"op": "event_reset", "cursor": Cursor::new(epoch, position).to_string()}))
}

pub(super) fn shutdown(grace: Duration) -> Vec<u8> {
    line(&json!({"op": "shutdown", "grace_ms": millis(grace)}))
}

/// What is one or several in its format, as a list.
pub(super) fn listed(of: Value) -> Value {
    match of {
        Value::Array(several) => several.into(),
        one => vec![one].into(),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
