//! The record of simulated runs: it is whole, reads back as it was written, and what is done to it shows.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use toolyard::{Event, event::Line};
use toolyard_tests::{
    event_faults,
    sim::{Fact, sim},
};

const SEEDS: std::ops::Range<u64> = 0..25;

/// The events of a simulated run.
fn events(seed: u64) -> Vec<Event> {
    let report = sim(seed);
    assert!(report.violations.is_empty(), "seed {seed}: {:#?}", report.violations);
    let events = report.entries.into_iter().filter_map(|entry| match entry.fact {
        Fact::Event(event) => Some(*event),
        _ => None,
    });
    events.collect()
}

/// Whether a log shows to be damaged.
fn is_found(log: &[Event]) -> bool {
    !event_faults(log, true).is_empty()
}

/// I2, OB-2: a run's log is whole, and each of its lines reads back as the event it was.
#[test]
fn the_record_of_a_run_is_whole_and_reads_back() {
    for seed in SEEDS {
        let log = events(seed);
        assert_eq!(event_faults(&log, true), [""; 0], "seed {seed}");
        for event in log {
            let line = serde_json::to_string(&event).unwrap();
            assert_eq!(Line::read(&line).unwrap(), Line::Event(Box::new(event)), "seed {seed}: {line}");
        }
    }
}

/// I2: an event that is left out shows, unless it is the last of its session: what is cut off at the end leaves no gap, and
/// shows where it leaves a call or a turn open.
#[test]
fn an_event_that_is_left_out_shows() {
    for seed in SEEDS {
        let log = events(seed);
        for at in 0..log.len() {
            let is_last = log[at + 1..].iter().all(|later| later.session != log[at].session);
            let mut less = log.clone();
            let gone = less.remove(at);
            assert!(is_found(&less) || is_last, "seed {seed}: {at} {gone:?}");
        }
    }
}

/// I2: an event that is there twice shows.
#[test]
fn an_event_that_is_there_twice_shows() {
    for seed in SEEDS {
        let log = events(seed);
        for at in 0..log.len() {
            let mut more = log.clone();
            more.insert(at, log[at].clone());
            assert!(is_found(&more), "seed {seed}: {at} {:?}", log[at]);
        }
    }
}

/// I2: neighbours that change places show, unless they are of two sessions: those commute, for sessions are told each in its
/// own order and in none between them.
#[test]
fn neighbours_that_change_places_show() {
    for seed in SEEDS {
        let log = events(seed);
        for at in 1..log.len() {
            let mut swapped = log.clone();
            swapped.swap(at - 1, at);
            let commute = log[at - 1].session != log[at].session;
            assert_eq!(is_found(&swapped), !commute, "seed {seed}: {at} {:?}", log[at]);
        }
    }
}
