//! Programs in which the simulation once found a fault, each cut down to what it takes. They stay when the generator
//! changes and their seeds mean other programs.

use super::{
    Fact, HandlerStep, Program, Report,
    check::tests::{READ, SERIAL, UNKNOWN, call, program, tool, turn},
    play,
    program::{
        Act, BatchPlan, BreakerOwner, CallPlan, Chaos, Consent, Cut, CutBy, DispatchMode, End, ForkPlan,
        KeyPlan, Nested, OnCancel, Order, Placement, Room, Step, TurnPlan,
    },
};
use std::time::Duration;
use toolyard::{BreakerPolicy, ErrorKind, RetryPolicy, ToolClass};

const CONCURRENT: usize = 2;

/// Adds a tool whose handlers cannot be dropped; returns its index.
fn add_blocking(program: &mut Program, class: ToolClass) -> usize {
    program.tools.push(tool(class, Consent::Free));
    let at = program.tools.len() - 1;
    program.tools[at].placement = Placement::Blocking;
    at
}

/// A call that is given up after half a second and runs on for over a minute.
fn given_up(node: u32, tool: usize) -> CallPlan {
    let mut call = call(node, tool);
    call.timeout_ms = Some(500);
    call.script.steps = vec![Step::Sleep(70_000)];
    call
}

/// A turn of these calls.
fn turn_of(mode: DispatchMode, calls: Vec<CallPlan>) -> TurnPlan {
    let mut turn = turn(0, &[]);
    (turn.mode, turn.batch.calls) = (mode, calls);
    turn
}

/// A step that forks an agent with this turn.
fn fork(turn: TurnPlan) -> Step {
    Step::Fork(ForkPlan {
        number: 0,
        shares_concurrent: false,
        cap: None,
        hidden: None,
        barred: Vec::new(),
        cancel_ms: None,
        outlives: false,
        turns: vec![turn],
        forks: Vec::new(),
    })
}

/// Plays a program that must break no rule; returns what was observed.
fn passes(program: &Program) -> Report {
    let report = play(program);
    assert_eq!(report.violations, []);
    report
}

/// How a call ended, with the time in milliseconds.
fn end(report: &Report, node: u32) -> (u64, Option<ErrorKind>) {
    let id = super::program::call_id(node);
    let ended = report.entries.iter().find_map(|entry| match &entry.fact {
        Fact::Event(event)
            if event.kind.is_terminal() && event.call_id.as_ref().is_some_and(|it| it.as_str() == id) =>
        {
            Some((entry.at_us / 1000, event.kind.failure().map(|failure| failure.code)))
        }
        _ => None,
    });
    ended.expect("the call ended")
}

/// RT-7: a handler pushes calls into a stream, drops it and fails, all before the stream has taken them in.
#[test]
fn a_call_that_has_streamed_calls_is_not_retried() {
    let mut program = program(1, &[&[READ]]);
    program.tools[READ].guards.retry = RetryPolicy::default().with_max_attempts(2);
    let mut streamed = turn_of(DispatchMode::Streamed(0), vec![call(1, SERIAL), call(2, READ)]);
    streamed.cut = Some(Cut { after_ms: 0, by: CutBy::Drop });
    let first = &mut program.sessions[0].turns[0].batch.calls[0];
    (first.script.steps, first.script.first_ends) = (vec![fork(streamed)], vec![End::Transient]);
    let report = passes(&program);
    assert_eq!(end(&report, 0).1, Some(ErrorKind::Transient));
}

/// CC-6, V2: the last call of a stream is refused while an earlier one is given up and runs on; the handler that
/// streams them gets the results at once.
#[test]
fn a_stream_of_a_zombie_and_a_refused_call_ends_at_once() {
    for (parent, child) in [(CONCURRENT, ToolClass::Serial), (SERIAL, ToolClass::Concurrent)] {
        let mut program = program(1, &[&[parent]]);
        program.tools[parent].timeout_ms = 1_500;
        let blocking = add_blocking(&mut program, child);
        let streamed = turn_of(DispatchMode::Streamed(3), vec![given_up(1, blocking), call(2, UNKNOWN)]);
        program.sessions[0].turns[0].batch.calls[0].script.steps = vec![fork(streamed)];
        assert_eq!(end(&passes(&program), 0), (500, None));
    }
}

