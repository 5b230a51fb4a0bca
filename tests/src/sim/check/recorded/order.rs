//! Every record comes once and in the order of the call's life, after that of its batch.

use super::{Given, Key, Records, Traces, key_of};
use crate::sim::Fact;
use std::collections::{BTreeMap, BTreeSet};
use toolyard::{EventKind, MemoryRecord};

/// How far a call's records have come.
#[derive(Default)]
struct Life {
    asked: usize,
    answered: bool,
    attempt: Option<u32>,
    /// Whether the last attempt has left that it is followed by another.
    is_retried: bool,
    ended: bool,
}

pub(super) fn check(records: &Records<'_>, traces: &Traces<'_>) -> Vec<String> {
    let mut found = Vec::new();
    // A question is asked anew after a change of the policy.
    let asked_anew = traces.entries.iter().any(|entry| matches!(entry.fact, Fact::SetPolicy(_)));
    let suspended: BTreeSet<_> = suspended(traces).collect();
    let mut lives: BTreeMap<Key<'_>, Life> = BTreeMap::new();
    for (key, given) in &records.calls {
        let life = lives.entry(*key).or_default();
        for it in given {
            if let Some(what) = life.next(it.record, asked_anew) {
                found.push(format!("{key:?} {what}: {:?}", it.record));
            }
        }
        let first = given.first().map_or(usize::MAX, |it| it.place);
        let arrived = records.batches.get(&(key.0, key.1)).and_then(|batch| batch.first());
        if arrived.is_none_or(|it| it.place > first) {
            found.push(format!("{key:?} has a record before its batch has"));
        }
    }
    for ((session, batch), given) in &records.batches {
        let (fault, calls) = of_batch(given);
        found.extend(fault.map(|what| format!("batch {batch} of {session} {what}")));
        let is_over = |index: &u32| {
            let key = (*session, *batch, *index);
            lives.get(&key).is_some_and(|it| it.ended) || suspended.contains(&key)
        };
        let open = (0..calls).filter(|index| !is_over(index));
        if traces.is_finished {
            found.extend(open.map(|index| format!("call {index} of batch {batch} of {session} has no end")));
        }
    }
    found
}

/// The calls that a drain has suspended: they have no end.
fn suspended<'a>(traces: &Traces<'a>) -> impl Iterator<Item = Key<'a>> {
    traces.entries.iter().filter_map(|entry| match &entry.fact {
        Fact::Event(event) if matches!(event.kind, EventKind::Suspended { .. }) => key_of(event),
        _ => None,
    })
}

/// What is wrong with the records of a batch, and how many calls it has.
fn of_batch(given: &[Given<'_>]) -> (Option<&'static str>, u32) {
    let (mut open, mut total, mut closed) = (None, 0, false);
    for it in given {
        match it.record {
            MemoryRecord::Batch { calls, is_open, .. } => {
                if open.replace(*is_open).is_some() {
                    return (Some("arrives twice"), total);
                }
                total = calls.len() as u32;
            }
            MemoryRecord::Pushed { index, calls, .. } => {
                if open != Some(true) || closed || *index != total {
                    return (Some("is given calls that do not follow"), total);
                }
                total += calls.len() as u32;
            }
            MemoryRecord::Closed { calls, .. } => {
                let is_right = open == Some(true) && !closed && *calls == total;
                closed = true;
                if !is_right {
                    return (Some("ends twice, or with other calls"), total);
                }
            }
            _ => {}
        }
    }
    (None, total)
}

impl Life {
    /// Takes the next record of the call; returns what is wrong with it.
    fn next(&mut self, record: &MemoryRecord, asked_anew: bool) -> Option<&'static str> {
        match record {
            MemoryRecord::Question { .. } => {
                self.asked += 1;
                let is_late = self.answered || self.attempt.is_some() || self.ended;
                (is_late || (self.asked > 1 && !asked_anew)).then_some("is asked about again, or too late")
            }
            MemoryRecord::Answer { .. } => {
                let is_wrong = self.asked == 0 || self.answered || self.attempt.is_some() || self.ended;
                self.answered = true;
                is_wrong.then_some("is answered without a question, again, or too late")
            }
            MemoryRecord::Attempt { attempt, .. } => {
                let follows = self.attempt.is_none_or(|last| self.is_retried && *attempt == last + 1);
                let is_approved = self.asked == 0 || self.answered;
                (self.attempt, self.is_retried) = (Some(*attempt), false);
                (!follows || !is_approved || self.ended).then_some("starts out of order")
            }
            MemoryRecord::AttemptEnded { attempt, is_retried, .. } => {
                let is_wrong = self.attempt != Some(*attempt) || self.is_retried;
                self.is_retried = *is_retried;
                is_wrong.then_some("ends an attempt that does not run")
            }
            MemoryRecord::Ended { .. } => {
                let again = std::mem::replace(&mut self.ended, true);
                again.then_some("ends twice")
            }
            _ => None,
        }
    }
}
