//! The events of one session in a log.

use super::{Found, WhatFault, call_log::CallLog, turns::Turns};
use crate::event::{Event, EventKind};
use std::collections::{BTreeMap, btree_map::Entry};

/// The place in the log, and the number, position and times that every event has.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stamp {
    pub(super) at: u64,
    pub(super) seq: u64,
    pub(super) position: u64,
    pub(super) wall_ms: u64,
    pub(super) mono_us: u64,
}

/// Batch and index, which identify a call in its session.
type Place = (u64, u32);

/// The state of one session, as read from its events so far.
#[derive(Debug, Clone, Default)]
pub(super) struct SessionLog {
    last: Stamp,
    /// How many sessions of this name are open. One that is opened while another still closes continues its numbers.
    open: usize,
    /// Whether a session of this name was ever open.
    was_open: bool,
    calls: BTreeMap<Place, CallLog>,
    /// Calls that failed in or after an attempt, with that attempt's number: their late result may still come.
    failed: BTreeMap<Place, u32>,
    turns: Turns,
}

impl SessionLog {
    /// Checks the number, the position and the times. Returns `true` if the session starts anew under the name of a closed one.
    pub(super) fn check_stamp(&mut self, stamp: Stamp, begins: bool) -> (bool, Found) {
        let anew = begins && stamp.seq == 1 && self.was_open && self.open == 0;
        let mut found = Vec::new();
        if anew {
            let before = std::mem::take(self);
            found = before.open();
            self.last = Stamp { seq: 0, ..before.last };
        }
        let last = self.last;
        match stamp.seq {
            seq if seq == last.seq + 1 => {}
            seq if seq > last.seq => {
                found.push((stamp.at, None, WhatFault::Gap { expected: last.seq + 1, found: seq }));
            }
            seq => {
                found.push((stamp.at, None, WhatFault::Again { found: seq, last: last.seq }));
                // Its times fit its true place, not this one.
                return (anew, found);
            }
        }
        if stamp.position <= last.position && stamp.position > 0 {
            let (before, now) = (last.position, stamp.position);
            found.push((stamp.at, None, WhatFault::Backwards { clock: "position", before, now }));
        }
        for (clock, before, now) in
            [("mono_us", last.mono_us, stamp.mono_us), ("wall_ms", last.wall_ms, stamp.wall_ms)]
        {
            if now < before {
                found.push((stamp.at, None, WhatFault::Backwards { clock, before, now }));
            }
        }
        self.last = stamp;
        (anew, found)
    }

    /// Checks everything but the number and the times.
    pub(super) fn read(&mut self, at: u64, event: &Event, found: &mut Found) {
        if event.kind == EventKind::SessionOpened {
            self.open += 1;
            self.was_open = true;
        } else if self.was_open && self.open == 0 {
            found.push((at, event.call_id.clone(), WhatFault::AfterClose(event.kind.name())));
        }
        match (event.batch, event.index) {
            (Some(batch), Some(index)) if event.kind.is_of_call() => {
                self.call((batch, index), at, event, found)
            }
            _ if event.kind.is_of_call() => {
                found.push((at, event.call_id.clone(), WhatFault::NoCall(event.kind.name())));
            }
            _ => self.turns.read(at, event, found),
        }
        if event.kind == EventKind::SessionClosed {
            self.open = self.open.saturating_sub(1);
            if self.open == 0 {
                self.failed.clear();
            }
        }
    }

    fn call(&mut self, place: Place, at: u64, event: &Event, found: &mut Found) {
        let mut faults = Vec::new();
        match (self.failed.get(&place), &event.kind) {
            (Some(attempt), EventKind::LateResult { .. }) => {
                if event.attempt != Some(*attempt) {
                    faults.push(WhatFault::of_attempt(event, *attempt));
                }
                self.failed.remove(&place);
            }
            _ => self.read_call(place, at, event, &mut faults),
        }
        self.turns.count(place.0, event);
        found.extend(faults.into_iter().map(|fault| (at, event.call_id.clone(), fault)));
    }

    /// Reads an event of a call whose late result is not awaited.
    fn read_call(&mut self, place: Place, at: u64, event: &Event, faults: &mut Vec<WhatFault>) {
        let is_received = matches!(event.kind, EventKind::Received { .. });
        let call_log = match self.calls.entry(place) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) if is_received => entry.insert(CallLog::new(at, event)),
            Entry::Vacant(entry) => {
                faults.push(WhatFault::NotOpen(event.kind.name()));
                entry.insert(CallLog::broken(at, event))
            }
        };
        call_log.read(event, faults);
        // A terminal event or late result closes the call even if its start is missing, so nothing stays open.
        if event.kind.is_terminal() || matches!(event.kind, EventKind::LateResult { .. }) {
            let attempt = call_log.attempt();
            self.calls.remove(&place);
            if let (Some(attempt), EventKind::Failed(_)) = (attempt, &event.kind) {
                self.failed.insert(place, attempt);
            }
        }
    }

    /// The calls and turns that have not ended.
    pub(super) fn open(&self) -> Found {
        let calls = self.calls.values().map(CallLog::open);
        calls.chain(self.turns.open()).collect()
    }
}
