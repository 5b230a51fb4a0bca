use super::{
    facts::{DEDUPES, SANDBOXES},
    failure::{EFFECTS, REASONS, RETRY_STOPS},
    *,
};
use crate::{
    FieldError,
    arbitrary::{check_golden, damaged, error, outcome, value},
    bounds::{CALL_ID_BYTES_MAX, META_TEXT_BYTES_MAX, VALIDATION_ERRORS_MAX},
};
use proptest::{option, prelude::*};
use serde_json::{Map, Value, json};
use std::{sync::Arc, time::Duration};
use toolyard_core::{
    AgentPath, Call, CallError, CallTimeout, Dedupe, Effect, ErrorKind, IdempotencyKey, Outcome, Reason,
    RetryStopped, Routing, Sandbox, TimeoutScope, ToolOutput, ValidationError,
};

const SECOND: Duration = Duration::from_secs(1);

fn full_call() -> CallMeta {
    let key = IdempotencyKey::new("order-17").unwrap();
    let meta = CallMeta::default().with_key(key).with_timeout(SECOND).with_deadline(2 * SECOND);
    meta.with_call_id("call_1").unwrap().with_agent("root/researcher/2").unwrap()
}

fn full_failure() -> FailureMeta {
    let mut error = CallError::new(ErrorKind::QueueTimeout, "no permit")
        .after_attempts(2)
        .with_reason(Reason::Zombie)
        .with_retry_stopped(Some(RetryStopped::Deadline));
    error.set_effect(Effect::Unknown);
    error.validation_errors = vec![ValidationError { pointer: "/a".into(), message: "is \"no\"".into() }];
    FailureMeta::of(&error)
}

fn full_result(meta: ResultMeta) -> ResultMeta {
    meta.with_dedupe(Dedupe::Joined)
        .with_times(Duration::from_micros(1_600), Duration::from_micros(2_600))
        .with_sandbox(Sandbox::MicroVm)
        .with_recorded(false)
        .with_edited(json!({"path": "b"}))
        .unwrap()
}

/// SM-11: the exact bytes of each case.
#[test]
fn what_is_written_is_always_the_same() {
    let cases = [
        ("call_empty", CallMeta::default().to_json()),
        ("call_full", full_call().to_json()),
        ("call_shared", Value::Object(full_call().to_shared())),
        ("result_success", ResultMeta::new(1).to_json()),
        ("result_success_shared", Value::Object(ResultMeta::new(1).to_shared())),
        ("result_full", full_result(ResultMeta::new(3)).to_json()),
        ("result_failure", full_result(ResultMeta::of_failure(full_failure())).to_json()),
        ("result_failure_shared", {
            Value::Object(full_result(ResultMeta::of_failure(full_failure())).to_shared())
        }),
        ("failure", full_failure().to_json()),
        ("failure_shared", Value::Object(full_failure().to_shared())),
        ("failure_least", FailureMeta::of(&CallError::new(ErrorKind::NotFound, "no")).to_json()),
    ];
    check_golden(include_str!("../../tests/golden/meta.txt"), &cases);
}

/// SM-11: each of them reads back as it was written, in an object of its own and in a shared one.
#[test]
fn a_meta_reads_back_as_it_was_written() {
    for meta in [CallMeta::default(), full_call()] {
        assert_eq!(CallMeta::read(&meta.to_json()), Ok(meta.clone()));
        assert_eq!(CallMeta::read_shared(&meta.to_shared()), Ok(meta.clone()));
        let text = serde_json::to_string(&meta).unwrap();
        assert_eq!(serde_json::from_str::<CallMeta>(&text).unwrap(), meta);
    }
    let failure = full_failure();
    assert_eq!(FailureMeta::read(&failure.to_json()), Ok(failure.clone()));
    for meta in
        [ResultMeta::new(1), full_result(ResultMeta::new(2)), full_result(ResultMeta::of_failure(failure))]
    {
        assert_eq!(ResultMeta::read(&meta.to_json()), Ok(meta.clone()));
        assert_eq!(ResultMeta::read_shared(&meta.to_shared()), Ok(Some(meta.clone())));
        let text = serde_json::to_string(&meta).unwrap();
        assert_eq!(serde_json::from_str::<ResultMeta>(&text).unwrap(), meta);
    }
}