/// V2, SC-8: a drain answers a call that waits behind a zombie; the handler that dispatched both gets the results at
/// once, and not when the zombie has been waited for long enough.
#[test]
fn a_batch_that_a_drain_answers_does_not_wait_for_a_zombie() {
    for mode in [DispatchMode::Runs, DispatchMode::Streamed(0)] {
        let mut program = program(1, &[&[READ]]);
        program.grace_ms = 30_000;
        let blocking = add_blocking(&mut program, ToolClass::Serial);
        let calls = vec![given_up(1, blocking), call(2, SERIAL)];
        program.sessions[0].turns[0].batch.calls[0].script.steps = vec![fork(turn_of(mode, calls))];
        program.orders.push(Order { at_ms: 2_500, act: Act::Shutdown(30_000, 50) });
        let report = passes(&program);
        assert_eq!(end(&report, 2), (2_500, Some(ErrorKind::ShuttingDown)), "{mode:?}");
        assert_eq!(end(&report, 0), (2_500, None), "{mode:?}");
    }
}

/// ID-3: a flight is over with its result, although a handler that was given up runs on; the next call with its key
/// gets that result.
#[test]
fn the_key_of_a_zombie_is_replayed() {
    let mut program = program(1, &[&[READ]]);
    let blocking = add_blocking(&mut program, ToolClass::Concurrent);
    let key = Some(KeyPlan { key: 0, args: 0 });
    let (first, again) = (CallPlan { key, ..given_up(0, blocking) }, CallPlan { key, ..call(1, blocking) });
    let mut later = turn_of(DispatchMode::Runs, vec![again, call(2, blocking)]);
    later.gap_ms = 5_000;
    program.sessions[0].turns = vec![turn_of(DispatchMode::Runs, vec![first]), later];
    let report = passes(&program);
    assert_eq!(end(&report, 1), (5_500, Some(ErrorKind::Timeout)));
}

/// V3, CC-6b: a handler that has dropped a dispatch counts as parked while the calls of that have their grace, so it may
/// run for longer than its timeout.
#[test]
fn the_clock_of_a_handler_that_dropped_a_dispatch_stands_still() {
    let mut program = program(1, &[&[SERIAL]]);
    program.grace_ms = 30_000;
    let mut deaf = call(1, CONCURRENT);
    deaf.script.end = End::Hang;
    let dropped = Nested { batch: BatchPlan { calls: vec![deaf] }, dropped_ms: Some(40) };
    program.sessions[0].turns[0].batch.calls[0].script.steps =
        vec![Step::Nest(vec![dropped]), Step::Sleep(70_000)];
    assert_eq!(end(&passes(&program), 0), (70_040, None));
}

/// I7: a call joins a flight while the handler of an earlier flight, which was given up, still runs; the next run of
/// its batch waits for its own flight alone.
#[test]
fn the_zombie_of_an_earlier_flight_delays_nobody() {
    let mut program = program(4, &[&[READ]]);
    let blocking = add_blocking(&mut program, ToolClass::Read);
    let key = Some(KeyPlan { key: 0, args: 0 });
    let keyed = |call: CallPlan| CallPlan { key, ..call };
    let later = vec![keyed(call(1, blocking)), keyed(call(2, blocking)), call(3, SERIAL)];
    program.sessions[0].turns = vec![
        turn_of(DispatchMode::Runs, vec![keyed(given_up(0, blocking))]),
        turn_of(DispatchMode::Runs, later),
    ];
    let report = passes(&program);
    assert_eq!([1, 2, 3].map(|node| end(&report, node)), [(510, None), (510, None), (520, None)]);
}

