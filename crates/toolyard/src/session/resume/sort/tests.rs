use super::*;
use toolyard_core::{CallError, ErrorKind, SideEffects};

fn attempt(spec: &ToolSpec) -> PastAttempt {
    PastAttempt {
        attempt: 1,
        version: spec.version.clone(),
        side_effects: spec.side_effects,
        is_repeatable: spec.is_repeatable(),
        is_recursive: spec.recursive,
        key: None,
        arguments: serde_json::json!({}),
        time_left: Duration::ZERO,
        retried_after: None,
    }
}

fn past(attempts: Vec<PastAttempt>) -> PastCall {
    PastCall {
        call: Call::new("a", "t", "{}"),
        is_cancelled: false,
        is_unsure: false,
        has_dispatched: false,
        attempts,
        end: None,
        question: None,
        reconciled: 0,
        done: None,
    }
}

/// JR-5: which calls that were started may be started again.
#[test]
fn what_was_started_is_repeated_only_if_that_does_no_harm() {
    let [read, write] = [ToolSpec::read("t"), ToolSpec::write("t")];
    let idempotent = ToolSpec::write("t").idempotent();
    let started = |spec: &ToolSpec| past(vec![attempt(spec)]);
    assert_eq!(left(&started(&read), Some(&read)), Left::MayRepeat);
    assert_eq!(left(&started(&idempotent), Some(&idempotent)), Left::MayRepeat);
    assert_eq!(left(&started(&write), Some(&write)), Left::Unknown);
    assert_eq!(left(&started(&read), None), Left::Unknown, "the tool is gone");
    assert_eq!(left(&started(&write), Some(&idempotent)), Left::Unknown, "it was not idempotent then");
    assert_eq!(left(&started(&idempotent), Some(&write)), Left::Unknown, "it is not idempotent now");
    let mut newer = read.clone();
    newer.version = "2".to_owned();
    assert_eq!(left(&started(&read), Some(&newer)), Left::Unknown, "the version has changed");
    let nested = PastCall { has_dispatched: true, ..started(&read) };
    assert_eq!(left(&nested, Some(&read)), Left::Unknown, "its handler has dispatched calls");
    let nested = PastCall { has_dispatched: true, ..past(Vec::new()) };
    assert_eq!(
        left(&nested, Some(&read)),
        Left::Unknown,
        "its handler has dispatched calls, so it was started"
    );
    let mut recursive = attempt(&read);
    recursive.is_recursive = true;
    assert_eq!(left(&past(vec![recursive]), Some(&read)), Left::Unknown);
}

/// JR-5: an attempt whose end is recorded is followed by the next one.
#[test]
fn a_retry_that_was_due_is_made() {
    let write = ToolSpec::write("t");
    let mut failed = attempt(&write);
    failed.retried_after = Some(CallError::new(ErrorKind::Transient, "busy"));
    assert_eq!(left(&past(vec![failed.clone()]), Some(&write)), Left::MayRepeat);
    assert_eq!(left(&past(vec![failed, attempt(&write)]), Some(&write)), Left::Unknown);
}

/// JR-7: where records may be missing, what changes something counts as started.
#[test]
fn where_records_may_be_missing_nothing_that_does_harm_runs() {
    let unsure = PastCall { is_unsure: true, ..past(Vec::new()) };
    assert_eq!(left(&unsure, Some(&ToolSpec::write("t"))), Left::Unknown);
    assert_eq!(left(&unsure, Some(&ToolSpec::read("t"))), Left::NotStarted);
    assert_eq!(left(&unsure, None), Left::Unknown);
    let mut failed = attempt(&ToolSpec::write("t"));
    failed.retried_after = Some(CallError::new(ErrorKind::Transient, "busy"));
    let retried = PastCall { is_unsure: true, ..past(vec![failed]) };
    assert_eq!(left(&retried, Some(&ToolSpec::write("t"))), Left::Unknown, "the next attempt may have begun");
    assert_eq!(left(&past(Vec::new()), Some(&ToolSpec::write("t"))), Left::NotStarted);
    assert!(SideEffects::Read.is_read_only());
}