/// SM-11: what is wrong with a call's meta is refused by the name of its field.
#[test]
fn a_wrong_field_of_a_call_is_named() {
    let times = "must be a whole number of milliseconds, at least 1, and is";
    let agents = "must be root, or root and the names of sub-agents, such as root/researcher, and is";
    let known = "call_id, idempotency_key, timeout_ms, deadline_ms, agent";
    let visible = "an idempotency key must be visible ASCII, but the character at byte 1 is not";
    for (value, error) in [
        (json!("c"), "'meta' must be an object, and is \"c\"".to_owned()),
        (json!({"timeout_ms": 0}), format!("'timeout_ms' {times} 0")),
        (json!({"timeout_ms": 1.5}), format!("'timeout_ms' {times} 1.5")),
        (json!({"deadline_ms": -1}), format!("'deadline_ms' {times} -1")),
        (json!({"deadline_ms": null}), format!("'deadline_ms' {times} null")),
        (json!({"deadline_ms": "1s"}), format!("'deadline_ms' {times} \"1s\"")),
        (json!({"call_id": 7}), "'call_id' must be a string, and is 7".to_owned()),
        (json!({"call_id": ""}), "'call_id' must be a text of 1 to 1024 bytes, and is one of 0".to_owned()),
        (json!({"idempotency_key": null}), "'idempotency_key' must be a string, and is null".to_owned()),
        (json!({"idempotency_key": "a b"}), format!("'idempotency_key': {visible}")),
        (json!({"agent": "boot"}), format!("'agent' {agents} \"boot\"")),
        (json!({"agent": "root/"}), format!("'agent' {agents} \"root/\"")),
        (json!({"agent": []}), format!("'agent' {agents} an array")),
        (json!({"timeout": 1}), format!("'timeout' is unknown; there are {known}")),
    ] {
        assert_eq!(CallMeta::read(&value).unwrap_err().to_string(), error, "{value}");
    }
    let shared = json!({"toolyard/timeout": 1, "timeout_ms": "theirs"});
    let error = CallMeta::read_shared(shared.as_object().unwrap()).unwrap_err();
    assert_eq!(error.field(), "toolyard/timeout");
    assert!(error.to_string().contains("toolyard/timeout_ms"), "{error}");
    assert!(CallMeta::default().with_call_id("").is_err() && CallMeta::default().with_agent("r").is_err());
}

/// SM-11: what others write into a shared object, and the wire's own fields, are left alone.
#[test]
fn fields_of_others_are_ignored() {
    let shared =
        json!({"progressToken": 1, "com.example/toolyard/x": 1, "call_id": 7, "toolyard/deadline_ms": 1e3});
    let meta = CallMeta::read_shared(shared.as_object().unwrap()).unwrap();
    assert_eq!(meta, CallMeta::default().with_deadline(SECOND));
    let mut fields = Map::from_iter([("agent".to_owned(), json!(1)), ("name".to_owned(), json!("t"))]);
    assert!(CallMeta::take(&mut fields).is_err());
    assert_eq!(fields["name"], "t");
    let newer = json!({"attempts": 1, "duration_ms": 5, "sandbox": "host", "since": 2030});
    let meta = ResultMeta::new(1).with_times(Duration::ZERO, Duration::from_millis(5));
    assert_eq!(ResultMeta::read(&newer), Ok(meta));
    assert_eq!(ResultMeta::read_shared(&Map::new()), Ok(None));
}

