//! SM-4, SM-10: nothing starts, is shown, counts or is answered before its record is durable, a result that is not
//! durable says so, and every record comes once and in order.

mod order;
mod suspended;

use super::{Traces, Violation};
use crate::sim::{Entry, Fact, ResultView, program::Index};
use std::collections::BTreeMap;
use toolyard::{Dedupe, Event, EventKind, MemoryPlace, MemoryRecord, Pace};

/// How long a call waits for a record, in virtual microseconds.
const WAIT_US: u64 = 30_000_000;

/// A call, as records and events name it: its session, batch and index.
type Key<'a> = (&'a str, u64, u32);

/// What becomes of a record, and when.
#[derive(Debug, Clone, Copy)]
enum Fate {
    Nothing,
    Durable(u64),
    Fails(u64),
}

/// A record that was given.
struct Given<'a> {
    place: usize,
    at_us: u64,
    record: &'a MemoryRecord,
    fate: Fate,
}

impl Given<'_> {
    /// Whether whoever waits for it may go on at this time.
    fn lets_go_on(&self, at_us: u64) -> bool {
        match self.fate {
            Fate::Nothing => true,
            Fate::Durable(durable_us) => durable_us <= at_us,
            Fate::Fails(_) => false,
        }
    }
}

/// All records of a run, by what they are about.
struct Records<'a> {
    calls: BTreeMap<Key<'a>, Vec<Given<'a>>>,
    /// Those of batches and of the pieces of open ones.
    batches: BTreeMap<(&'a str, u64), Vec<Given<'a>>>,
    sessions: BTreeMap<&'a str, Given<'a>>,
}

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    if index.program.recorder.is_none() {
        return Vec::new();
    }
    let records = Records::of(traces.entries);
    let (mut found, mut of_suspended) = (order::check(&records, traces), Vec::new());
    // A drain that gives up waits no longer.
    let mut is_draining = false;
    for (place, Entry { at_us, fact }) in traces.entries.iter().enumerate() {
        match fact {
            Fact::ShuttingDown(..) => is_draining = true,
            Fact::Event(event) if matches!(event.kind, EventKind::Suspended { .. }) => {
                of_suspended.extend(suspended::fault_of_event(&records, index, event, is_draining));
            }
            Fact::Event(event) => found.extend(records.fault_of_event(place, *at_us, event)),
            Fact::Results(batch, results) => {
                let calls = index.batches.get(batch).map_or(&[][..], |placed| &placed.plan.calls);
                for (call, result) in calls.iter().zip(results) {
                    let first = traces.calls.get(&call.node).and_then(|trace| trace.events.first());
                    let key = first.and_then(|(_, _, event)| key_of(event));
                    let is_nested = index.batches.get(batch).is_some_and(|placed| placed.parent.is_some());
                    let Some(key) = key else { continue };
                    match is_nested {
                        _ if result.suspended.is_some() => {
                            of_suspended.extend(suspended::fault_of_result(&records, key, *at_us, result));
                        }
                        true => found.extend(records.fault_of_nested(key, result, is_draining)),
                        false => found.extend(records.fault_of_result(key, *at_us, result, is_draining)),
                    }
                }
            }
            _ => {}
        }
    }
    found.extend(early_ends(traces, &records));
    let found = found.into_iter().map(|what| Violation::new("SM-4", what));
    found.chain(of_suspended.into_iter().map(|what| Violation::new("SM-10", what))).collect()
}

