//! Arbitrary values for tests: JSON that gets past the first checks, and outcomes with everything in them.

use proptest::{collection::vec, option, prelude::*, sample::select};
use serde_json::{Map, Value};
use std::time::Duration;
use toolyard_core::{
    Arguments, Call, CallError, Content, Dedupe, Effect, ErrorKind, Outcome, Reason, RetryStopped, Routing,
    Sandbox, ToolOutput, Usage, ValidationError,
};

/// Names and words that the readers look for.
const WORDS: &[&str] = &[
    "call_id",
    "idempotency_key",
    "timeout_ms",
    "deadline_ms",
    "agent",
    "toolyard/call",
    "toolyard/error",
    "toolyard/timeout_ms",
    "code",
    "outcome",
    "attempts",
    "retryable",
    "retry_after_ms",
    "reason",
    "retry_stopped",
    "suspended",
    "recorded",
    "validation_errors",
    "pointer",
    "message",
    "dedupe",
    "queued_ms",
    "ran_ms",
    "duration_ms",
    "sandbox",
    "edited",
    "tool_name",
    "arguments",
    "success",
    "output",
    "content",
    "structured",
    "type",
    "text",
    "metadata",
    "files_modified",
    "command_executed",
    "usage",
    "wall_ms",
    "cpu_ms",
    "memory_peak_bytes",
    "net_connections",
    "net_up_bytes",
    "net_down_bytes",
    "error",
    "last_error",
    "routing",
    "run",
    "root",
    "host",
    "timeout",
    "unknown",
    "fresh",
    "read",
];

/// Anything that is neither an array nor an object.
fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0u64..3).prop_map(Value::from),
        select(WORDS).prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ]
}

