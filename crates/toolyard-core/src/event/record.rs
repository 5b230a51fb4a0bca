//! Checks the events against their documents: every kind against `docs/events.schema.json` and `docs/events.md`.

use super::{
    Approval, CallDetails, ConfirmationRequest, ConfirmationResolution, DrainStep, Epoch, Event,
    EventKind as E, Failure, Line, SettledBy,
};
use crate::{
    AgentPath, BreakerState, CallDigest, CallError, Decision, Dedupe, ErrorKind, Reason, RequestId, Sandbox,
    SessionId, SideEffects, ToolClass, ToolOutput, Usage,
};
use jsonschema::Validator;
use serde_json::{Value, json};
use std::{collections::BTreeSet, fs, path::Path, sync::Arc, time::Duration};

fn document(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    fs::read_to_string(docs.join(name)).unwrap()
}

fn schema() -> Value {
    serde_json::from_str(&document("events.schema.json")).unwrap()
}

/// The schema, which here rejects fields that it does not name.
fn strict() -> Validator {
    let mut schema = schema();
    schema["unevaluatedProperties"] = json!(false);
    jsonschema::validator_for(&schema).unwrap()
}

fn failure(kind: ErrorKind, dedupe: Dedupe) -> Failure {
    let mut error = CallError::new(kind, "why");
    error.reason = Some(Reason::Zombie);
    Failure { dedupe, ..Failure::new("read_file".into(), &error, 1, 2) }
}

/// All that a tool tells of a call.
fn details(partial_output: Option<&str>) -> Option<Box<CallDetails>> {
    let usage = Usage::lasting(Duration::from_millis(5)).cpu(Duration::from_millis(3)).memory_peak(9);
    let usage = usage.network(2, 30, 400);
    let output = ToolOutput::text("").with_file_modified("a.md").with_command_executed("ls");
    let output = output.with_metadata("n", 1).with_usage(usage);
    let details = CallDetails::of_output(&output).unwrap();
    Some(Box::new(CallDetails { partial_output: partial_output.map(str::to_owned), ..*details }))
}