/// ID-3, RT-1: a call takes over a flight after its first attempt, so its own handler begins with the second one.
#[test]
fn a_call_that_takes_over_a_flight_goes_on_counting() {
    let mut program = program(1, &[&[READ]]);
    program.tools[READ].timeout_ms = 5_000;
    program.tools[READ].guards.retry = RetryPolicy::default().with_max_attempts(3);
    let key = Some(KeyPlan { key: 0, args: 0 });
    let mut leads = CallPlan { key, deadline_ms: Some(2_000), ..call(0, READ) };
    leads.script.end = End::Hang;
    let mut joins = CallPlan { key, ..call(1, READ) };
    (joins.script.first_ends, joins.script.end) = (vec![End::Fail], End::Transient);
    let mut first = turn_of(DispatchMode::Runs, vec![leads]);
    first.overlaps_next = true;
    let mut second = turn_of(DispatchMode::Runs, vec![joins]);
    second.gap_ms = 5;
    program.sessions[0].turns = vec![first, second];
    let report = passes(&program);
    assert_eq!(end(&report, 0), (2_000, Some(ErrorKind::DeadlineExceeded)));
    assert_eq!(end(&report, 1).1, Some(ErrorKind::Transient));
}

/// CL-2, I7: a call of a forbidden tool finds the breaker open before anybody would be asked, and so keeps the routing
/// of its tool: it does not split the run around it.
#[test]
fn a_forbidden_call_behind_an_open_breaker_does_not_split_a_run() {
    let mut program = program(1, &[&[CONCURRENT, UNKNOWN, CONCURRENT]]);
    program.tools.push(tool(ToolClass::Concurrent, Consent::Forbidden));
    let forbidden = program.tools.len() - 1;
    let turn = &mut program.sessions[0].turns[0];
    (turn.gap_ms, turn.batch.calls[1].tool) = (5, forbidden);
    program.orders.push(Order { at_ms: 0, act: Act::ForceOpen(BreakerOwner::Tool(forbidden)) });
    let report = passes(&program);
    assert_eq!(end(&report, 1), (5, Some(ErrorKind::CircuitOpen)));
    assert_eq!([0, 2].map(|node| end(&report, node)), [(15, None); 2]);
}

/// CC-6b: a handler drops a stream that has not taken its call in yet, and dispatches a call that is answered at once;
/// it does not go on before the call of the stream has ended, for which it is parked.
#[test]
fn a_dispatch_waits_for_what_a_dropped_stream_has_yet_to_take_in() {
    let mut program = program(1, &[&[READ]]);
    program.chaos = Chaos { seed: 600_004_339, yields: 200, naps: 0 };
    let mut streamed = turn_of(DispatchMode::Streamed(0), vec![call(1, CONCURRENT)]);
    streamed.cut = Some(Cut { after_ms: 0, by: CutBy::Drop });
    let Step::Fork(mut agent) = fork(streamed) else { unreachable!("a fork") };
    agent.turns.push(turn_of(DispatchMode::Runs, vec![call(2, UNKNOWN)]));
    program.sessions[0].turns[0].batch.calls[0].script.steps = vec![Step::Fork(agent)];
    let report = passes(&program);
    let place = |found: &dyn Fn(&Fact) -> bool| report.entries.iter().position(|entry| found(&entry.fact));
    let resumed = place(&|fact| matches!(fact, Fact::Handler(0, HandlerStep::Resumed)));
    let ended = place(&|fact| {
        let Fact::Event(event) = fact else { return false };
        event.kind.is_terminal() && event.call_id.as_ref().is_some_and(|id| id.as_str() == "c1")
    });
    assert!(ended.is_some() && ended < resumed, "c1 ended at {ended:?}, c0 resumed at {resumed:?}");
}

