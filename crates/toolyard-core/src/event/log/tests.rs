//! Consistent logs, and the faults that each kind of damage reveals.

use super::*;
use crate::{
    AgentPath, CallDigest, CallError, Decision, Dedupe, ErrorKind, RequestId, Sandbox, SideEffects,
    ToolClass,
    event::{
        Approval, ConfirmationRequest, ConfirmationResolution, DrainStep, Epoch, EventKind as E, Failure,
        SettledBy,
    },
};

fn digest(text: &str) -> CallDigest {
    CallDigest::of_text("t", text, &SessionId::from("s"))
}

fn failed(kind: ErrorKind, attempts: u32) -> Failure {
    let mut error = CallError::new(kind, "x");
    error.attempts = attempts;
    Failure::new("t".into(), &error, 0, 0)
}

fn received(text: &str) -> E {
    E::Received { tool_name: "t".into(), bytes: 2, digest: Some(digest(text).into()) }
}

fn called(text: &str, approval: Option<Approval>) -> E {
    E::Called {
        tool_name: "t".into(),
        side_effects: SideEffects::Write,
        class: ToolClass::Serial,
        queue_ms: 0,
        policy_version: 1,
        approval,
        digest: Some(digest(text).into()),
        edited: false,
    }
}

fn done() -> E {
    E::Completed {
        tool_name: "t".into(),
        duration_ms: 0,
        queue_ms: 0,
        bytes: 0,
        dedupe: Dedupe::Fresh,
        sandbox: Sandbox::Host,
        cancel_requested: false,
        edited: false,
        details: None,
    }
}

fn asked(text: &str) -> E {
    E::ConfirmationRequested(Box::new(ConfirmationRequest {
        shares: None,
        tool_name: "t".into(),
        side_effects: SideEffects::Write,
        expires_ms: 1,
        request: RequestId::new(5, 1, 9),
        digest: digest(text),
        input_summary: "{}".to_owned(),
        projected_modifications: Vec::new(),
    }))
}

fn answered(text: &str) -> E {
    E::ConfirmationResolved(Box::new(ConfirmationResolution {
        approved: true,
        decision: Some(Decision::Allow),
        who: Some("ada".to_owned()),
        reason: None,
        error: None,
        by: Some(SettledBy::Approver),
        digest: Some(digest(text)),
        input_summary: None,
        projected_modifications: Vec::new(),
    }))
}

/// The same events, if the person who approved the call changed its arguments.
fn edited(mut kind: E) -> E {
    match &mut kind {
        E::ConfirmationResolved(it) => it.input_summary = Some("{}".to_owned()),
        E::Called { edited, .. } | E::Completed { edited, .. } => *edited = true,
        E::Failed(failure) => failure.edited = true,
        _ => {}
    }
    kind
}

/// Numbers the events of one session; each belongs to the call of this index or to the turn.
fn log(events: Vec<(Option<u32>, Option<u32>, E)>) -> Vec<Event> {
    let numbered = (1..).zip(events);
    let event = |(seq, (index, attempt, kind)): (u64, (Option<u32>, Option<u32>, E))| {
        let mut event = Event::new("s".into(), AgentPath::root(), kind);
        (event.seq, event.position, event.mono_us, event.wall_ms) = (seq, seq, seq * 1000, seq);
        (event.turn, event.batch) = (Some(1), Some(1));
        if let Some(index) = index {
            (event.run, event.index) = (Some(0), Some(index));
            event.call_id = Some(format!("c{index}").into());
        }
        event.attempt = attempt;
        event
    };
    numbered.map(event).collect()
}

/// A session with a turn of two calls: one needed approval, the other fails at its second attempt.
fn whole() -> Vec<Event> {
    let at = |index, kind| (Some(index), None, kind);
    let tries = |index, attempt, kind| (Some(index), Some(attempt), kind);
    log(vec![
        (None, None, E::SessionOpened),
        (None, None, E::TurnStarted { calls: Some(2) }),
        at(0, received("a")),
        at(1, received("b")),
        at(0, asked("a")),
        at(0, answered("a")),
        at(0, called("a", Some(Approval::Asked))),
        tries(0, 1, E::Attempt),
        at(0, done()),
        at(1, called("b", None)),
        tries(1, 1, E::Attempt),
        tries(1, 1, E::Retry { delay_ms: 1, code: ErrorKind::Transient }),
        tries(1, 2, E::Attempt),
        at(1, E::Failed(failed(ErrorKind::Timeout, 2))),
        (None, None, E::TurnEnded { ok: 1, failed: 1 }),
        tries(1, 2, E::LateResult { ok: true }),
        (None, None, E::SessionClosed),
    ])
}

fn faults(events: &[Event]) -> Vec<String> {
    let mut checker = LogChecker::default();
    let read = (1..).zip(events).flat_map(|(at, event)| checker.read(at, event)).collect::<Vec<_>>();
    let all = read.into_iter().chain(checker.unfinished());
    all.map(|fault| format!("{} {}", fault.at, fault.what)).collect()
}

