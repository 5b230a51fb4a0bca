use super::*;
use crate::{
    arbitrary::{check_golden, damaged, outcome, value},
    bounds::LAST_ERRORS_MAX,
};
use proptest::prelude::*;
use serde_json::json;
use toolyard_core::{
    CallError, Content, Dedupe, ErrorKind, Reason, RetryStopped, Sandbox, ToolOutput, Usage, ValidationError,
};

fn of(status: Result<ToolOutput, CallError>) -> Outcome {
    let routing = if status.is_ok() { Routing::Read } else { Routing::Serial };
    Outcome::new(&Call::new("call_1", "t", json!({"a": 1})), routing, status)
}

fn full_output() -> ToolOutput {
    ToolOutput::parts(vec![
        Content::text("two"),
        Content::Image { media_type: "image/png".into(), data: "AA==".into() },
    ])
    .with_structured(json!({"n": 2}))
    .with_file_modified("a.md")
    .with_command_executed("ls")
    .with_metadata("exit_code", 0)
    .with_usage(Usage::lasting(Duration::from_millis(7)).cpu(Duration::from_millis(5)).memory_peak(1 << 20))
}

fn full_error() -> CallError {
    let mut error = CallError::new(ErrorKind::CircuitOpen, "open")
        .after_error(Box::new(CallError::new(ErrorKind::Transient, "HTTP 503").after_attempts(2)))
        .with_reason(Reason::Zombie)
        .with_retry_stopped(Some(RetryStopped::Budget))
        .with_output(full_output());
    (error.retry_after, error.suspended) = (Some(Duration::from_millis(1500)), Some(7));
    error.validation_errors = vec![ValidationError { pointer: "/a".into(), message: "no".into() }];
    error
}

fn full(status: Result<ToolOutput, CallError>) -> Outcome {
    let mut outcome = of(status);
    (outcome.run, outcome.dedupe, outcome.sandbox) = (3, Dedupe::Replayed, Sandbox::Remote);
    (outcome.attempts, outcome.cancel_requested, outcome.recorded) = (2, true, false);
    outcome.set_times(Duration::from_millis(5).into(), Duration::from_millis(7).into());
    outcome.set_edited(Some(json!({"a": 2}).into()));
    outcome
}

fn written(output: ToolOutput) -> Value {
    let outcome = of(Ok(output));
    let written = outcome_to_json(&outcome);
    assert_eq!(outcome_from_json(written.clone()), Ok(outcome));
    written
}

/// SM-11: the exact bytes of each case.
#[test]
fn what_is_written_is_always_the_same() {
    let text_call = Call::new("", "", "{\"a\": ");
    let broken = CallError::new(ErrorKind::InvalidInput, "Invalid JSON");
    let cases = [
        ("text", of(Ok(ToolOutput::text("sunny")))),
        ("data", of(Ok(ToolOutput::json(json!({"n": 1}))))),
        ("full", full(Ok(full_output()))),
        ("error", of(Err(CallError::new(ErrorKind::NotFound, "no such tool")))),
        ("error_full", full(Err(full_error()))),
        ("arguments_as_text", Outcome::new(&text_call, Routing::ShortCircuit, Err(broken))),
    ];
    let cases = cases.map(|(name, outcome)| (name, outcome_to_json(&outcome)));
    check_golden(include_str!("../../tests/golden/outcome.txt"), &cases);
}