/// Any JSON, biased towards what the readers look for.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(5, 64, 12, |inner| {
        let key = prop_oneof![4 => select(WORDS).prop_map(str::to_owned), 1 => any::<String>()];
        let fields = vec((key, inner.clone()), 0..12);
        prop_oneof![
            vec(inner, 0..4).prop_map(Value::from),
            fields.prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// A value that was written by us, with one field, anywhere, replaced.
pub(crate) fn damaged(good: Value) -> impl Strategy<Value = Value> {
    let places = places(&good, "");
    (select(places), prop_oneof![4 => leaf(), 1 => value()]).prop_map(move |(place, other)| {
        let mut bad = good.clone();
        if let Some(field) = bad.pointer_mut(&place) {
            *field = other;
        }
        bad
    })
}

fn places(value: &Value, at: &str) -> Vec<String> {
    let inside = |key: String, value: &Value| places(value, &format!("{at}/{key}"));
    let below: Vec<String> = match value {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(key, value)| inside(key.replace('~', "~0").replace('/', "~1"), value))
            .collect(),
        Value::Array(items) => {
            items.iter().enumerate().flat_map(|(at, value)| inside(at.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    std::iter::once(at.to_owned()).chain(below).collect()
}

/// Arguments as they are received. A value that is a string is read back as its text, so there is none here.
fn arguments() -> impl Strategy<Value = Arguments> {
    let json = value().prop_filter("a value that is a string", |value| !value.is_string());
    prop_oneof![any::<String>().prop_map(Arguments::from), json.prop_map(Arguments::from)]
}

fn object() -> impl Strategy<Value = Map<String, Value>> {
    vec((any::<String>(), value()), 0..3).prop_map(|fields| fields.into_iter().collect())
}

/// An output of every shape.
fn output() -> impl Strategy<Value = ToolOutput> {
    let part = prop_oneof![
        any::<String>().prop_map(Content::text),
        any::<String>().prop_map(|data| Content::Image { media_type: "image/png".into(), data }),
    ];
    let data = option::of(prop_oneof![value(), select(WORDS).prop_map(Value::from)]);
    let files = vec(any::<String>(), 0..3);
    let told = (files, option::of(any::<String>()), option::of(usage()));
    let parts = (vec(part, 0..3), data, any::<bool>(), object(), told);
    parts.prop_map(|(content, data, shared, metadata, (files, command, usage))| {
        let mut output = ToolOutput::parts(content);
        output = match data {
            Some(Value::Object(fields)) if shared => output.with_structured_text("content", fields),
            Some(data) => output.with_structured(data),
            None => output,
        };
        output = files.into_iter().fold(output, ToolOutput::with_file_modified);
        output = metadata.into_iter().fold(output, |output, (key, value)| output.with_metadata(key, value));
        output = command.into_iter().fold(output, ToolOutput::with_command_executed);
        usage.into_iter().fold(output, ToolOutput::with_usage)
    })
}

fn usage() -> impl Strategy<Value = Usage> {
    let count = || option::of(any::<u64>());
    let known = (any::<u64>(), count(), count(), (count(), count(), count()));
    known.prop_map(|(wall, cpu, memory, net)| {
        let mut usage = Usage::lasting(Duration::from_millis(wall));
        (usage.cpu_ms, usage.memory_peak_bytes) = (cpu, memory);
        (usage.net_connections, usage.net_up_bytes, usage.net_down_bytes) = net;
        usage
    })
}

/// An error with everything that an error may have, but a source.
pub(crate) fn error() -> impl Strategy<Value = CallError> {
    let effect = select(vec![Effect::NotStarted, Effect::Failed, Effect::Unknown]);
    let reason = option::of(select(vec![
        Reason::Zombie,
        Reason::WouldDeadlock,
        Reason::ResultBudget,
        Reason::Journal,
    ]));
    let stopped = option::of(select(vec![RetryStopped::Attempts, RetryStopped::Hint, RetryStopped::Zombie]));
    let place = (any::<String>(), any::<String>());
    let places = vec(place.prop_map(|(pointer, message)| ValidationError { pointer, message }), 0..3);
    let first =
        (select(ErrorKind::ALL), any::<String>(), any::<u32>(), effect, any::<bool>(), any::<String>());
    let turn = option::of(any::<u64>());
    let rest = (option::of(any::<u64>()), reason, stopped, turn, places, any::<bool>(), option::of(output()));
    let one = (first, rest).prop_map(|((kind, message, attempts, effect, retryable, advice), rest)| {
        let (after, reason, stopped, turn, places, visible, output) = rest;
        let mut error = CallError::new(kind, message).after_attempts(attempts).with_advice(advice);
        (error.effect, error.retryable, error.reason) = (effect, retryable, reason);
        (error.retry_stopped, error.user_visible) = (stopped, visible);
        error.suspended = turn;
        error.retry_after = after.map(Duration::from_millis);
        error.validation_errors = places;
        output.into_iter().fold(error, CallError::with_output)
    });
    one.prop_recursive(3, 3, 1, |inner| {
        inner.prop_map(|last| CallError::new(ErrorKind::CircuitOpen, "open").after_error(Box::new(last)))
    })
}

/// An outcome whose times are whole milliseconds.
pub(crate) fn outcome() -> impl Strategy<Value = Outcome> {
    let call = (any::<String>(), any::<String>(), arguments());
    let status = prop_oneof![output().prop_map(Ok), error().prop_map(Err)];
    let routing = select(vec![Routing::ShortCircuit, Routing::Read, Routing::Serial, Routing::Concurrent]);
    let dedupe = select(vec![Dedupe::Fresh, Dedupe::Joined, Dedupe::Replayed, Dedupe::Reconciled]);
    let times = (0..=crate::bounds::ELAPSED_MS_MAX, 0..=crate::bounds::ELAPSED_MS_MAX);
    let flags = (any::<bool>(), any::<bool>());
    let facts = (routing, dedupe, select(Sandbox::ALL.to_vec()), times, any::<u32>(), flags);
    (call, status, facts, option::of(value())).prop_map(|((id, tool, arguments), status, facts, edited)| {
        let (routing, dedupe, sandbox, (queued, ran), run, (cancel_requested, recorded)) = facts;
        let mut outcome = Outcome::new(&Call::with_arguments(id, tool, arguments), routing, status);
        (outcome.dedupe, outcome.sandbox, outcome.run) = (dedupe, sandbox, run);
        (outcome.cancel_requested, outcome.recorded) = (cancel_requested, recorded);
        let time = |millis| Duration::from_millis(millis).into();
        outcome.set_times(time(queued), time(ran));
        outcome.set_edited(edited.map(Into::into));
        outcome
    })
}

/// The lines of a golden file: a name and exact bytes.
pub(crate) fn check_golden(file: &str, cases: &[(&str, Value)]) {
    let written: Vec<String> = cases.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let expect: Vec<&str> = file.lines().collect();
    assert_eq!(written, expect);
}