/// ID-3a, I16: the leader of a flight is cancelled together with the serial call that dispatched it, while it runs or
/// between two attempts. The call that takes over needs the lease of that serial call.
#[test]
fn a_successor_does_not_wait_for_the_lease_above_its_predecessor() {
    for cancelled_ms in [3, 50] {
        let mut program = program(1, &[&[SERIAL]]);
        program.tools.push(tool(ToolClass::Serial, Consent::Free));
        let retried = program.tools.len() - 1;
        program.tools[retried].guards.retry = RetryPolicy::default().with_max_attempts(2);
        let key = Some(KeyPlan { key: 0, args: 0 });
        let mut leads = CallPlan { key, ..call(1, retried) };
        leads.script.first_ends = vec![End::Harmless];
        let nested = Nested { batch: BatchPlan { calls: vec![leads] }, dropped_ms: None };
        let first = &mut program.sessions[0].turns[0];
        first.batch.calls[0].script.steps = vec![Step::Nest(vec![nested])];
        (first.cut, first.overlaps_next) = (Some(Cut { after_ms: cancelled_ms, by: CutBy::Drop }), true);
        let mut second = turn_of(DispatchMode::Runs, vec![CallPlan { key, ..call(2, retried) }]);
        second.gap_ms = 1;
        program.sessions[0].turns.push(second);
        let report = passes(&program);
        assert_eq!(end(&report, 1).1, Some(ErrorKind::Cancelled), "{cancelled_ms} ms");
        assert_eq!(end(&report, 2).1, None, "{cancelled_ms} ms");
    }
}

/// CL-3: a call has ended, and what it has dropped leaves a zombie much later. The calls behind it wait for 30 s from
/// its end, not from that of the zombie.
#[test]
fn the_wait_for_a_zombie_begins_with_the_end_of_the_call_above_it() {
    let mut program = program(1, &[&[SERIAL, READ]]);
    program.grace_ms = 30_000;
    let blocking = add_blocking(&mut program, ToolClass::Read);
    let mut runs_on = call(2, blocking);
    runs_on.script.steps = vec![Step::Sleep(70_000)];
    let dropped = Nested { batch: BatchPlan { calls: vec![runs_on] }, dropped_ms: Some(40) };
    program.sessions[0].turns[0].batch.calls[0].script.steps = vec![Step::Nest(vec![dropped])];
    let report = passes(&program);
    assert_eq!(end(&report, 2), (30_040, Some(ErrorKind::Cancelled)));
    assert_eq!(end(&report, 1), (30_040, Some(ErrorKind::QueueTimeout)));
}

/// I10, SC-8: no caller of a flight waits any more, and its handler has its grace; a shutdown waits for it, and gives it
/// up when its own time is over.
#[test]
fn a_shutdown_ends_a_handler_for_which_nobody_waits() {
    let mut program = program(1, &[&[CONCURRENT, CONCURRENT]]);
    program.grace_ms = 30_000;
    for call in &mut program.sessions[0].turns[0].batch.calls {
        (call.key, call.deadline_ms) = (Some(KeyPlan { key: 0, args: 0 }), Some(200));
        call.script.steps = vec![Step::Sleep(12_000)];
    }
    program.orders.push(Order { at_ms: 600, act: Act::Shutdown(50, 50) });
    let report = passes(&program);
    assert_eq!([0, 1].map(|node| end(&report, node)), [(200, Some(ErrorKind::DeadlineExceeded)); 2]);
    let stopped = |fact: &Fact| matches!(fact, Fact::Handler(0, HandlerStep::Ended));
    let stopped = report.entries.iter().find(|entry| stopped(&entry.fact)).map(|entry| entry.at_us);
    assert_eq!(stopped, Some(700_000));
}

/// I3: a dispatch that is answered at once does not park its handler, which keeps a unit that a resize has taken from
/// the pool.
#[test]
fn a_handler_that_does_not_park_keeps_its_unit() {
    let mut program = program(1, &[&[CONCURRENT, CONCURRENT]]);
    let answered = Nested { batch: BatchPlan { calls: vec![call(2, UNKNOWN)] }, dropped_ms: None };
    let calls = &mut program.sessions[0].turns[0].batch.calls;
    calls[0].script.steps = vec![Step::Sleep(100), Step::Nest(vec![answered])];
    calls[1].script.steps = vec![Step::Sleep(200)];
    program.orders.push(Order { at_ms: 50, act: Act::Resize(ToolClass::Concurrent, 1) });
    let report = passes(&program);
    assert_eq!([0, 1].map(|node| end(&report, node)), [(100, None), (200, None)]);
}