/// The kind after this one, with all its fields. A new kind must be added here, or this does not compile.
fn next(kind: &E) -> Option<E> {
    let tool_name: Arc<str> = "read_file".into();
    let digest = CallDigest::of_text("read_file", "{}", &SessionId::from("s"));
    Some(match kind {
        E::Received { .. } => E::InputInvalid(failure(ErrorKind::InvalidInput, Dedupe::Joined)),
        E::InputInvalid(_) => E::Denied(failure(ErrorKind::FsDenied, Dedupe::Joined)),
        E::Denied(_) => E::Failed(Failure {
            edited: true,
            details: details(Some("half")),
            ..failure(ErrorKind::Timeout, Dedupe::Replayed)
        }),
        E::Failed(_) => E::Completed {
            tool_name,
            duration_ms: 1,
            queue_ms: 0,
            bytes: 5,
            dedupe: Dedupe::Fresh,
            sandbox: Sandbox::Host,
            cancel_requested: false,
            edited: true,
            details: details(None),
        },
        E::Completed { .. } => E::Suspended { tool_name },
        E::Suspended { .. } => E::ConfirmationRequested(Box::new(ConfirmationRequest {
            tool_name,
            side_effects: SideEffects::Write,
            expires_ms: 300_000,
            request: RequestId::new(5, 7, 9),
            digest,
            input_summary: "{}".to_owned(),
            projected_modifications: vec!["a.md".to_owned()],
            shares: Some(RequestId::new(5, 6, 9)),
        })),
        E::ConfirmationRequested(_) => E::ConfirmationResolved(Box::new(ConfirmationResolution {
            approved: true,
            decision: Some(Decision::Always),
            who: Some("ada".to_owned()),
            reason: Some("it is fine".to_owned()),
            error: Some(ErrorKind::UserDenied),
            by: Some(SettledBy::Pattern),
            digest: Some(digest),
            input_summary: Some("{}".to_owned()),
            projected_modifications: vec!["b.md".to_owned()],
        })),
        E::ConfirmationResolved(_) => E::Called {
            tool_name,
            side_effects: SideEffects::Read,
            class: ToolClass::Read,
            queue_ms: 0,
            policy_version: 1,
            approval: Some(Approval::Remembered),
            digest: Some(digest.into()),
            edited: true,
        },
        E::Called { .. } => E::Attempt,
        E::Attempt => E::OutputDelta { text: "half".to_owned() },
        E::OutputDelta { .. } => E::Retry { delay_ms: 500, code: ErrorKind::Transient },
        E::Retry { .. } => E::LateResult { ok: true },
        E::LateResult { .. } => E::BreakerTransition {
            tool_name: Some(tool_name),
            backend: Some("api".into()),
            sandbox: Some(Sandbox::Process),
            from: BreakerState::Closed,
            to: BreakerState::Open,
        },
        E::BreakerTransition { .. } => E::ZombiesReleased { tool_name, count: 1 },
        E::ZombiesReleased { .. } => E::PolicyChanged { version: 2 },
        E::PolicyChanged { .. } => E::PoolResized { class: ToolClass::Read, from: 20, to: 5 },
        E::PoolResized { .. } => E::SessionOpened,
        E::SessionOpened => E::SessionRecovered { epoch: Epoch::new(5), interrupted: 1, open: 2 },
        E::SessionRecovered { .. } => E::SessionClosed,
        E::SessionClosed => E::TurnStarted { calls: Some(1) },
        E::TurnStarted { .. } => E::TurnEnded { ok: 1, failed: 0 },
        E::TurnEnded { .. } => E::TurnCancelled,
        E::TurnCancelled => E::AgentForked { child: "root/1".to_owned() },
        E::AgentForked { .. } => E::AgentJoined { child: "root/1".to_owned() },
        E::AgentJoined { .. } => E::EngineStarted { version: "0.1.0".to_owned(), epoch: Epoch::new(5) },
        E::EngineStarted { .. } => E::EngineDrain { step: DrainStep::Refuse },
        E::EngineDrain { .. } => return None,
    })
}

fn every_kind() -> Vec<E> {
    let digest = CallDigest::of_text("read_file", "{}", &SessionId::from("s"));
    let first = E::Received { tool_name: "read_file".into(), bytes: 2, digest: Some(digest.into()) };
    std::iter::successors(Some(first), next).collect()
}

/// An event with all fields set.
fn full(kind: E) -> Event {
    let of_call = kind.is_of_call();
    let mut event = Event::new(SessionId::from("s"), AgentPath::root(), kind);
    (event.seq, event.position) = (1, 1);
    (event.wall_ms, event.mono_us) = (1_700_000_000_000, 17);
    (event.turn, event.batch) = (Some(1), Some(1));
    if of_call {
        (event.run, event.call_id, event.index) = (Some(0), Some("call_1".into()), Some(0));
        event.attempt = Some(1);
    }
    event
}

/// The fields of an event that are not common to all kinds.
fn own_fields(event: &Event) -> BTreeSet<String> {
    let common = [
        "v", "seq", "position", "wall_ms", "mono_us", "session", "agent", "turn", "batch", "run", "call_id",
        "index", "attempt", "event",
    ];
    let Value::Object(fields) = serde_json::to_value(event).unwrap() else { unreachable!() };
    fields.into_iter().map(|(name, _)| name).filter(|name| !common.contains(&name.as_str())).collect()
}

/// The fields in a kind's row of the document's table.
fn row(document: &str, name: &str) -> BTreeSet<String> {
    let begin = format!("| `{name}` | ");
    let row = document.lines().find_map(|line| line.strip_prefix(&begin));
    let fields = row.unwrap_or_else(|| panic!("no row of {name}")).split(" | ").next().unwrap();
    let named = fields.split('`').skip(1).step_by(2);
    named.map(|field| field.trim_end_matches('?').to_owned()).collect()
}

