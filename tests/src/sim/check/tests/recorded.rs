//! Tests of the checks on records.

use super::{ASKED, READ, SERIAL, UNKNOWN, breaks, event, find, program};
use crate::sim::{
    Entry, Fact, Program,
    program::{Act, DispatchMode, Order, RecorderPlan},
};
use std::time::Duration;
use toolyard::{EventKind, MemoryRecord, Pace};

/// A read, a write and a question, with a recorder that takes a millisecond or two.
fn recorded() -> Program {
    let mut program = program(1, &[&[READ, SERIAL, ASKED]]);
    program.recorder =
        Some(RecorderPlan { seed: 1, most_ms: 2, reads_wait: true, fails: 0, late: 0, durable: false });
    program
}

/// The place of the first record of this kind, of this call if it is of one.
fn record(entries: &[Entry], kind: &str, id: &str) -> usize {
    let is_of = |record: &MemoryRecord| match record {
        MemoryRecord::Question { call, .. }
        | MemoryRecord::Answer { call, .. }
        | MemoryRecord::Attempt { call, .. }
        | MemoryRecord::Ended { call, .. } => call.call_id.as_str() == id,
        _ => true,
    };
    find(entries, |fact| match fact {
        Fact::Recorded(record, _) => record.kind() == kind && is_of(record),
        _ => false,
    })
}

/// Makes a record so much slower, or fail.
fn paced(entries: &mut [Entry], kind: &str, id: &str, new: Pace) {
    let at = record(entries, kind, id);
    match &mut entries[at].fact {
        Fact::Recorded(_, pace) => *pace = new,
        other => panic!("no record: {other:?}"),
    }
}

const SLOW: Pace = Pace::After(Duration::from_secs(60));
const FAILS: Pace = Pace::Fails(Duration::ZERO);

/// SM-4.
#[test]
fn a_start_before_its_record_is_durable_is_found() {
    for pace in [SLOW, FAILS] {
        breaks("SM-4", &recorded(), |entries| paced(entries, "attempt", "c1", pace));
        breaks("SM-4", &recorded(), |entries| paced(entries, "batch", "", pace));
        breaks("SM-4", &recorded(), |entries| paced(entries, "session", "", pace));
    }
}

/// SM-4.
#[test]
fn a_start_without_a_record_is_found() {
    breaks("SM-4", &recorded(), |entries| drop(entries.remove(record(entries, "attempt", "c1"))));
}

/// SM-4.
#[test]
fn a_result_before_its_record_is_durable_is_found() {
    for id in ["c0", "c1"] {
        breaks("SM-4", &recorded(), |entries| paced(entries, "ended", id, SLOW));
    }
    let mut unknown = program(1, &[&[UNKNOWN]]);
    unknown.recorder = recorded().recorder;
    breaks("SM-4", &unknown, |entries| paced(entries, "ended", "c0", SLOW));
}

/// SM-4.
#[test]
fn a_result_that_hides_that_it_is_not_durable_is_found() {
    breaks("SM-4", &recorded(), |entries| paced(entries, "ended", "c1", FAILS));
}

/// SM-4.
#[test]
fn a_question_or_an_answer_before_its_record_is_durable_is_found() {
    for kind in ["question", "answer"] {
        for pace in [SLOW, FAILS] {
            breaks("SM-4", &recorded(), |entries| paced(entries, kind, "c2", pace));
        }
    }
}

/// SM-4.
#[test]
fn a_record_that_comes_twice_or_never_is_found() {
    let twice = |kind: &'static str| {
        move |entries: &mut Vec<Entry>| {
            let at = record(entries, kind, "c2");
            entries.insert(at, entries[at].clone());
        }
    };
    for kind in ["batch", "question", "answer", "attempt", "ended"] {
        breaks("SM-4", &recorded(), twice(kind));
    }
    breaks("SM-4", &recorded(), |entries| drop(entries.remove(record(entries, "ended", "c2"))));
    let mut streamed = recorded();
    streamed.sessions[0].turns[0].mode = DispatchMode::Streamed(3);
    for kind in ["pushed", "closed"] {
        breaks("SM-4", &streamed, twice(kind));
    }
}

/// A write that runs when the engine is drained, and one behind it, which is suspended.
fn drained() -> Program {
    let mut program = program(1, &[&[SERIAL, SERIAL]]);
    program.recorder =
        Some(RecorderPlan { seed: 1, most_ms: 0, reads_wait: true, fails: 0, late: 0, durable: true });
    program.orders.push(Order { at_ms: 5, act: Act::Shutdown(30_000, 30_000) });
    program
}

/// SM-10.
#[test]
fn a_suspension_that_must_not_be_is_found() {
    let suspended =
        |entries: &[Entry]| event(entries, "c1", |kind| matches!(kind, EventKind::Suspended { .. }));
    breaks("SM-10", &drained(), |entries| {
        let (at, shutdown) =
            (suspended(entries), find(entries, |fact| matches!(fact, Fact::ShuttingDown(..))));
        let event = entries.remove(at);
        entries.insert(shutdown, event);
    });
    for kind in ["attempt", "ended"] {
        breaks("SM-10", &drained(), |entries| {
            let mut entry = entries[record(entries, kind, "c0")].clone();
            if let Fact::Recorded(record, _) = &mut entry.fact
                && let MemoryRecord::Attempt { call, .. } | MemoryRecord::Ended { call, .. } = &mut **record
            {
                (call.index, call.call_id) = (1, "c1".into());
            }
            let at = suspended(entries);
            entries.insert(at, entry);
        });
    }
    breaks("SM-10", &drained(), |entries| paced(entries, "batch", "", SLOW));
}

/// SM-10.
#[test]
fn a_call_without_an_end_that_was_not_suspended_is_found() {
    breaks("SM-4", &drained(), |entries| drop(entries.remove(record(entries, "ended", "c0"))));
}