/// The calls that had run, and were announced to have ended before that was durable.
fn early_ends(traces: &Traces<'_>, records: &Records<'_>) -> Vec<String> {
    let mut found = Vec::new();
    for (node, trace) in &traces.calls {
        let has_run = trace.events.iter().any(|(_, _, event)| matches!(event.kind, EventKind::Attempt));
        let end = trace.events.iter().find(|(_, _, event)| event.kind.is_terminal());
        let (true, Some((place, at_us, event))) = (has_run, end) else { continue };
        let dedupe = match &event.kind {
            EventKind::Completed { dedupe, .. } => *dedupe,
            kind => kind.failure().map_or(Dedupe::Fresh, |it| it.dedupe),
        };
        let Some(key) = key_of(event).filter(|_| dedupe == Dedupe::Fresh) else { continue };
        let is_end = |it: &&Given<'_>| it.place < *place && matches!(it.record, MemoryRecord::Ended { .. });
        match records.of_call(key).iter().find(is_end) {
            None => found.push(format!("c{node} was announced to have ended before that was recorded")),
            Some(it) => {
                if let Fate::Durable(durable_us) = it.fate
                    && durable_us > *at_us
                {
                    found.push(format!("c{node} was announced to have ended before that was durable"));
                }
            }
        }
    }
    found
}

impl<'a> Records<'a> {
    fn of(entries: &'a [Entry]) -> Self {
        let mut records =
            Self { calls: BTreeMap::new(), batches: BTreeMap::new(), sessions: BTreeMap::new() };
        let mut last_us = 0;
        for (place, entry) in entries.iter().enumerate() {
            let Fact::Recorded(record, pace) = &entry.fact else { continue };
            let after = |time: std::time::Duration| {
                entry.at_us + u64::try_from(time.as_micros()).unwrap_or(u64::MAX / 2)
            };
            let fate = match *pace {
                Pace::Nothing => Fate::Nothing,
                Pace::After(time) => Fate::Durable(last_us.max(after(time))),
                Pace::Fails(time) => Fate::Fails(after(time)),
            };
            if let Fate::Durable(at_us) = fate {
                last_us = at_us;
            }
            let given = Given { place, at_us: entry.at_us, record, fate };
            match &**record {
                MemoryRecord::Session { session, .. } => drop(records.sessions.insert(session, given)),
                MemoryRecord::Batch { session, batch, .. }
                | MemoryRecord::Pushed { session, batch, .. }
                | MemoryRecord::Closed { session, batch, .. } => {
                    records.batches.entry((session, *batch)).or_default().push(given);
                }
                MemoryRecord::Question { call, .. }
                | MemoryRecord::Answer { call, .. }
                | MemoryRecord::Attempt { call, .. }
                | MemoryRecord::AttemptEnded { call, .. }
                | MemoryRecord::Ended { call, .. } => {
                    records.calls.entry(place_key(call)).or_default().push(given);
                }
                _ => {}
            }
        }
        records
    }

    fn of_call<'b>(&'b self, key: Key<'b>) -> &'b [Given<'a>] {
        self.calls.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The last record before this place that is `wanted`.
    fn before<'b>(
        &'b self,
        key: Key<'b>,
        place: usize,
        wanted: impl Fn(&MemoryRecord) -> bool,
    ) -> Option<&'b Given<'a>> {
        self.of_call(key).iter().rev().find(|it| it.place < place && wanted(it.record))
    }

    /// What is wrong with an event, for lack of a durable record.
    fn fault_of_event(&self, place: usize, at_us: u64, event: &Event) -> Option<String> {
        let key = key_of(event)?;
        let wanted: (&str, Option<&Given<'a>>) = match &event.kind {
            EventKind::Attempt => {
                let number = event.attempt;
                let is_start = |it: &MemoryRecord| matches!(it, MemoryRecord::Attempt { attempt, .. } if Some(*attempt) == number);
                let start = self.before(key, place, is_start);
                if start.is_some_and(|it| !matches!(it.fate, Fate::Nothing)) && !self.is_founded(key, at_us) {
                    return Some(format!("{key:?} started before its batch or its session was durable"));
                }
                ("started", start)
            }
            EventKind::ConfirmationRequested(_) => {
                let asked = self.before(key, place, |it| matches!(it, MemoryRecord::Question { .. }));
                ("was asked about", asked)
            }
            EventKind::ConfirmationResolved(it) if it.decision.is_some() => {
                let answered = self.before(key, place, |it| matches!(it, MemoryRecord::Answer { .. }));
                ("was answered", answered)
            }
            _ => return None,
        };
        match wanted {
            (_, Some(it)) if it.lets_go_on(at_us) => None,
            (what, Some(it)) => Some(format!("{key:?} {what} at {at_us} us, but its record {:?}", it.fate)),
            (what, None) => Some(format!("{key:?} {what} at {at_us} us without a record")),
        }
    }