/// OB-1: the list of names matches the kinds.
#[test]
fn every_kind_has_its_name_in_the_list() {
    let names: Vec<_> = every_kind().iter().map(E::name).collect();
    assert_eq!(names, E::NAMES);
}

/// OB-2: written events match the schema, with all fields and with as few as possible.
#[test]
fn every_kind_fits_the_schema() {
    let schema = strict();
    for kind in every_kind() {
        let event = full(kind);
        let text = serde_json::to_value(&event).unwrap();
        let errors: Vec<_> = schema.iter_errors(&text).map(|error| error.to_string()).collect();
        assert!(errors.is_empty(), "{text}: {errors:?}");
        assert_eq!(Line::read(&text.to_string()), Ok(Line::Event(Box::new(event))), "{text}");
        let mut odd = text.clone();
        odd["surplus"] = json!(1);
        assert!(!schema.is_valid(&odd), "the strict schema accepts an unknown field: {odd}");
        for field in own_fields(&full(event_of(&text))) {
            let mut less = text.clone();
            less.as_object_mut().unwrap().remove(&field);
            let is_needed = serde_json::from_value::<Event>(less.clone()).is_err();
            assert_eq!(!schema.is_valid(&less), is_needed, "{} without {field}", text["event"]);
        }
    }
}

fn event_of(text: &Value) -> E {
    serde_json::from_value::<Event>(text.clone()).unwrap().kind
}

/// OB-2: the words of the schema are those of the types, and complete.
#[test]
fn the_schema_has_every_word() {
    let words = |name: &str| -> BTreeSet<String> {
        let words = schema()["$defs"][name]["enum"].as_array().unwrap().clone();
        words.iter().map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let set = |all: &[&str]| -> BTreeSet<String> { all.iter().map(ToString::to_string).collect() };
    assert_eq!(words("code"), set(&ErrorKind::ALL.iter().map(|kind| kind.code()).collect::<Vec<_>>()));
    assert_eq!(words("breaker_state"), set(&BreakerState::ALL.map(BreakerState::as_str)));
    assert_eq!(words("sandbox"), set(&Sandbox::ALL.map(Sandbox::as_str)));
    assert_eq!(words("side_effects"), set(&SideEffects::ALL.map(SideEffects::as_str)));
    let reasons = schema()["$defs"]["failure"]["properties"]["reason"]["enum"].clone();
    for reason in reasons.as_array().unwrap() {
        assert!(serde_json::from_value::<Reason>(reason.clone()).is_ok(), "{reason}");
    }
    let classes: Vec<_> = crate::error::OldClass::ALL.iter().map(|class| class.as_str()).collect();
    assert_eq!(words("class"), set(&classes));
}

/// OB-1b: the document's table has every kind with its fields and aliases.
#[test]
fn the_document_has_every_kind_and_its_fields() {
    let document = document("events.md");
    for kind in every_kind() {
        let name = kind.name();
        for alias in kind.aliases() {
            assert!(document.contains(&format!("`{alias}`")), "{name} is also {alias}");
        }
        assert_eq!(row(&document, name), own_fields(&full(kind)), "{name}");
    }
}

/// OB-1, OB-2: each example in the document is an event exactly as it would be written, and every kind has one.
#[test]
fn the_examples_are_events() {
    let document = document("events.md");
    let schema = strict();
    let mut names = BTreeSet::new();
    for line in document.lines().filter(|line| line.starts_with("{\"v\":")) {
        let Ok(Line::Event(event)) = Line::read(line) else { panic!("not an event: {line}") };
        let value: Value = serde_json::from_str(line).unwrap();
        assert!(schema.is_valid(&value), "{line}");
        assert_eq!(serde_json::to_string(&event).unwrap(), line, "as it is written");
        names.insert(event.kind.name());
    }
    assert_eq!(names, E::NAMES.iter().copied().collect());
}

/// OB-3: thousands of events wait in queues and lists, and each is copied on its way there. What is large and rare in one
/// is boxed.
#[test]
fn an_event_is_small() {
    assert!(size_of::<Event>() <= 232, "{}", size_of::<Event>());
}
