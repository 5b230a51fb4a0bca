//! The event log of simulated runs: it is complete, reads back as written, and tampering is detected.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

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

/// Whether a log is recognised as damaged.
fn is_found(log: &[Event]) -> bool {
    !event_faults(log, true).is_empty()
}

/// I2, OB-2: the log of a run is complete, and each of its lines reads back as the original event.
#[test]
fn the_event_log_of_a_run_is_complete_and_reads_back() {
    for seed in SEEDS {
        let log = events(seed);
        assert_eq!(event_faults(&log, true), [""; 0], "seed {seed}");
        for event in log {
            let line = serde_json::to_string(&event).unwrap();
            assert_eq!(Line::read(&line).unwrap(), Line::Event(Box::new(event)), "seed {seed}: {line}");
        }
    }
}

/// I2: a missing event is detected, unless it is the last of its session: cutting off the end leaves no gap and is
/// only detected if a call or a turn stays open.
#[test]
fn a_missing_event_is_detected() {
    for seed in SEEDS {
        let log = events(seed);
        for at in 0..log.len() {
            let is_last = log[at + 1..].iter().all(|later| later.session != log[at].session);
            let mut less = log.clone();
            let missing = less.remove(at);
            assert!(is_found(&less) || is_last, "seed {seed}: {at} {missing:?}");
        }
    }
}

/// I2: a duplicated event is detected.
#[test]
fn a_duplicated_event_is_detected() {
    for seed in SEEDS {
        let log = events(seed);
        for at in 0..log.len() {
            let mut more = log.clone();
            more.insert(at, log[at].clone());
            assert!(is_found(&more), "seed {seed}: {at} {:?}", log[at]);
        }
    }
}

/// I2: swapping neighbouring events is detected, unless they belong to two sessions: events have an order within each
/// session, but none across sessions.
#[test]
fn swapped_events_are_detected() {
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
