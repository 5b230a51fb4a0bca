//! A harness that kills (JR-1, JR-4 to JR-10): a process works with an engine and a journal, and is ended at random moments
//! and at each of its records. The next life resumes what is open, and may be ended too. All that was said and done must
//! fit together.
//!
//! ```text
//!   killing ── seed ──► child: plan, engine, tools ── effects ──► file ─┐
//!      │  kill -9, or a signal that drains  │                            ├─► checking: nothing twice, nothing lost,
//!      └────────────────────────────────────┴─── starts, questions, ─────┘   nothing under another call's answer
//!                                                answers, acks, cancels
//! ```
//!
//! `TOOLYARD_KILLS=N` is for how many seeds each of the two random tests goes (60), `TOOLYARD_KILLS_SEED=N` the first seed.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod asking;
mod checking;
mod child;
mod helping;
mod killing;
mod plan;
mod point;
mod random;
mod resuming;
mod tally;
mod tools;
mod working;

use killing::{End, at_point, at_random};
use point::{Point, When};
use tally::Tally;

/// The number of an environment variable.
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("it is a number"))
}

fn random(end: End) {
    let first = number("TOOLYARD_KILLS_SEED", 0);
    let mut all = Tally::new(end.name());
    for seed in first..first + number("TOOLYARD_KILLS", 60) {
        all.add(at_random(end, seed));
    }
    all.finish();
}

/// JR-1, JR-4 to JR-6, JR-8 to JR-10: a process is killed at random moments, up to three times.
#[test]
fn killed_at_random_moments() {
    random(End::Kill);
}

/// SM-10, JR-8, JR-9: a process is asked to end at random moments, up to three times, and drains.
#[test]
fn drained_at_random_moments() {
    random(End::Drain);
}

/// JR-1, JR-5: a process ends right before each of its records is given, right after, and when it is durable.
#[test]
fn killed_at_each_record() {
    let mut all = Tally::new("points");
    for when in When::ALL {
        for record in 1.. {
            let (tally, was_killed) = at_point(Point { when, record });
            all.add(tally);
            // Not every record is one that somebody waits for; the last ones are those of the drain.
            if !was_killed && (when != When::Durable || record > 100) {
                assert!(record > 30, "{when:?}: {record} records are fewer than the plan has");
                break;
            }
        }
    }
    all.finish();
}

/// Not a test: the process that the others kill.
#[test]
#[ignore = "is started by the tests that kill it"]
fn child() {
    child::live();
}
