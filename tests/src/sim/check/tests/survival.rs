//! Tests of the checks on retries, keys, rates, breakers and budgets.

use super::{READ, SERIAL, breaks, event, find, handler, program};
use crate::sim::{
    Entry, Fact, HandlerEnd, HandlerStep, Program,
    program::{BreakerOwner, CallPlan, End, KeyPlan, Step},
};
use toolyard::{BreakerPolicy, BreakerState, Budget, Dedupe, EventKind, RetryPolicy};

fn call(program: &mut Program, at: usize) -> &mut CallPlan {
    &mut program.sessions[0].turns[0].batch.calls[at]
}

/// Two reads, the first of which is retried.
fn again() -> Program {
    let mut program = program(2, &[&[READ, READ]]);
    program.tools[READ].guards.retry = RetryPolicy::default();
    call(&mut program, 0).script.first_ends = vec![End::Transient];
    program
}

/// Three calls of the concurrent tool, two of them with the same key.
fn keyed() -> Program {
    let mut program = program(1, &[&[2, 2, 2]]);
    for at in [0, 1] {
        call(&mut program, at).key = Some(KeyPlan { key: 0, args: 0 });
    }
    program
}

/// Reads behind a breaker that opens at the first failure; the last one arrives when it is half-open.
fn broken() -> Program {
    let mut program = program(1, &[&[READ, SERIAL, READ]]);
    program.tools[READ].guards.breaker = BreakerPolicy::default().with_failures_min(1);
    let open = std::time::Duration::from_secs(1);
    let policy = program.tools[READ].guards.breaker.with_open(open, open).with_jitter(0.0);
    program.tools[READ].guards.breaker = policy.checked().expect("valid breaker settings");
    call(&mut program, 0).script.end = End::Fail;
    call(&mut program, 0).script.first_ends = vec![End::Transient];
    call(&mut program, 1).script.steps = vec![Step::Sleep(1_500)];
    program
}

fn retry(entries: &[Entry]) -> usize {
    event(entries, "c0", |kind| matches!(kind, EventKind::Retry { .. }))
}

fn transition(entries: &[Entry], state: BreakerState) -> usize {
    find(
        entries,
        |fact| matches!(fact, Fact::Event(event) if matches!(event.kind, EventKind::BreakerTransition { to, .. } if to == state)),
    )
}

/// I9.
#[test]
fn a_delay_out_of_bounds_is_found() {
    breaks("I9", &again(), |entries| {
        let at = retry(entries);
        if let Fact::Event(event) = &mut entries[at].fact
            && let EventKind::Retry { delay_ms, .. } = &mut event.kind
        {
            *delay_ms = 5;
        }
    });
}

/// I9.
#[test]
fn an_early_attempt_is_found() {
    breaks("I9", &again(), |entries| {
        let at = retry(entries);
        let at_us = entries[at].at_us;
        entries[at..].iter_mut().for_each(|entry| entry.at_us = at_us);
    });
}

/// RT-1.
#[test]
fn a_retry_of_an_unrepeatable_call_is_found() {
    let good = again();
    breaks("I9", &good, |entries| {
        let at = find(entries, |fact| matches!(fact, Fact::HandlerEnd(0, _)));
        entries[at].fact = Fact::HandlerEnd(0, HandlerEnd::Scripted(End::Fail));
        let at = retry(entries);
        if let Fact::Event(event) = &mut entries[at].fact
            && let EventKind::Retry { code, .. } = &mut event.kind
        {
            *code = toolyard::ErrorKind::ExecutionError;
        }
    });
}

/// I5.
#[test]
fn a_key_that_runs_twice_is_found() {
    breaks("I5", &keyed(), |entries| {
        for at in [
            event(entries, "c2", |kind| *kind == EventKind::Attempt),
            handler(entries, 2, HandlerStep::Started),
        ] {
            let mut second = entries[at].clone();
            match &mut second.fact {
                Fact::Event(event) => (event.call_id, event.index) = (Some("c1".into()), Some(1)),
                fact => *fact = Fact::Handler(1, HandlerStep::Started),
            }
            entries.push(second);
        }
    });
}

