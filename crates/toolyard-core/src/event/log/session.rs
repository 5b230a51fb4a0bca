//! The events of one session.

use super::{Found, WhatFault, life::Life, turns::Turns};
use crate::event::{Event, EventKind};
use std::collections::{BTreeMap, btree_map::Entry};

/// What all events have: where one stands, its number, its times.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Stamp {
    pub(super) at: u64,
    pub(super) seq: u64,
    pub(super) wall_ms: u64,
    pub(super) mono_us: u64,
}

/// Batch and index: what tells the calls of a session apart.
type Place = (u64, u32);

/// What was read of one session.
#[derive(Debug, Clone, Default)]
pub(super) struct SessionLog {
    last: Stamp,
    /// How many sessions of this name are open: one that is opened while another closes goes on with its numbers.
    open: usize,
    /// Whether one was open.
    was_open: bool,
    calls: BTreeMap<Place, Life>,
    /// Calls that failed in or after an attempt, and the attempt's number: their late result may come.
    failed: BTreeMap<Place, u32>,
    turns: Turns,
}

impl SessionLog {
    /// Reads number and times. `true` where the session begins anew: the name of one that is gone is free again.
    pub(super) fn stamp(&mut self, stamp: Stamp, begins: bool) -> (bool, Found) {
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
                // Its times belong to its true place.
                return (anew, found);
            }
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

    /// Reads the rest of the event.
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
            _ => self.life(place, at, event, &mut faults),
        }
        self.turns.count(place.0, event);
        found.extend(faults.into_iter().map(|fault| (at, event.call_id.clone(), fault)));
    }

    /// An event of a call that has not ended.
    fn life(&mut self, place: Place, at: u64, event: &Event, faults: &mut Vec<WhatFault>) {
        let is_received = matches!(event.kind, EventKind::Received { .. });
        let life = match self.calls.entry(place) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) if is_received => entry.insert(Life::new(at, event)),
            Entry::Vacant(entry) => {
                faults.push(WhatFault::NotOpen(event.kind.name()));
                entry.insert(Life::broken(at, event))
            }
        };
        life.read(event, faults);
        // What follows the end of a call that is not there leaves nothing open.
        if event.kind.is_terminal() || matches!(event.kind, EventKind::LateResult { .. }) {
            let attempt = life.attempt();
            self.calls.remove(&place);
            if let (Some(attempt), EventKind::Failed(_)) = (attempt, &event.kind) {
                self.failed.insert(place, attempt);
            }
        }
    }

    /// What has not ended.
    pub(super) fn open(&self) -> Found {
        let calls = self.calls.values().map(Life::open);
        calls.chain(self.turns.open()).collect()
    }
}