/// SM-11: what is wrong with a result's meta is refused by the name of its field, too.
#[test]
fn a_wrong_field_of_a_result_is_named() {
    let good = full_result(ResultMeta::of_failure(full_failure())).to_json();
    let whole = "must be a whole number of milliseconds, at most 136 years, and is";
    for (key, value, error) in [
        ("attempts", json!(-1), "'attempts' must be a whole number from 0 to 4294967295, and is -1"),
        (
            "attempts",
            json!(4_294_967_296_u64),
            "'attempts' must be a whole number from 0 to 4294967295, and is 4294967296",
        ),
        (
            "sandbox",
            json!("vm"),
            "'sandbox' must be one of host, process, landlock, wasm, micro_vm, remote, and is \"vm\"",
        ),
        (
            "dedupe",
            json!({"fresh": null}),
            "'dedupe' must be one of fresh, joined, replayed, reconciled, and is an object",
        ),
        ("code", json!("bad"), "'code' must be one of the error codes, and is \"bad\""),
        ("outcome", json!(1), "'outcome' must be one of not_started, failed, unknown, and is 1"),
        ("retryable", json!("yes"), "'retryable' must be true or false, and is \"yes\""),
        ("queued_ms", json!(0.5), &format!("'queued_ms' {whole} 0.5")),
        ("queued_ms", json!(5), "'duration_ms' is not 'queued_ms' and 'ran_ms' together"),
        ("duration_ms", json!(u64::MAX), &format!("'duration_ms' {whole} 18446744073709551615")),
        ("validation_errors", json!(7), "'validation_errors' must be an array, and is 7"),
        ("validation_errors", json!([7]), "'validation_errors[0]' must be an object, and is 7"),
        ("validation_errors", json!([{"pointer": ""}]), "'validation_errors[0].message' is missing"),
    ] {
        let mut bad = good.clone();
        bad[key] = value;
        assert_eq!(ResultMeta::read(&bad).unwrap_err().to_string(), error);
    }
    for key in ["attempts", "duration_ms", "sandbox", "outcome", "retryable"] {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().shift_remove(key);
        let missing = FieldError::Missing { field: key.to_owned() };
        assert_eq!(ResultMeta::read(&bad), Err(missing), "{bad}");
    }
    let mut bad = good.clone();
    bad.as_object_mut().unwrap().shift_remove("code");
    assert_eq!(ResultMeta::read(&bad).unwrap_err().to_string(), "'outcome' is there without a 'code'");
    assert_eq!(FailureMeta::read(&json!({"attempts": 1})), Err(FieldError::Missing { field: "code".into() }));
    let shared = |call: Value| {
        Map::from_iter([("toolyard/call".to_owned(), call), ("toolyard/error".to_owned(), json!({}))])
    };
    let mut other = full_result(ResultMeta::of_failure(full_failure())).to_shared();
    other["toolyard/call"]["attempts"] = json!(3);
    let error = ResultMeta::read_shared(&other).unwrap_err();
    assert_eq!(error.to_string(), "'toolyard/error.attempts' is not that of 'toolyard/call'");
    let error = ResultMeta::read_shared(&shared(ResultMeta::new(1).to_json())).unwrap_err();
    assert_eq!(error.field(), "toolyard/error.attempts");
    assert_eq!(ResultMeta::read_shared(&shared(good)).unwrap_err().field(), "toolyard/call.code");
}

/// SM-11: every text, list and number has a bound, and what is at the bound is taken.
#[test]
fn everything_is_bounded() {
    let taken = |key: &str, value: Value| CallMeta::read(&json!({ key: value })).is_ok();
    let name = "n".repeat(AgentPath::NAME_BYTES_MAX);
    let deepest = format!("root{}", format!("/{name}").repeat(AgentPath::DEPTH_MAX.into()));
    assert!(taken("agent", json!(deepest)) && !taken("agent", json!(format!("{deepest}/1"))));
    assert!(taken("agent", json!("root/1")) && !taken("agent", json!(format!("root/{name}n"))));
    for no_agent in ["root/a b", "root//a", "root/..", "root/-x", "root/_x", "root/1x", "rooted", ""] {
        assert!(!taken("agent", json!(no_agent)), "{no_agent}");
    }
    let id = "é".repeat(CALL_ID_BYTES_MAX / 2);
    assert!(taken("call_id", json!(id)) && !taken("call_id", json!(format!("{id}x"))));
    let key = "k".repeat(IdempotencyKey::LENGTH_MAX);
    assert!(taken("idempotency_key", json!(key)) && !taken("idempotency_key", json!(format!("{key}k"))));
    assert!(taken("timeout_ms", json!(u64::MAX)) && !taken("timeout_ms", json!(1e300)));
    assert!(taken("timeout_ms", json!(1e3)) && !taken("timeout_ms", json!(-0.0)));

    let mut result = full_result(ResultMeta::of_failure(full_failure())).to_json();
    let mut taken = |key: &str, value: Value| {
        let before = std::mem::replace(&mut result[key], value);
        let taken = ResultMeta::read(&result).is_ok();
        result[key] = before;
        taken
    };
    let long = "x".repeat(META_TEXT_BYTES_MAX);
    assert!(taken("edited", json!(long[2..])) && !taken("edited", json!(long[1..])));
    assert!(ResultMeta::new(1).with_edited(json!(long[2..])).is_ok());
    assert_eq!(ResultMeta::new(1).with_edited(json!(long[1..])).unwrap_err().field(), "edited");
    let places = |count: usize, pointer: &str| vec![json!({"pointer": pointer, "message": ""}); count];
    assert!(taken("validation_errors", json!(places(VALIDATION_ERRORS_MAX, ""))));
    assert!(!taken("validation_errors", json!(places(VALIDATION_ERRORS_MAX + 1, ""))));
    assert!(taken("validation_errors", json!(places(1, &long))));
    assert!(!taken("validation_errors", json!(places(1, &format!("{long}x")))));
    let mut error = CallError::new(ErrorKind::InvalidInput, "no");
    let place = ValidationError { pointer: String::new(), message: String::new() };
    error.validation_errors = vec![place; VALIDATION_ERRORS_MAX + 1];
    assert_eq!(FailureMeta::of(&error).validation_errors.len(), VALIDATION_ERRORS_MAX);
}