/// ID-3.
#[test]
fn a_wrong_origin_of_a_result_is_found() {
    breaks("ID-3", &keyed(), |entries| {
        let at = find(entries, |fact| matches!(fact, Fact::Results(..)));
        if let Fact::Results(_, results) = &mut entries[at].fact {
            assert_eq!(results[1].dedupe, Dedupe::Joined);
            results[1].dedupe = Dedupe::Fresh;
        }
    });
}

/// ID-3.
#[test]
fn a_replay_of_a_call_in_flight_is_found() {
    breaks("ID-3", &keyed(), |entries| {
        let at = find(entries, |fact| matches!(fact, Fact::Results(..)));
        if let Fact::Results(_, results) = &mut entries[at].fact {
            results[1].dedupe = Dedupe::Replayed;
        }
    });
}

/// RT-10.
#[test]
fn starts_over_the_rate_are_found() {
    let mut program = program(4, &[&[READ, READ, READ]]);
    program.tools[READ].guards.rate = Some("1/s burst 1".parse().expect("valid rate"));
    breaks("RT-10", &program, |entries| entries.iter_mut().for_each(|entry| entry.at_us /= 4));
}

/// RT-3.
#[test]
fn a_start_in_a_pause_is_found() {
    let mut program = again();
    program.sessions[0].turns.push(super::turn(2, &[READ]));
    call(&mut program, 0).script.first_ends = vec![End::Limited(Some(3_000))];
    program.sessions[0].turns[0].overlaps_next = true;
    program.sessions[0].turns[1].gap_ms = 1_000;
    breaks("RT-3", &program, |entries| {
        for entry in entries.iter_mut().filter(|entry| entry.at_us > 1_000_000) {
            entry.at_us = 1_100_000;
            if let Fact::Event(event) = &mut entry.fact
                && let EventKind::Called { queue_ms, .. } = &mut event.kind
            {
                *queue_ms = 0;
            }
        }
    });
}

/// I8.
#[test]
fn a_breaker_that_is_half_open_too_soon_is_found() {
    breaks("I8", &broken(), |entries| {
        let at = transition(entries, BreakerState::HalfOpen);
        entries[at].at_us -= 900_000;
    });
}

/// I8.
#[test]
fn an_illegal_breaker_transition_is_found() {
    breaks("I8", &broken(), |entries| {
        let at = transition(entries, BreakerState::HalfOpen);
        if let Fact::Event(event) = &mut entries[at].fact
            && let EventKind::BreakerTransition { to, .. } = &mut event.kind
        {
            *to = BreakerState::Closed;
        }
    });
}

/// I8.
#[test]
fn a_start_behind_an_open_breaker_is_found() {
    breaks("I8", &broken(), |entries| {
        let at = transition(entries, BreakerState::HalfOpen);
        let last = entries.len() - 1;
        entries.swap(at, last);
    });
}

/// I8.
#[test]
fn an_unexplained_forced_breaker_is_found() {
    let mut program = broken();
    let owner = BreakerOwner::Tool(SERIAL);
    program
        .orders
        .push(crate::sim::program::Order { at_ms: 1, act: crate::sim::program::Act::ForceClosed(owner) });
    breaks("I8", &program, |entries| {
        let at = find(entries, |fact| matches!(fact, Fact::Operated(_)));
        entries[at].fact = Fact::Operated(BreakerOwner::Tool(READ));
    });
}

/// I13.
#[test]
fn a_missing_refund_is_found() {
    let mut program = program(1, &[&[READ, READ]]);
    program.budgets[1] = Budget::calls(5);
    breaks("I13", &program, |entries| {
        let at = find(entries, |fact| matches!(fact, Fact::BudgetLeft(0, _)));
        entries[at].fact = Fact::BudgetLeft(0, Budget::calls(2));
    });
}

/// I13.
#[test]
fn an_unexplained_budget_refusal_is_found() {
    let mut program = program(1, &[&[READ, READ, READ]]);
    program.budgets[0] = Budget::calls(2);
    breaks("I13", &program, |entries| {
        let at = event(entries, "c2", EventKind::is_terminal);
        if let Fact::Event(event) = &mut entries[at].fact
            && let EventKind::Denied(failure) = &mut event.kind
        {
            failure.message = failure.message.replace("0 of 2", "1 of 2");
        }
    });
}
