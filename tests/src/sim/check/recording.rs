//! The calls that wait, with their permits, for the record of their attempt (SM-4), and what becomes of calls whose
//! record fails.

use super::{cancels::Reach, handlers::node_of};
use crate::sim::{Entry, Fact, program::node_of_id};
use std::collections::BTreeSet;
use toolyard::{EventKind, MemoryRecord, Pace};

/// The calls that wait for the record of an attempt, at a moment.
#[derive(Debug, Default)]
pub(super) struct Recording(BTreeSet<u32>);

impl Recording {
    /// Their numbers.
    pub(super) fn calls(&self) -> impl Iterator<Item = u32> {
        self.0.iter().copied()
    }

    /// Takes the next entry of the journal.
    pub(super) fn follow(&mut self, fact: &Fact) {
        self.begins(fact);
        self.ends(fact);
    }

    /// Takes in a call whose attempt is being recorded from here on.
    pub(super) fn begins(&mut self, fact: &Fact) {
        if let Fact::Recorded(record, pace) = fact
            && let MemoryRecord::Attempt { call, attempt, .. } = &**record
            // Where its own record need not be waited for, that of the end of the attempt before it is.
            && (*pace != Pace::Nothing || *attempt > 1)
        {
            self.0.extend(node_of_id(&call.call_id));
        }
    }

    /// Lets go of a call that starts or ends here.
    pub(super) fn ends(&mut self, fact: &Fact) {
        match fact {
            // One that reuses the id of another is refused as invalid.
            Fact::Event(event) if matches!(event.kind, EventKind::InputInvalid(_)) => {}
            Fact::Event(event) if event.kind == EventKind::Attempt || event.kind.is_terminal() => {
                node_of(event).iter().for_each(|number| _ = self.0.remove(number));
            }
            _ => {}
        }
    }
}

/// Since when, and which calls, may be refused because a record that they wait for is not durable.
pub(super) fn failures(entries: &[Entry]) -> Vec<(u64, Reach)> {
    let (mut found, mut open) = (Vec::new(), BTreeSet::new());
    for entry in entries {
        let Fact::Recorded(record, pace) = &entry.fact else { continue };
        let fails = matches!(pace, Pace::Fails(_));
        let is_unfounded = match &**record {
            MemoryRecord::Batch { session, batch, is_open: true, .. } if fails => {
                open.insert((session, *batch));
                true
            }
            MemoryRecord::Pushed { session, batch, .. } => open.contains(&(session, *batch)),
            _ => false,
        };
        if fails || is_unfounded {
            found.extend(reach(record).into_iter().map(|reach| (entry.at_us, reach)));
        }
    }
    found
}

/// The calls that wait for this record before they start.
fn reach(record: &MemoryRecord) -> Vec<Reach> {
    match record {
        MemoryRecord::Session { session, .. } | MemoryRecord::Fork { session, .. } => {
            let root = session.strip_prefix('s').and_then(|root| root.parse().ok());
            root.map(Reach::Session).into_iter().collect()
        }
        MemoryRecord::Batch { calls, .. } | MemoryRecord::Pushed { calls, .. } => {
            calls.iter().filter_map(node_of_id).map(Reach::Call).collect()
        }
        MemoryRecord::Question { call, .. }
        | MemoryRecord::Answer { call, .. }
        | MemoryRecord::Attempt { call, .. }
        | MemoryRecord::AttemptEnded { call, .. } => {
            node_of_id(&call.call_id).map(Reach::Call).into_iter().collect()
        }
        _ => Vec::new(),
    }
}