/// SM-11, SM-5: of an outcome whose changed arguments are too long for a meta, all the rest is there.
#[test]
fn changed_arguments_that_are_too_long_are_left_out() {
    let mut outcome = Outcome::new(&Call::new("c", "t", "{}"), Routing::Read, Ok(ToolOutput::text("")));
    for (bytes, is_there) in [(META_TEXT_BYTES_MAX - 2, true), (META_TEXT_BYTES_MAX - 1, false)] {
        outcome.set_edited(Some(Arc::new(json!("x".repeat(bytes)))));
        let meta = ResultMeta::of(&outcome);
        assert_eq!(meta.edited().is_some(), is_there);
        assert_eq!(ResultMeta::read(&meta.to_json()), Ok(meta));
    }
}

/// SM-11, V3: times are rounded up to whole milliseconds, and none becomes zero, which no engine would run.
#[test]
fn a_caller_never_gets_less_time_than_it_has() {
    for (time, millis) in [
        (Duration::ZERO, 1),
        (Duration::from_nanos(1), 1),
        (Duration::from_micros(1_001), 2),
        (SECOND, 1000),
        (Duration::MAX, u64::MAX),
    ] {
        let meta = CallMeta::default().with_timeout(time).with_deadline(time);
        assert_eq!(meta.to_json(), json!({"timeout_ms": millis, "deadline_ms": millis}));
    }
}

/// SM-11, V3: what is set goes into the call, what is not stays, and comes out of it again.
#[test]
fn a_meta_becomes_part_of_a_call() {
    let mut call = Call::new("own", "t", "{}").deadline(SECOND);
    CallMeta::default().apply(&mut call, TimeoutScope::Call);
    assert_eq!(call, Call::new("own", "t", "{}").deadline(SECOND));
    for (scope, timeout) in [
        (TimeoutScope::Attempt, CallTimeout::of_attempt(SECOND)),
        (TimeoutScope::Call, CallTimeout::of_call(SECOND)),
    ] {
        full_call().apply(&mut call, scope);
        assert_eq!((call.timeout, call.deadline), (Some(timeout), Some(2 * SECOND)));
        assert_eq!((call.id.as_str(), call.idempotency_key.as_deref()), ("call_1", Some("order-17")));
    }
    let sent = CallMeta::of(&call).unwrap();
    assert_eq!(sent.with_agent("root/researcher/2").unwrap(), full_call());
    call.idempotency_key = Some("".into());
    assert_eq!(CallMeta::of(&call).unwrap_err().field(), "idempotency_key");
    call.idempotency_key = None;
    call.id = "".into();
    assert_eq!(CallMeta::of(&call).unwrap_err().field(), "call_id");
}