/// CB-5, ID-4: a probe whose call has left goes on for the call that joined its flight, and others are refused.
#[test]
fn a_probe_goes_on_for_followers() {
    let mut program = program(3, &[&[READ, READ], &[READ]]);
    let (open, attempts) = (Duration::from_millis(50), 2);
    let guards = &mut program.tools[READ].guards;
    guards.retry = RetryPolicy::default().with_max_attempts(attempts);
    guards.breaker = BreakerPolicy::default()
        .with_failures_min(1)
        .with_open(open, open)
        .checked()
        .expect("valid breaker settings");
    let key = Some(KeyPlan { key: 0, args: 0 });
    let calls = &mut program.sessions[0].turns[0].batch.calls;
    calls.iter_mut().for_each(|call| call.key = key);
    (calls[0].deadline_ms, calls[0].script.first_ends) = (Some(400), vec![End::Transient]);
    calls[0].script.end = End::Hang;
    program.sessions[1].turns[0].gap_ms = 1_000;
    let report = passes(&program);
    assert_eq!(end(&report, 0), (400, Some(ErrorKind::DeadlineExceeded)));
    assert_eq!(end(&report, 2), (1_000, Some(ErrorKind::CircuitOpen)));
}

/// CC-6c, CC-7: a blocking handler that cannot resume behind a zombie ends, and keeps its lease without its thread, as
/// long as it cannot stop.
#[test]
fn a_blocking_handler_that_starves_keeps_its_lease_alone() {
    let mut program = program(1, &[&[READ], &[READ]]);
    program.threads = Some(1);
    let blocking = add_blocking(&mut program, ToolClass::Serial);
    let zombie = Nested { batch: BatchPlan { calls: vec![given_up(2, blocking)] }, dropped_ms: None };
    let calls = &mut program.sessions[0].turns[0].batch.calls;
    (calls[0].tool, calls[0].script.steps) = (blocking, vec![Step::Nest(vec![zombie])]);
    let report = passes(&program);
    assert_eq!(end(&report, 0), (30_500, Some(ErrorKind::Timeout)));
}

/// CC-7: a serial handler that was given up has two agents. What the later one dispatches is refused, and the handler
/// stays parked all the same while the serial call of the other runs on.
#[test]
fn a_refused_dispatch_does_not_resume_a_handler_that_was_given_up() {
    let mut program = program(1, &[&[SERIAL]]);
    let blocking = add_blocking(&mut program, ToolClass::Serial);
    let agent = |number: u32, gap_ms: u64, call: CallPlan| {
        let turns = vec![TurnPlan { gap_ms, ..turn_of(DispatchMode::Plain, vec![call]) }];
        let Step::Fork(plan) = fork(turn(0, &[])) else { unreachable!("a fork") };
        ForkPlan { number, turns, ..plan }
    };
    let later = agent(1, 1_000, call(2, READ));
    let first = ForkPlan { forks: vec![later], ..agent(0, 0, given_up(1, blocking)) };
    let above = &mut program.sessions[0].turns[0].batch.calls[0];
    (above.tool, above.deadline_ms, above.script.steps) = (blocking, Some(100), vec![Step::Fork(first)]);
    let report = passes(&program);
    assert_eq!(end(&report, 2), (1_000, Some(ErrorKind::Cancelled)));
    let place = |node: u32, step: HandlerStep| {
        let is_it = |fact: &Fact| matches!(fact, Fact::Handler(it, did) if (*it, *did) == (node, step));
        report.entries.iter().position(|entry| is_it(&entry.fact)).expect("the handler did it")
    };
    assert!(place(1, HandlerStep::Ended) < place(0, HandlerStep::Resumed));
}