    /// Whether the records of its session and of its batch let a call go on.
    fn is_founded(&self, key: Key<'_>, at_us: u64) -> bool {
        let (session, batch, index) = key;
        let is_of = |it: &&Given<'_>| match it.record {
            MemoryRecord::Batch { .. } => true,
            MemoryRecord::Pushed { index: first, calls, .. } => {
                (*first..*first + calls.len() as u32).contains(&index)
            }
            _ => false,
        };
        let batch = self.batches.get(&(session, batch)).map_or(&[][..], Vec::as_slice);
        let session = self.sessions.get(session);
        session.is_some_and(|it| it.lets_go_on(at_us))
            && batch.iter().any(|it| matches!(it.record, MemoryRecord::Batch { .. }))
            && batch.iter().filter(is_of).all(|it| it.lets_go_on(at_us))
    }

    /// Whether the record that its open batch has all its calls fails.
    fn closing_fails(&self, (session, batch, _): Key<'_>) -> bool {
        let closed = self.batches.get(&(session, batch)).into_iter().flatten();
        closed
            .filter(|it| matches!(it.record, MemoryRecord::Closed { .. }))
            .any(|it| matches!(it.fate, Fate::Fails(_)))
    }

    /// What is wrong with a result that a handler was given. Of what has not run the record need not be durable then.
    fn fault_of_nested(&self, key: Key<'_>, result: &ResultView, is_draining: bool) -> Option<String> {
        let Some(end) = self.before(key, usize::MAX, |it| matches!(it, MemoryRecord::Ended { .. })) else {
            return Some(format!("{key:?} was answered, and that is not recorded"));
        };
        // A drain may give up on a record that is durable later.
        let is_lost = is_draining || matches!(end.fate, Fate::Fails(_)) || self.closing_fails(key);
        let is_right = result.recorded || is_lost;
        (!is_right).then(|| format!("{key:?} says that it is not durable, but {:?}", end.fate))
    }

    /// What is wrong with a result that its caller was given.
    fn fault_of_result(
        &self,
        key: Key<'_>,
        at_us: u64,
        result: &ResultView,
        is_draining: bool,
    ) -> Option<String> {
        let end = self.before(key, usize::MAX, |it| matches!(it, MemoryRecord::Ended { .. }));
        let Some(end) = end else { return Some(format!("{key:?} was answered, and that is not recorded")) };
        let says = if result.recorded { "says that it is durable" } else { "says that it is not durable" };
        let is_right = match end.fate {
            // The end of an open batch that is not durable leaves no result that is.
            _ if self.closing_fails(key) => !result.recorded,
            Fate::Nothing => result.recorded,
            Fate::Durable(durable_us) => result.recorded && durable_us <= at_us,
            Fate::Fails(fails_us) => {
                let waited = at_us >= fails_us.min(end.at_us + WAIT_US);
                !result.recorded && (waited || is_draining)
            }
        };
        // A drain may give up on a record that is durable later.
        let is_right = is_right || (is_draining && !result.recorded);
        (!is_right).then(|| format!("{key:?} was answered at {at_us} us and {says}, but {:?}", end.fate))
    }
}

fn place_key(call: &MemoryPlace) -> Key<'_> {
    (&call.session, call.batch, call.index)
}

fn key_of(event: &Event) -> Option<Key<'_>> {
    Some((event.session.as_str(), event.batch?, event.index?))
}