/// SM-11: the whole milliseconds of a duration are those of its parts, and those that an outcome has.
#[test]
fn the_parts_of_a_duration_add_up() {
    let mut outcome = Outcome::new(&Call::new("c", "t", "{}"), Routing::Read, Ok(ToolOutput::text("")));
    outcome.set_times(Duration::from_micros(600).into(), Duration::from_micros(600).into());
    let meta = ResultMeta::of(&outcome);
    let written = meta.to_json();
    assert_eq!((&written["queued_ms"], &written["ran_ms"]), (&json!(0), &json!(1)));
    assert_eq!(written["duration_ms"], outcome.duration_ms());
    assert_eq!((meta.queued(), meta.ran()), (Duration::ZERO, Duration::from_millis(1)));
}

/// The words that an error names are those that are read.
#[test]
fn every_word_that_is_named_is_read() {
    fn read<T: serde::de::DeserializeOwned>(words: &str) -> usize {
        words.split(", ").filter(|word| serde_json::from_value::<T>((*word).into()).is_ok()).count()
    }
    assert_eq!(read::<Sandbox>(SANDBOXES), Sandbox::ALL.len());
    assert_eq!((read::<Effect>(EFFECTS), read::<Dedupe>(DEDUPES)), (3, 4));
    assert_eq!((read::<Reason>(REASONS), read::<RetryStopped>(RETRY_STOPS)), (8, 5));
}

/// V4: a meta can say every code.
#[test]
fn every_code_reads_back() {
    for kind in ErrorKind::ALL {
        let meta = FailureMeta::of(&CallError::new(*kind, "no"));
        assert_eq!(meta.to_json()["code"], kind.code());
        assert_eq!(FailureMeta::read(&meta.to_json()), Ok(meta));
    }
}

fn read_in_every_way(value: &Value) {
    let _ = (CallMeta::read(value), ResultMeta::read(value), FailureMeta::read(value));
    if let Value::Object(fields) = value {
        let _ = (CallMeta::read_shared(fields), ResultMeta::read_shared(fields));
        let _ = CallMeta::take(&mut fields.clone());
    }
}

proptest! {
    /// SM-11: no JSON makes a reader panic, and what is read is written as it was understood.
    #[test]
    fn no_json_causes_a_panic(value in value()) {
        read_in_every_way(&value);
    }

    /// SM-11: nor does our own JSON with one field replaced.
    #[test]
    fn no_damage_causes_a_panic(
        value in (outcome()).prop_flat_map(|outcome| damaged(Value::Object(ResultMeta::of(&outcome).to_shared()))),
        call in damaged(full_call().to_json()),
        failure in error().prop_flat_map(|error| damaged(FailureMeta::of(&error).to_json())),
    ) {
        [value, call, failure].iter().for_each(read_in_every_way);
    }

    /// SM-11: what is written reads back, whatever is set.
    #[test]
    fn a_call_meta_survives_the_round_trip(
        id in option::of("[^\\x00]{1,20}"),
        key in option::of("[!-~]{1,255}"),
        timeout in option::of(1u64..),
        deadline in option::of(1u64..),
        agent in option::of("root(/([A-Za-z][A-Za-z0-9._-]{0,19}|[1-9][0-9]{0,3})){0,4}"),
    ) {
        let mut meta = CallMeta::default();
        if let Some(id) = id { meta = meta.with_call_id(id).unwrap(); }
        if let Some(key) = key { meta = meta.with_key(IdempotencyKey::new(key).unwrap()); }
        if let Some(millis) = timeout { meta = meta.with_timeout(Duration::from_millis(millis)); }
        if let Some(millis) = deadline { meta = meta.with_deadline(Duration::from_millis(millis)); }
        if let Some(agent) = agent { meta = meta.with_agent(agent).unwrap(); }
        prop_assert_eq!(CallMeta::read(&meta.to_json()), Ok(meta.clone()));
        prop_assert_eq!(CallMeta::read_shared(&meta.to_shared()), Ok(meta));
    }

    /// SM-11: the same for results.
    #[test]
    fn a_result_meta_survives_the_round_trip(outcome in outcome(), edited in option::of(value())) {
        let mut meta = ResultMeta::of(&outcome);
        if let Some(edited) = edited { meta = meta.with_edited(edited).unwrap(); }
        prop_assert_eq!(ResultMeta::read(&meta.to_json()), Ok(meta.clone()));
        prop_assert_eq!(ResultMeta::read_shared(&meta.to_shared()), Ok(Some(meta)));
    }
}
