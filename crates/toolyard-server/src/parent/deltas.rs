//! Output that comes before its call has ended, for a parent that wants it.

use super::{names::Names, out::Out, tell};
use std::sync::atomic::{AtomicBool, Ordering};
use toolyard::{Event, EventKind};

/// Passes on pieces of output. It is called as each is published, so that a piece stands before the answer of its call.
#[derive(Debug)]
pub(crate) struct Deltas {
    wanted: AtomicBool,
    names: Names,
    out: Out,
}

impl Deltas {
    pub(super) fn new(names: Names, out: Out) -> Self {
        Self { wanted: AtomicBool::new(false), names, out }
    }

    pub(super) fn want(&self, wanted: bool) {
        self.wanted.store(wanted, Ordering::Relaxed);
    }

    pub(crate) fn accept(&self, event: &Event) {
        let EventKind::OutputDelta { text } = &event.kind else { return };
        if !self.wanted.load(Ordering::Relaxed) {
            return;
        }
        let (Some(id), Some(turn)) = (&event.call_id, event.turn) else { return };
        if let Some(turn) = self.names.find(&event.session, turn) {
            let _ = self.out.try_tell(tell::delta(&turn, id, text)); // one that does not fit is left out
        }
    }
}
