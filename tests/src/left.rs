//! What an engine leaves, and what the next one may make of it (JR-5, JR-8).

use crate::{call, keyed, tries};
use std::collections::BTreeMap;
use toolyard::{Call, ErrorKind, Outcome, PastCall, Recorder, SessionId};

/// A batch of ten calls of every kind.
pub fn mixed_calls() -> Vec<Call> {
    vec![
        call("r1", "read", 10, "ok"),
        call("r2", "read", 20, "fail"),
        call("s1", "serial", 10, "ok"),
        keyed("k", call("s2", "serial", 10, "ok")),
        call("c1", "concurrent", 10, "ok"),
        call("c2", "concurrent", 20, "fail"),
        tries("i", "idem", 10, &["transient", "ok"]),
        Call::new("nothing", "no_such_tool", "{}"),
        call("s3", "serial", 10, "ok"),
        call("r3", "read", 10, "ok"),
    ]
}

/// What is known of the calls of the first turn of the session `s`, by their ids.
///
/// # Panics
/// If the recorder cannot be read.
pub fn known_calls(recorder: &dyn Recorder) -> BTreeMap<String, PastCall> {
    let turn = recorder.turn(&SessionId::from("s"), 1).expect("the recorder can be read");
    let batches = turn.into_iter().flat_map(|turn| turn.batches);
    let calls = batches.flat_map(|batch| batch.calls);
    calls.map(|call| (call.call.id.to_string(), call)).collect()
}

/// Checks what came of calls that were known when a life ended after so many records: none has lost its result or changed
/// it, and what changes something was not `started` again.
///
/// # Panics
/// If a rule is broken.
pub fn check_resumed(
    cut: usize,
    before: &BTreeMap<String, PastCall>,
    started: &[String],
    outcomes: &[Outcome],
) {
    for (id, past) in before {
        let at = |what: &str| format!("{id}, after {cut} records: {what}");
        let outcome = outcomes.iter().find(|outcome| outcome.call_id.as_str() == id);
        let outcome = outcome.unwrap_or_else(|| panic!("{}", at("has no result")));
        let has_run = started.iter().filter(|started| *started == id).count();
        assert!(has_run <= 1 + usize::from(id == "i"), "{}", at("ran twice in one life"));
        if let Some(end) = &past.end {
            assert_eq!(has_run, 0, "{}", at("ran again after its end"));
            assert_eq!(
                outcome.status.as_ref().map_err(|error| error.kind),
                end.status.as_ref().map_err(|error| error.kind),
                "{}",
                at("its result has changed")
            );
        }
        let Some(last) = past.attempts.last().filter(|_| past.end.is_none()) else { continue };
        let may_repeat = last.is_repeatable || last.retried_after.is_some();
        assert!(has_run == 0 || may_repeat, "{}", at("what it did is done twice"));
        if !may_repeat {
            let kind = outcome.error().map(|error| error.kind);
            assert_eq!(kind, Some(ErrorKind::Interrupted), "{}", at("nobody knows what it did"));
        }
    }
}