/// The faults after one change to the whole log.
fn after(change: impl FnOnce(&mut Vec<Event>)) -> Vec<String> {
    let mut events = whole();
    change(&mut events);
    faults(&events)
}

/// I1, I2: a consistent log has no fault; a freed session name starts anew, beside other sessions.
#[test]
fn whole_logs_have_no_fault() {
    assert_eq!(faults(&whole()), [""; 0]);
    let again = [whole(), whole()].concat();
    let is_again =
        |fault: &String| ["runs backwards", "another event has"].iter().any(|again| fault.contains(again));
    assert!(faults(&again).iter().all(is_again), "{:?}", faults(&again));
    let mut later = whole();
    later.iter_mut().for_each(|event| event.mono_us += 1_000_000);
    later.iter_mut().for_each(|event| event.wall_ms += 1_000);
    later.iter_mut().for_each(|event| event.position += 34);
    let mut other = whole();
    other.iter_mut().for_each(|event| event.session = "u".into());
    other.iter_mut().for_each(|event| event.position += 17);
    let beside = whole().into_iter().zip(other).flat_map(|(one, other)| [one, other]);
    let events: Vec<_> = beside.chain(later).collect();
    assert_eq!(faults(&events), [""; 0]);
    let mut checker = LogChecker::default();
    (1..).zip(&events).for_each(|(at, event)| drop(checker.read(at, event)));
    let counts = checker.counts();
    assert_eq!((counts.events, counts.calls, counts.sessions), (51, 6, 3));
}

/// I2: every event that is missing, duplicated or misplaced is found at its position.
#[test]
fn one_event_too_few_too_many_or_elsewhere_is_found() {
    for at in 0..whole().len() - 1 {
        let found = after(|events| drop(events.remove(at)));
        assert!(found[0].starts_with(&format!("{} event {} is missing", at + 1, at + 1)), "{found:?}");
        let found = after(|events| events.swap(at, at + 1));
        assert!(found[0].starts_with(&format!("{} ", at + 1)), "{found:?}");
    }
    for at in 0..whole().len() {
        let found = after(|events| events.insert(at, events[at].clone()));
        assert!(found[0].starts_with(&format!("{} event {} comes after", at + 2, at + 1)), "{found:?}");
    }
}

/// OB-1, OB-2: if the numbers are repaired, a missing event still contradicts the rest of its call or turn.
#[test]
fn a_log_that_is_numbered_anew_still_contradicts() {
    for at in 0..whole().len() {
        let found = after(|events| {
            events.remove(at);
            (1..).zip(events.iter_mut()).for_each(|(seq, event)| (event.seq, event.position) = (seq, seq));
        });
        // Sessions, streamed output and late results are not counted; a missing start of a turn shows at its end.
        let is_free =
            ["session.opened", "session.closed", "dispatch.late_result"].contains(&whole()[at].kind.name());
        assert_eq!(found.is_empty(), is_free, "{} left out: {found:?}", whole()[at].kind.name());
    }
}

/// SM-9: what nothing else shows, the positions do: events that were cut off or left out with their numbers repaired,
/// and events that are two in one place.
#[test]
fn positions_show_what_numbers_do_not() {
    let mut engine =
        Event::new(ENGINE_SESSION.into(), AgentPath::root(), E::EngineDrain { step: DrainStep::Stopped });
    (engine.seq, engine.position) = (1, 18);
    let with = |change: fn(&mut Vec<Event>), last: &Event| {
        after(|events| {
            change(events);
            events.push(last.clone());
        })
    };
    assert_eq!(with(|_| {}, &engine), [""; 0]);
    let cut = with(|events| drop(events.pop()), &engine);
    assert_eq!(cut, ["17 1 event more is missing than the sessions show, at position 17"]);
    engine.position = 0;
    assert_eq!(with(|_| {}, &engine), ["18 it has no position"]);
    engine.position = 7;
    assert_eq!(with(|_| {}, &engine), ["18 another event has its position 7"]);
    let swapped = after(|events| (events[4].position, events[5].position) = (6, 5));
    assert_eq!(swapped, ["6 its position runs backwards, from 6 to 5"]);
    let later = with(
        |events| events.iter_mut().for_each(|event| event.position += 2),
        &Event { position: 2, ..engine },
    );
    assert_eq!(later, ["18 1 event more is missing than the sessions show, at position 1"]);
}

/// I14: the call that runs is the one that was approved, and says whether it was.
#[test]
fn what_runs_is_what_was_approved() {
    let digests = after(|events| events[6].kind = called("b", Some(Approval::Asked)));
    assert!(digests[0].starts_with("7 the call that runs is not the one approved"), "{digests:?}");
    let says = after(|events| events[6].kind = called("a", None));
    assert_eq!(says, ["7 it states approval 'none', but the approver was asked"]);
    let says = after(|events| events[9].kind = called("b", Some(Approval::Asked)));
    assert_eq!(says, ["10 it states approval 'asked', but the approver was not asked"]);
    assert_eq!(after(|events| events[9].kind = called("b", Some(Approval::Remembered))), [""; 0]);
    let other = after(|events| events[9].kind = called("x", None));
    assert!(other[0].starts_with("10 'tool.called' has digest"), "{other:?}");
}

