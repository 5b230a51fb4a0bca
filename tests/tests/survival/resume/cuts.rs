//! An engine's life ends after each of its records.

use super::{life, resume};
use std::collections::BTreeMap;
use toolyard::{Call, ErrorKind, Outcome, PastCall, Recorder, SessionId};
use toolyard_tests::{Ledger, call, keyed, tries};

fn calls() -> Vec<Call> {
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

/// What was known of a call when the life ended.
fn known(ledger: &Ledger) -> BTreeMap<String, PastCall> {
    let turn = ledger.turn(&SessionId::from("s"), 1).unwrap();
    let batches = turn.into_iter().flat_map(|turn| turn.batches);
    let calls = batches.flat_map(|batch| batch.calls);
    calls.map(|call| (call.call.id.to_string(), call)).collect()
}

fn check(cut: usize, before: &BTreeMap<String, PastCall>, started: &[String], outcomes: &[Outcome]) {
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

/// I5, JR-1, JR-5, JR-8: wherever a life ends, and the next one too, every call has one result, none that had ended runs
/// again or changes its result, and what changes something starts at most once.
#[tokio::test(start_paused = true)]
async fn no_effect_is_repeated_wherever_the_engine_ends() {
    let whole = Ledger::default();
    let first = life(&whole).await;
    first.engine.session("s").dispatch(calls()).await;
    let mut interrupted = 0;
    for cut in 0..=whole.len() {
        let ledger = whole.cut(cut);
        let (before, second) = (known(&ledger), life(&ledger).await);
        let open = second.engine.open_turns().unwrap();
        if open.is_empty() {
            assert!(before.values().all(|call| call.end.is_some()), "after {cut} records a turn is lost");
            continue;
        }
        let from = ledger.len();
        let outcomes = resume(&second.engine).await;
        assert_eq!(outcomes.len(), calls().len());
        check(cut, &before, &second.log.started(), &outcomes);
        interrupted +=
            outcomes.iter().filter(|it| it.error().is_some_and(|e| e.kind == ErrorKind::Interrupted)).count();
        second.events.check();
        // The second life ends too.
        for cut in from..=ledger.len() {
            let ledger = ledger.cut(cut);
            let (before, third) = (known(&ledger), life(&ledger).await);
            if third.engine.open_turns().unwrap().is_empty() {
                assert!(before.values().all(|call| call.end.is_some()), "after {cut} records a turn is lost");
                continue;
            }
            let outcomes = resume(&third.engine).await;
            check(cut, &before, &third.log.started(), &outcomes);
        }
    }
    assert!(interrupted > 4, "{interrupted}");
}