/// SM-11: `output` is what a program wants, and `content` is there only where the model reads something else.
#[test]
fn an_output_is_written_once() {
    let check = |output: ToolOutput, expect: Value, content: Option<Value>| {
        let written = written(output);
        assert_eq!((&written["output"], written.get("content")), (&expect, content.as_ref()), "{written}");
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    check(ToolOutput::text("a"), json!("a"), None);
    check(ToolOutput::json(json!({"n": 1})), json!({"n": 1}), None);
    check(ToolOutput::json(json!(null)), json!(null), None);
    check(ToolOutput::json(json!("a")), json!("a"), Some(json!([])));
    check(().into(), json!(""), Some(json!([])));
    check(ToolOutput::text("a").with_structured(json!([1])), json!([1]), Some(json!([text("a")])));
    check(ToolOutput::text("a").with_structured(json!("a")), json!("a"), Some(json!([text("a")])));
    let two = ToolOutput::parts(vec![Content::text("a"), Content::text("b")]);
    check(two, json!("a\nb"), Some(json!([text("a"), text("b")])));
}

/// SM-11, V4, V6: every code is written with its names elsewhere, and read back.
#[test]
fn every_code_has_its_names_and_reads_back() {
    let table = "\
        not_found not_found not_found tool_not_found -32601
        invalid_input schema validation_error invalid_args -32602
        permission_denied internal permission_denied permission_denied -32603
        fs_denied internal permission_denied fs_denied -32603
        net_denied internal permission_denied permission_denied -32603
        user_denied internal user_denied permission_denied -32603
        confirmation_timeout timeout confirmation_timeout permission_denied -32603
        aborted internal permission_denied permission_denied -32603
        budget_exceeded budget_exceeded permission_denied permission_denied -32603
        depth_exceeded internal permission_denied permission_denied -32603
        serial_nesting internal permission_denied permission_denied -32603
        rate_limited transient execution_error tool_failed -32603
        overloaded transient execution_error tool_failed -32603
        queue_timeout timeout timeout tool_failed -32603
        circuit_open circuit_open execution_error tool_failed -32603
        shutting_down internal execution_error tool_failed -32603
        key_mismatch schema validation_error invalid_args -32603
        key_in_progress internal execution_error tool_failed -32603
        already_executed internal execution_error tool_failed -32603
        transient transient execution_error tool_failed -32603
        timeout timeout timeout tool_failed -32603
        execution_error internal execution_error tool_failed -32603
        output_invalid internal execution_error tool_failed -32603
        output_too_large internal execution_error tool_failed -32603
        panic internal execution_error tool_failed -32603
        sandbox_error transient execution_error tool_failed -32603
        deadline_exceeded timeout timeout tool_failed -32603
        cancelled internal cancelled tool_failed -32603
        interrupted internal cancelled tool_failed -32603
        internal internal execution_error tool_failed -32603";
    assert_eq!(table.lines().count(), ErrorKind::ALL.len());
    for line in table.lines() {
        let row: Vec<&str> = line.split_whitespace().collect();
        let kind: ErrorKind = row[0].parse().unwrap();
        let outcome = of(Err(CallError::new(kind, "no").with_output(ToolOutput::failure("half"))));
        let written = outcome_to_json(&outcome);
        let error = &written["error"];
        let names = ["code", "kind", "class", "slug"].map(|name| error[name].as_str().unwrap());
        assert_eq!((&names[..], error["jsonrpc_code"].to_string()), (&row[..4], row[4].to_owned()));
        assert_eq!((&written["success"], &written["output"]), (&json!(false), &Value::Null));
        assert_eq!(outcome_from_json(written), Ok(outcome));
    }
}

/// SM-11: what cannot be read back is the source of an error, and a value that is a string comes back as its text.
#[test]
fn what_cannot_be_read_back_is_known() {
    let mut error = CallError::new(ErrorKind::Internal, "no");
    error.source = Some(std::sync::Arc::new(std::fmt::Error));
    let read = outcome_from_json(outcome_to_json(&of(Err(error)))).unwrap();
    assert!(read.error().unwrap().source.is_none());
    let call = Call::new("c", "t", json!("a \"b\""));
    let outcome = Outcome::new(&call, Routing::Read, Ok(ToolOutput::text("")));
    let read = outcome_from_json(outcome_to_json(&outcome)).unwrap();
    assert_eq!(read.arguments.to_value(), outcome.arguments.to_value());
    let nested = |count: usize| {
        let first = CallError::new(ErrorKind::Transient, "0");
        let nest = |last, _| CallError::new(ErrorKind::Transient, "1").after_error(Box::new(last));
        outcome_to_json(&of(Err((0..count).fold(first, nest))))
    };
    assert!(outcome_from_json(nested(LAST_ERRORS_MAX)).is_ok());
    let error = outcome_from_json(nested(LAST_ERRORS_MAX + 1)).unwrap_err();
    assert!(error.to_string().ends_with("last_error' is inside too many other errors"), "{error}");
}

/// SM-11: what is wrong is refused by the name of its field.
#[test]
fn a_wrong_field_is_named() {
    let (good, failed) =
        (outcome_to_json(&full(Ok(full_output()))), outcome_to_json(&full(Err(full_error()))));
    let check = |good: &Value, pointer: &str, value: Value, expect: &str| {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap() = value;
        assert_eq!(outcome_from_json(bad).unwrap_err().to_string(), expect);
    };
    check(&good, "", json!([]), "'outcome' must be an object, and is an array");
    check(&good, "/call_id", json!(1), "'call_id' must be a string, and is 1");
    check(&good, "/success", json!(false), "'error' is missing");
    check(&failed, "/success", json!(true), "'error' is there although 'success' is true");
    check(
        &good,
        "/routing",
        json!("x"),
        "'routing' must be one of short_circuit, read, serial, concurrent, and is \"x\"",
    );
    check(&good, "/run", json!(0.5), "'run' must be a whole number from 0 to 4294967295, and is 0.5");
    check(&good, "/metadata", json!(1), "'metadata' must be an object, and is 1");
    check(&good, "/files_modified/0", json!(1), "'files_modified[0]' must be a string, and is 1");
    let part = "a part, {type: text, text} or {type: image, media_type, data}";
    check(&good, "/content/1", json!({}), &format!("'content[1]' must be {part}, and is an object"));
    check(&failed, "/error", json!("no"), "'error' must be an object, and is \"no\"");
    check(&failed, "/error/code", json!("no"), "'error.code' must be one of the error codes, and is \"no\"");
    let last = "'error.last_error.attempts' must be a whole number from 0 to 4294967295, and is null";
    check(&failed, "/error/last_error/attempts", json!(null), last);
    let mut missing = good;
    missing.as_object_mut().unwrap().shift_remove("output");
    assert_eq!(outcome_from_json(missing).unwrap_err().to_string(), "'output' is missing");
}

proptest! {
    /// SM-11: an outcome reads back as it was written, as a value and as text.
    #[test]
    fn an_outcome_survives_the_round_trip(outcome in outcome()) {
        let written = outcome_to_json(&outcome);
        let text = written.to_string();
        prop_assert_eq!(outcome_from_json(written), Ok(outcome.clone()));
        let read: Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(outcome_to_json(&outcome_from_json(read).unwrap()).to_string(), text);
    }

    /// SM-11: no JSON makes the reader panic, nor does our own with one field replaced.
    #[test]
    fn no_json_causes_a_panic(
        value in value(),
        damaged in outcome().prop_flat_map(|outcome| damaged(outcome_to_json(&outcome))),
    ) {
        let _ = outcome_from_json(value);
        let _ = outcome_from_json(damaged);
    }
}