/// SM-5: arguments that were changed are told with the answer, at the call and at its end; they have a digest of their
/// own.
#[test]
fn changed_arguments_are_told_by_all_events_of_a_call() {
    let changed = |places: &[usize]| {
        after(|events| {
            (events[5].kind, events[6].kind) = (answered("x"), called("x", Some(Approval::Asked)));
            places.iter().for_each(|at| events[*at].kind = edited(events[*at].kind.clone()));
        })
    };
    assert_eq!(changed(&[5, 6, 8]), [""; 0]);
    assert_eq!(changed(&[5, 6]), ["9 'tool.completed' has edited false, expected true"]);
    assert_eq!(changed(&[5, 8])[0], "7 'tool.called' has edited false, expected true");
    let untold = changed(&[6, 8]);
    assert_eq!(untold[1], "7 'tool.called' has edited true, expected false");
    let failed = after(|events| events[13].kind = edited(E::Failed(failed(ErrorKind::Timeout, 2))));
    assert_eq!(failed, ["14 'tool.failed' has edited true, expected false"]);
}

/// I2, OB-2: fields that contradict earlier events.
#[test]
fn changed_fields_are_found() {
    let is = |found: Vec<String>, expect: &str| assert_eq!(found, [expect]);
    is(after(|events| events[6].call_id = Some("x".into())), "7 'tool.called' has call_id x, expected c0");
    is(after(|events| events[6].turn = None), "7 'tool.called' has turn none, expected 1");
    is(after(|events| events[6].run = Some(3)), "7 'tool.called' has run 3, expected 0");
    is(after(|events| events[6].agent = "root/1".into()), "7 'tool.called' has agent root/1, expected root");
    is(after(|events| events[12].attempt = Some(3)), "13 'dispatch.attempt' has attempt 3, expected 2");
    is(after(|events| events[11].attempt = Some(2)), "12 'dispatch.retry' has attempt 2, expected 1");
    is(after(|events| events[15].attempt = Some(1)), "16 'dispatch.late_result' has attempt 1, expected 2");
    assert_eq!(after(|events| events[6].index = None)[0], "7 'tool.called' has no call id");
    is(after(|events| events[6].mono_us = 1), "7 its mono_us runs backwards, from 6000 to 1");
    is(after(|events| events[6].wall_ms = 1), "7 its wall_ms runs backwards, from 6 to 1");
    is(
        after(|events| events[14].kind = E::TurnEnded { ok: 2, failed: 1 }),
        "15 the turn reports 2 calls that ended with an output, but 1 were found",
    );
}

/// I1: a call or turn that has not ended is reported at its start.
#[test]
fn what_is_open_at_the_end_is_told() {
    let found = after(|events| events.truncate(5));
    assert_eq!(found, ["2 the turn has not ended", "3 the call has not ended", "4 the call has not ended"]);
}

/// I1, I2: a second engine in a log begins anew; what the first one left open is reported, and only that.
#[test]
fn a_new_engine_begins_a_new_life() {
    let started = || {
        let kind = E::EngineStarted { version: "0.1.0".to_owned(), epoch: Epoch::new(1) };
        Event::new(ENGINE_SESSION.into(), AgentPath::root(), kind)
    };
    let life = || [vec![started()], whole()].concat();
    assert_eq!(faults(&[life(), life(), life()].concat()), [""; 0]);
    let killed = [life()[..6].to_vec(), life()].concat();
    let open = ["3 the turn has not ended", "4 the call has not ended", "5 the call has not ended"];
    assert_eq!(faults(&killed), open);
    let unmarked = [whole(), whole()].concat();
    assert!(faults(&unmarked).iter().any(|fault| fault.contains("runs backwards")));
    let mut checker = LogChecker::default();
    (1..).zip(&killed).for_each(|(at, event)| drop(checker.read(at, event)));
    assert_eq!((checker.counts().engines, checker.counts().sessions), (2, 2));
}

/// OB-2: an event of an unknown kind has its number like any other.
#[test]
fn strangers_count() {
    let mut checker = LogChecker::default();
    let stranger = |seq| Stranger {
        v: 1,
        seq,
        position: seq,
        wall_ms: 0,
        mono_us: 0,
        session: ENGINE_SESSION.into(),
        name: "engine.sang".to_owned(),
    };
    assert_eq!(checker.pass_over(1, &stranger(1)), []);
    assert_eq!(checker.pass_over(2, &stranger(3)).len(), 1);
    assert_eq!((checker.counts().events, checker.counts().sessions), (2, 0));
}
