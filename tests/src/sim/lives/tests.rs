//! Fixed programs whose engine has several lives: what the simulation has found once, and what it must be able to find.

use crate::sim::{
    Fact, HandlerStep, Program, Report,
    check::tests::{READ, SERIAL, program},
    play,
    program::{Chaos, Cut, CutBy, LifeEnd, LifeEndAt, LifeEnding, LivesPlan, Step},
};

const CRASH: LifeEnding = LifeEnding::Crash;

/// Lives that end so, without any wait for records.
fn lives(ends: &[(LifeEndAt, LifeEnding)]) -> Option<LivesPlan> {
    Some(LivesPlan {
        seed: 1,
        most_ms: 0,
        goes_on: false,
        reconciles: false,
        away_ms: 0,
        ends: ends.iter().map(|(at, how)| LifeEnd { at: *at, how: *how }).collect(),
    })
}

/// c0 of this tool runs for five seconds, c1 behind it writes.
fn slow(tool: usize) -> Program {
    let mut program = program(1, &[&[tool, SERIAL]]);
    program.sessions[0].turns[0].batch.calls[0].script.steps = vec![Step::Sleep(5_000)];
    program
}

/// Plays a program that must break no rule; returns what was observed in its lives.
fn passes(program: &Program) -> Report {
    let report = play(program);
    assert_eq!(report.violations, []);
    report
}

/// How often the handler of a call was started, in the plain run and in all lives.
fn starts(report: &Report, node: u32) -> usize {
    let is_start = |fact: &Fact| matches!(fact, Fact::Handler(it, HandlerStep::Started) if *it == node);
    report.entries.iter().chain(&report.of_lives).filter(|entry| is_start(&entry.fact)).count()
}

/// JR-5: a read that was running runs again, a write that was is interrupted, and the one behind it does not start.
#[test]
fn what_was_running_ends_as_its_tool_allows() {
    let mut reads = slow(READ);
    reads.lives = lives(&[(LifeEndAt::Ms(1_000), CRASH)]);
    let report = passes(&reads);
    assert_eq!((starts(&report, 0), starts(&report, 1)), (3, 2), "once more than in the plain run");
    let mut writes = slow(SERIAL);
    writes.lives = lives(&[(LifeEndAt::Ms(1_000), CRASH)]);
    let report = passes(&writes);
    assert_eq!((starts(&report, 0), starts(&report, 1)), (2, 1));
}

/// JR-1, JR-5: a call whose cancel was acknowledged while it ran does not run in the next life. The engine ends as soon as
/// the cancel is acknowledged, so an engine that forgets it is always found.
#[test]
fn what_was_cancelled_stays_cancelled() {
    let mut program = slow(READ);
    program.sessions[0].turns[0].cut = Some(Cut { after_ms: 1_000, by: CutBy::Cancel });
    program.lives = lives(&[(LifeEndAt::Cancel(1), CRASH)]);
    let report = passes(&program);
    assert!(report.of_lives.iter().any(|entry| matches!(entry.fact, Fact::Held(_))), "it was acknowledged");
    assert_eq!((starts(&report, 0), starts(&report, 1)), (2, 0));
}

/// SM-10, CL-3: nothing starts behind a call that a drain suspends, also while the pools are still being told of the drain:
/// the next life would run the two in the wrong order.
#[test]
fn nothing_starts_behind_what_is_suspended() {
    let drain = (LifeEndAt::Ms(1), LifeEnding::Drain(30_000, 0));
    for seed in 0..200 {
        let mut program = slow(READ);
        program.chaos = Chaos { seed, yields: 100, naps: 300 };
        program.lives = lives(&[(LifeEndAt::Ms(1_000), CRASH), drain]);
        passes(&program);
    }
}

/// JR-8: wherever two lives end in a row, one of them while a turn is taken up, all is as it should be.
#[test]
fn lives_may_end_anywhere() {
    for last in 1..=12 {
        for next in 1..=4 {
            let mut program = crate::sim::check::tests::program(1, &[&[READ, SERIAL, 2, 2, 3, SERIAL, READ]]);
            let ends = [(LifeEndAt::Record(last), CRASH), (LifeEndAt::Record(next), CRASH)];
            program.lives = lives(&ends);
            passes(&program);
        }
    }
}