/// CC-4, ID-3: there is no room for the result of a call that must not run twice. The call of a later batch that has
/// its key, while it runs or once it has ended, is told the same, although its own batch has room.
#[test]
fn what_had_no_room_is_told_to_all_callers_of_its_key() {
    for gap_ms in [5, 1_000] {
        let mut program = program(1, &[&[CONCURRENT, CONCURRENT]]);
        program.room = Some(Room { batch: 100 << 10, session: 1_000 << 10, engine: 1_000 << 10 });
        let key = Some(KeyPlan { key: 0, args: 0 });
        let turns = &mut program.sessions[0].turns;
        turns[0].overlaps_next = true;
        turns[0].batch.calls.iter_mut().for_each(|call| call.script.bytes = 70_000);
        (turns[0].batch.calls[1].key, turns[0].batch.calls[1].script.steps) = (key, vec![Step::Sleep(100)]);
        let mut again = turn_of(DispatchMode::Runs, vec![CallPlan { key, ..call(2, CONCURRENT) }]);
        again.gap_ms = gap_ms;
        turns.push(again);
        let report = passes(&program);
        let ends = [0, 1, 2].map(|node| end(&report, node));
        let refused = Some(ErrorKind::OutputTooLarge);
        assert_eq!(ends, [(10, None), (100, refused), (gap_ms.max(100), refused)]);
    }
}

/// CC-4: a turn that is dropped lets go of its results, although a call that its handlers left behind runs on.
#[test]
fn what_runs_on_keeps_no_room_for_the_results_above_it() {
    let mut program = program(2, &[&[SERIAL], &[SERIAL]]);
    program.room = Some(Room { batch: 1_000 << 10, session: 1_000 << 10, engine: 64 << 10 });
    let mut runs_on = call(2, SERIAL);
    runs_on.script.steps = vec![Step::Sleep(2_000)];
    let left = Nested { batch: BatchPlan { calls: vec![runs_on] }, dropped_ms: Some(40) };
    let first = &mut program.sessions[0].turns[0];
    first.mode = DispatchMode::OneByOne;
    (first.batch.calls[0].script.steps, first.batch.calls[0].script.bytes) =
        (vec![Step::Nest(vec![left])], 18_000);
    program.sessions[1].turns[0].gap_ms = 600;
    let report = passes(&program);
    assert_eq!(end(&report, 1), (610, None));
}

/// I3: a stream all of whose calls are refused parks nobody, so that its end resumes nobody above a narrower width.
#[test]
fn a_stream_of_refused_calls_does_not_resume_its_handler() {
    let mut program = program(1, &[&[CONCURRENT, CONCURRENT]]);
    let calls = &mut program.sessions[0].turns[0].batch.calls;
    calls[0].script.steps = vec![Step::Sleep(5_000)];
    let refused = |node: u32| call(node, UNKNOWN);
    let Step::Fork(streamed) = fork(turn_of(DispatchMode::Streamed(50), vec![refused(2), refused(3)])) else {
        unreachable!("a fork")
    };
    let beside = ForkPlan {
        number: 1,
        turns: vec![turn_of(DispatchMode::Plain, vec![refused(4)])],
        ..streamed.clone()
    };
    let streamed = ForkPlan { forks: vec![beside], ..streamed };
    calls[1].script.steps = vec![Step::Sleep(1_000), Step::Fork(streamed)];
    program.orders.push(Order { at_ms: 10, act: Act::Resize(ToolClass::Concurrent, 1) });
    passes(&program);
}

/// CC-7, I11: a serial handler that was given up while it was parked keeps its lease, beside that of the call under it.
#[test]
fn a_parked_handler_that_was_given_up_keeps_its_lease() {
    let mut program = program(1, &[&[SERIAL]]);
    let blocking = add_blocking(&mut program, ToolClass::Serial);
    program.tools[blocking].scope = Some(0);
    let below = CallPlan { timeout_ms: None, deadline_ms: Some(500), ..given_up(2, blocking) };
    let Step::Fork(agent) = fork(turn_of(DispatchMode::Plain, vec![below])) else { unreachable!("a fork") };
    let turns = &mut program.sessions[0].turns;
    let above = &mut turns[0].batch.calls[0];
    (above.tool, above.deadline_ms, above.script.steps) = (blocking, Some(500), vec![Step::Fork(agent)]);
    turns[0].overlaps_next = true;
    turns.push(TurnPlan { gap_ms: 2_700, ..turn_of(DispatchMode::Plain, vec![call(1, SERIAL)]) });
    for seed in 0..16 {
        program.chaos = Chaos { seed, yields: 500, naps: 50 };
        let report = passes(&program);
        assert_eq!(end(&report, 1).1, None);
    }
}

