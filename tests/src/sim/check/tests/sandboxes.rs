//! Tests of the checks on sandboxes that fail.

use super::{READ, SERIAL, breaks, event, find, program};
use crate::sim::{
    Entry, Fact, HandlerEnd, Program,
    program::{End, OnCancel},
};
use toolyard::{BreakerPolicy, Effect, EventKind, event::Failure};

/// A write whose sandbox fails, and reads behind a breaker that the first failure of their sandbox opens.
fn sandboxed(end: End) -> Program {
    let mut program = program(1, &[&[SERIAL, READ, READ]]);
    for tool in [READ, SERIAL] {
        program.tools[tool].sandboxed = true;
        let policy = BreakerPolicy::default().with_failures_min(1);
        program.tools[tool].guards.breaker = policy;
    }
    let script = &mut program.sessions[0].turns[0].batch.calls[0].script;
    (script.end, script.on_cancel) = (end, OnCancel::Deaf);
    program
}

fn failure(entries: &mut [Entry]) -> &mut Failure {
    let at = event(entries, "c0", EventKind::is_terminal);
    match &mut entries[at].fact {
        Fact::Event(event) => match &mut event.kind {
            EventKind::Failed(failure) => failure,
            other => panic!("c0 ended with {other:?}"),
        },
        other => panic!("no event: {other:?}"),
    }
}

/// SM-3.
#[test]
fn an_unknown_effect_of_a_call_that_did_not_start_is_found() {
    breaks("SM-3", &sandboxed(End::NoSandbox), |entries| failure(entries).outcome = Effect::Unknown);
}

/// SM-3.
#[test]
fn an_attempt_that_did_not_start_but_is_counted_is_found() {
    breaks("SM-3", &sandboxed(End::NoSandbox), |entries| failure(entries).attempts = 1);
}

/// SM-3.
#[test]
fn a_known_effect_of_a_call_that_lost_its_sandbox_is_found() {
    breaks("SM-3", &sandboxed(End::SandboxGone), |entries| failure(entries).outcome = Effect::Failed);
}

/// CB-9.
#[test]
fn a_sandbox_that_is_blamed_for_its_tool_is_found() {
    for rule in ["I8", "SM-3"] {
        breaks(rule, &sandboxed(End::SandboxGone), |entries| {
            let at = find(entries, |fact| matches!(fact, Fact::HandlerEnd(0, _)));
            entries[at].fact = Fact::HandlerEnd(0, HandlerEnd::Scripted(End::Transient));
        });
    }
}
