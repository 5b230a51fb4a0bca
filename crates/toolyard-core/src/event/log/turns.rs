//! The turns of one session in a log: whether as many calls ended as they report.

use super::{Found, WhatFault};
use crate::event::{Event, EventKind};
use std::collections::BTreeMap;

/// The turns that are open, by the number of their batch.
#[derive(Debug, Clone, Default)]
pub(super) struct Turns(BTreeMap<u64, Turn>);

#[derive(Debug, Clone)]
struct Turn {
    at: u64,
    /// How many calls the turn started with; unknown while the model streams them.
    calls: Option<usize>,
    received: usize,
    ok: usize,
    failed: usize,
}

impl Turns {
    /// Reads an event that does not belong to a call.
    pub(super) fn read(&mut self, at: u64, event: &Event, found: &mut Found) {
        let batch = event.batch.unwrap_or_default();
        match event.kind {
            EventKind::TurnStarted { calls } => {
                self.0.insert(batch, Turn { at, calls, received: 0, ok: 0, failed: 0 });
            }
            EventKind::TurnEnded { ok, failed } => match self.0.remove(&batch) {
                None => found.push((at, None, WhatFault::NoTurn)),
                Some(turn) => {
                    let faults = turn.check_counts(ok, failed);
                    found.extend(faults.map(|fault| (at, None, fault)));
                }
            },
            _ => {}
        }
    }

    /// Counts an event of a call. Batches dispatched by handlers are not turns and are skipped.
    pub(super) fn count(&mut self, batch: u64, event: &Event) {
        let Some(turn) = self.0.get_mut(&batch) else { return };
        turn.received += usize::from(matches!(event.kind, EventKind::Received { .. }));
        turn.ok += usize::from(matches!(event.kind, EventKind::Completed { .. }));
        turn.failed +=
            usize::from(event.kind.is_failure() || matches!(event.kind, EventKind::Suspended { .. }));
    }

    /// The turns that have not ended.
    pub(super) fn open(&self) -> impl Iterator<Item = (u64, Option<crate::CallId>, WhatFault)> {
        self.0.values().map(|turn| (turn.at, None, WhatFault::TurnOpen))
    }
}

impl Turn {
    fn check_counts(&self, ok: usize, failed: usize) -> impl Iterator<Item = WhatFault> + use<> {
        let received = self.calls.map(|calls| ("that were received", calls, self.received));
        let ended = [("that ended with an output", ok, self.ok), ("that failed", failed, self.failed)];
        let reported = received.into_iter().chain(ended).filter(|(_, told, found)| told != found);
        reported.map(|(which, told, found)| WhatFault::Turn { which, told, found })
    }
}
