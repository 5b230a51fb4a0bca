//! Tests of the permit checks: a good trace, spoilt in one way, must break a certain rule.

use crate::sim::{
    Entry, Fact, PermitChange, Program,
    check::tests::{READ, SERIAL, breaks, find, mixed, program},
    program::{Nested, Step},
};

fn change(entries: &[Entry], is_it: impl Fn(&PermitChange) -> bool) -> usize {
    find(entries, |fact| matches!(fact, Fact::Permits(change) if is_it(change)))
}

fn permit_change(entry: &mut Entry) -> &mut PermitChange {
    match &mut entry.fact {
        Fact::Permits(change) => change,
        other => panic!("not a permit change: {other:?}"),
    }
}

/// The handler of c0 dispatches c1.
fn nested() -> Program {
    let mut program = program(1, &[&[SERIAL, READ]]);
    let batch = &mut program.sessions[0].turns[0].batch;
    let inner = batch.calls.pop().expect("the batch has two calls");
    let batch_of_inner = crate::sim::program::BatchPlan { calls: vec![inner] };
    batch.calls[0].script.steps = vec![Step::Nest(vec![Nested { batch: batch_of_inner, dropped_ms: None }])];
    batch.calls[0].tool = READ;
    program
}

/// I3.
#[test]
fn a_permit_that_is_never_released_is_found() {
    breaks("I3", &mixed(), |entries| {
        let at = entries.iter().rposition(
            |entry| matches!(&entry.fact, Fact::Permits(it) if it.what == "release" && !it.units.is_empty()),
        );
        entries.remove(at.expect("a unit is released"));
    });
}

/// I3.
#[test]
fn a_grant_over_the_width_is_found() {
    breaks("I3", &mixed(), |entries| {
        let at = change(entries, |it| it.what == "open");
        permit_change(&mut entries[at]).units[0].width = 0;
    });
}

/// I4, CC-7.
#[test]
fn a_lease_with_two_running_calls_is_found() {
    breaks("I4", &mixed(), |entries| {
        let at = change(entries, |it| it.what == "quiet");
        entries.remove(at);
    });
}

/// I11.
#[test]
fn a_unit_kept_by_a_parked_handler_is_found() {
    breaks("I11", &nested(), |entries| {
        let at = change(entries, |it| it.what == "park");
        permit_change(&mut entries[at]).units[0].in_use += 1;
    });
}

/// I11.
#[test]
fn a_permit_without_a_handler_is_found() {
    breaks("I11", &mixed(), |entries| {
        entries.retain(|entry| !matches!(entry.fact, Fact::Handler(0, _)));
        let at = change(entries, |it| it.what == "release");
        entries[at..].iter_mut().for_each(|entry| entry.at_us += 10_000_000);
        let (at_us, change) =
            (entries[at].at_us, PermitChange { what: "open".to_owned(), ..PermitChange::default() });
        entries.insert(at, Entry { at_us, fact: Fact::Permits(Box::new(change)) });
    });
}

/// CC-3: c1 waits for c0 and is granted too late.
#[test]
fn a_grantable_waiter_is_found() {
    breaks("CC-3", &mixed(), |entries| {
        let at = change(entries, |it| it.what == "grant" && it.ticket > 0);
        entries.remove(at);
    });
}

/// CC-3b.
#[test]
fn an_aged_waiter_that_is_passed_is_found() {
    breaks("I12", &program(1, &[&[READ, READ], &[READ; 12]]), |entries| {
        let at = change(entries, |it| it.what == "grant" && it.ticket > 0);
        entries.remove(at);
        entries[at..].iter_mut().for_each(|entry| entry.at_us += 10_000_000);
    });
}

/// I12: the last waiter of a session is reported as one of another session.
#[test]
fn a_session_that_is_passed_repeatedly_is_found() {
    breaks("I12", &program(1, &[&[READ, READ], &[READ; 12]]), |entries| {
        let last = entries.iter().rposition(
            |entry| matches!(&entry.fact, Fact::Permits(it) if it.what == "queue" && it.root == Some(1)),
        );
        permit_change(&mut entries[last.expect("its calls queue")]).root = Some(7);
    });
}

/// CC-8.
#[test]
fn a_call_that_is_refused_and_may_wait_is_found() {
    breaks("CC-8", &program(1, &[&[READ, READ, READ]]), |entries| {
        let at = change(entries, |it| it.what == "queue");
        let mut refused = entries[at].clone();
        permit_change(&mut refused).what = "refuse".to_owned();
        entries.insert(at + 1, refused);
    });
}