/// SC-1, SC-8, ID-4: a cancel of an agent below the handler of a key reaches what runs there, also while the engine
/// drains and lets it finish.
#[test]
fn a_cancel_during_a_drain_reaches_what_runs_below_a_key() {
    let mut program = program(1, &[&[READ]]);
    let mut slow = call(1, READ);
    (slow.script.steps, slow.script.on_cancel) = (vec![Step::Sleep(12_000)], OnCancel::Finish);
    let Step::Fork(agent) = fork(turn_of(DispatchMode::Runs, vec![slow])) else { unreachable!("a fork") };
    let above = &mut program.sessions[0].turns[0].batch.calls[0];
    above.key = Some(KeyPlan { key: 0, args: 0 });
    above.script.steps = vec![Step::Fork(ForkPlan { cancel_ms: Some(400), ..agent })];
    program.grace_ms = 100;
    program.orders.push(Order { at_ms: 150, act: Act::Shutdown(30_000, 50) });
    let report = passes(&program);
    assert_eq!(end(&report, 1), (400, None));
}

/// SC-1, ID-4: a cancel of an agent below the handler of a key reaches what runs there, also if the session of that
/// handler was cancelled before and another call keeps its flight going.
#[test]
fn a_cancel_below_a_key_reaches_what_a_cancel_above_it_has_left() {
    let mut program = program(2, &[&[READ]]);
    let key = Some(KeyPlan { key: 0, args: 0 });
    let mut slow = call(2, READ);
    (slow.script.steps, slow.script.on_cancel) = (vec![Step::Sleep(12_000)], OnCancel::Finish);
    let Step::Fork(below) = fork(turn_of(DispatchMode::Runs, vec![slow])) else { unreachable!("a fork") };
    let below = ForkPlan { number: 1, cancel_ms: Some(700), ..below };
    let mut leads = call(1, READ);
    (leads.key, leads.script.steps) = (key, vec![Step::Fork(below)]);
    let Step::Fork(above) = fork(turn_of(DispatchMode::Plain, vec![leads])) else { unreachable!("a fork") };
    let session = &mut program.sessions[0];
    session.forks.push(ForkPlan { cancel_ms: Some(400), ..above });
    (session.turns[0].gap_ms, session.turns[0].batch.calls[0].key) = (100, key);
    let report = passes(&program);
    assert_eq!(end(&report, 1), (400, Some(ErrorKind::Cancelled)));
    assert_eq!(end(&report, 2), (700, None));
    assert_eq!(end(&report, 0), (700, None));
}

/// CB-5, SM-3: a probe whose sandbox never came up is over before its call has ended, and the next one may run.
#[test]
fn a_probe_without_a_sandbox_gives_its_slot_back_before_its_call_ends() {
    let mut program = program(1, &[&[READ, READ, READ]]);
    let policy = BreakerPolicy::default().with_failures_min(3);
    (program.read, program.hooks) = (1, true);
    (program.tools[READ].sandboxed, program.tools[READ].guards.breaker) = (true, policy);
    let turns = &mut program.sessions[0].turns;
    turns[0].batch.calls.iter_mut().for_each(|call| call.script.end = End::Transient);
    let mut probes: Vec<_> = (3..=5).map(|node| call(node, READ)).collect();
    for probe in &mut probes {
        probe.script.end = End::NoSandbox;
    }
    turns.push(TurnPlan { gap_ms: 40_000, ..turn_of(DispatchMode::Plain, probes) });
    for seed in 0..64 {
        program.chaos = Chaos { seed, yields: 500, naps: 50 };
        passes(&program);
    }
}
