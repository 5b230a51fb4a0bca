//! Tests of the checks on agents that outlive their call, on room for results, on threads and on slices.

use super::{READ, SERIAL, breaks, event, find, handler, program, turn};
use crate::sim::{
    Entry, Fact, HandlerStep, Program,
    check::check,
    play,
    program::{ForkPlan, KeyPlan, Placement, Room, Step},
};
use toolyard::EventKind;

/// A read whose handler leaves an agent behind, which then reads and has an agent of its own.
fn late() -> Program {
    let mut program = program(1, &[&[READ]]);
    let agent = |number, first, forks| ForkPlan {
        number,
        shares_concurrent: false,
        cap: None,
        hidden: None,
        barred: Vec::new(),
        cancel_ms: None,
        outlives: true,
        turns: vec![turn(first, &[READ])],
        forks,
    };
    let step = Step::Fork(agent(0, 1, vec![agent(1, 2, Vec::new())]));
    program.sessions[0].turns[0].batch.calls[0].script.steps = vec![step];
    program
}

/// Three serial calls with large results, of which the room holds two.
fn full() -> Program {
    let mut program = program(1, &[&[SERIAL, SERIAL, SERIAL]]);
    program.room = Some(Room { batch: 25_000, session: 1 << 20, engine: 1 << 20 });
    for call in &mut program.sessions[0].turns[0].batch.calls {
        call.script.bytes = 10_000;
    }
    program
}

/// CL-7.
#[test]
fn a_call_that_runs_too_late_is_found() {
    breaks("CL-7", &late(), |entries| {
        let at = find(entries, |fact| matches!(fact, Fact::PlayedLate(0)));
        let mut start = entries[at].clone();
        start.fact = Fact::Handler(1, HandlerStep::Started);
        entries.push(start);
    });
}

/// CL-7.
#[test]
fn a_fork_that_is_made_too_late_is_found() {
    breaks("CL-7", &late(), |entries| {
        let at = find(entries, |fact| matches!(fact, Fact::ForkRefused(1, Some(0))));
        entries[at].fact = Fact::Forked(1, Some(0));
    });
}

/// CL-7.
#[test]
fn a_fork_that_is_refused_too_early_is_found() {
    breaks("CL-7", &late(), |entries| {
        let at = find(entries, |fact| matches!(fact, Fact::Forked(0, None)));
        entries[at].fact = Fact::ForkRefused(0, None);
    });
}

/// The violations of CC-4 if the program had had this room.
fn with_room(batch: usize, session: usize) -> Vec<&'static str> {
    let report = play(&full());
    assert_eq!(report.violations, []);
    let room = Some(Room { batch, session, engine: 1 << 20 });
    let found = check(&Program { room, ..full() }, &report.entries);
    found.into_iter().map(|violation| violation.rule).filter(|rule| *rule == "CC-4").collect()
}

/// CC-4: a result that takes more than there is, and one that is refused although there is room.
#[test]
fn results_that_break_their_bound_are_found() {
    assert_eq!(with_room(25_000, 1 << 20), Vec::<&str>::new());
    assert_eq!(with_room(15_000, 1 << 20), ["CC-4"], "of the batch");
    assert_eq!(with_room(25_000, 2_000), ["CC-4"], "of the session");
    assert_eq!(with_room(100_000, 1 << 20), ["CC-4"], "too much");
}

/// Two calls with large results, of which there is room for one; then, in a turn of its own, a call with the key of the
/// other, whose tool must not run twice.
fn shared() -> Program {
    let mut program = program(1, &[&[SERIAL, SERIAL]]);
    program.room = Some(Room { batch: 15_000, session: 1 << 20, engine: 1 << 20 });
    let turns = &mut program.sessions[0].turns;
    turns[0].batch.calls.iter_mut().for_each(|call| call.script.bytes = 10_000);
    turns.push(turn(2, &[SERIAL]));
    turns[0].batch.calls[1].key = Some(KeyPlan { key: 0, args: 0 });
    turns[1].batch.calls[0].key = Some(KeyPlan { key: 0, args: 0 });
    program
}

/// Lets a call be refused with another message.
fn tell_otherwise(entries: &mut [Entry], call: &str) {
    let at = event(entries, call, EventKind::is_terminal);
    let Fact::Event(told) = &mut entries[at].fact else { unreachable!("an event") };
    let EventKind::Failed(failure) = &mut told.kind else { unreachable!("a failure") };
    failure.message.push('!');
}

/// CC-4, ID-3: a call that does not run is refused for want of room as the call with its key was, and not otherwise.
#[test]
fn a_refusal_that_nobody_was_given_before_is_found() {
    breaks("CC-4", &shared(), |entries| tell_otherwise(entries, "c2"));
    breaks("CC-4", &shared(), |entries| tell_otherwise(entries, "c1"));
    breaks("CC-4", &shared(), |entries| {
        let ran = event(entries, "c1", |kind| matches!(kind, EventKind::Attempt));
        entries.remove(ran);
    });
}

/// CC-4, V4: it is not kept for a call that may run again.
#[test]
fn a_kept_refusal_of_a_call_that_may_run_again_is_found() {
    let report = play(&shared());
    assert_eq!(report.violations, []);
    let mut repeatable = shared();
    repeatable.tools[SERIAL].guards.idempotent = true;
    let found = check(&repeatable, &report.entries);
    assert!(found.iter().any(|violation| violation.rule == "CC-4"), "{found:#?}");
}

/// CC-1, I3: two blocking handlers on the one thread.
#[test]
fn handlers_without_threads_are_found() {
    let mut program = program(2, &[&[READ, READ]]);
    (program.threads, program.tools[READ].placement) = (Some(1), Placement::Blocking);
    breaks("I3", &program, |entries| {
        let ended = handler(entries, 0, HandlerStep::Ended);
        let moved = entries.remove(ended);
        entries.push(moved);
    });
}
