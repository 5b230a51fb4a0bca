//! The handlers running at each moment, reconstructed from what the scripted tools report.

use super::Seen;
use crate::sim::{
    Fact, Moved,
    program::{Index, Node},
};
use std::collections::BTreeMap;

/// The handlers that exist at a moment.
#[derive(Debug, Default)]
pub(super) struct Floor {
    handlers: BTreeMap<u32, Standing>,
}

/// The state of a handler.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Standing {
    parked: bool,
    dropped: bool,
    streams: usize,
    pub(super) given_up: bool,
}

impl Standing {
    /// Whether it certainly holds its permits.
    pub(super) fn is_active(self) -> bool {
        !self.parked && !self.dropped && self.streams == 0
    }

    /// Whether it is certainly parked.
    pub(super) fn is_parked(self) -> bool {
        self.parked && !self.dropped
    }
}

impl Floor {
    /// Every handler, parked or not.
    pub(super) fn all<'i, 'p>(
        &'i self,
        index: &'i Index<'p>,
    ) -> impl Iterator<Item = (Standing, &'i Node<'p>)> {
        self.handlers.iter().filter_map(|(node, standing)| Some((*standing, index.nodes.get(node)?)))
    }

    /// The handlers that are certainly not parked.
    pub(super) fn active<'i, 'p>(
        &'i self,
        index: &'i Index<'p>,
    ) -> impl Iterator<Item = (Standing, &'i Node<'p>)> {
        self.all(index).filter(|(standing, _)| standing.is_active())
    }

    /// Applies a step of a handler.
    pub(super) fn moved(&mut self, node: u32, moved: Moved) {
        match moved {
            Moved::Began => drop(self.handlers.insert(node, Standing::default())),
            Moved::Ended => drop(self.handlers.remove(&node)),
            Moved::Parked => self.change(node, |it| it.parked = true),
            Moved::Dropped => self.change(node, |it| it.dropped = true),
            Moved::Streams => self.change(node, |it| it.streams += 1),
            Moved::Streamed => self.change(node, |it| it.streams = it.streams.saturating_sub(1)),
            Moved::Resumed => self.change(node, |it| (it.parked, it.dropped) = (false, false)),
            Moved::GivenUp => self.change(node, |it| it.given_up = true),
            Moved::Wrote => {}
        }
    }

    fn change(&mut self, node: u32, change: impl Fn(&mut Standing)) {
        self.handlers.get_mut(&node).into_iter().for_each(change);
    }
}

/// Calls `on` for every fact with the floor after it, the time, and the handler that just started or resumed, if any.
pub(super) fn replay(seen: &Seen<'_>, mut on: impl FnMut(&Floor, u64, &Fact, Option<u32>)) {
    let mut floor = Floor::default();
    for entry in seen.entries {
        let mut starts = None;
        if let Fact::Handler(node, moved) = entry.fact {
            floor.moved(node, moved);
            starts = matches!(moved, Moved::Began | Moved::Resumed).then_some(node);
        }
        on(&floor, entry.at_us, &entry.fact, starts);
    }
}
