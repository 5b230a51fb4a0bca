//! The handlers running at each moment, reconstructed from what the scripted tools report.

use super::Traces;
use crate::sim::{
    Fact, HandlerStep,
    program::{Index, Node},
};
use std::collections::BTreeMap;

/// The handlers that exist at a moment.
#[derive(Debug, Default)]
pub(super) struct Handlers {
    handlers: BTreeMap<u32, HandlerState>,
}

/// The state of a handler.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HandlerState {
    parked: bool,
    dropped: bool,
    streams: usize,
    pub(super) given_up: bool,
}

impl HandlerState {
    /// Whether it certainly holds its permits.
    pub(super) fn is_active(self) -> bool {
        !self.parked && !self.dropped && self.streams == 0
    }

    /// Whether it is certainly parked.
    pub(super) fn is_parked(self) -> bool {
        self.parked && !self.dropped
    }
}

impl Handlers {
    /// Every handler, parked or not.
    pub(super) fn all<'i, 'p>(
        &'i self,
        index: &'i Index<'p>,
    ) -> impl Iterator<Item = (HandlerState, &'i Node<'p>)> {
        self.handlers.iter().filter_map(|(node, state)| Some((*state, index.nodes.get(node)?)))
    }

    /// The handlers that are certainly not parked.
    pub(super) fn active<'i, 'p>(
        &'i self,
        index: &'i Index<'p>,
    ) -> impl Iterator<Item = (HandlerState, &'i Node<'p>)> {
        self.all(index).filter(|(state, _)| state.is_active())
    }

    /// Applies a step of a handler.
    pub(super) fn apply(&mut self, node: u32, step: HandlerStep) {
        match step {
            HandlerStep::Started => drop(self.handlers.insert(node, HandlerState::default())),
            HandlerStep::Ended => drop(self.handlers.remove(&node)),
            HandlerStep::Parked => self.change(node, |it| it.parked = true),
            HandlerStep::NestedDropped => self.change(node, |it| it.dropped = true),
            HandlerStep::StreamStarted => self.change(node, |it| it.streams += 1),
            HandlerStep::StreamEnded => self.change(node, |it| it.streams = it.streams.saturating_sub(1)),
            HandlerStep::Resumed => self.change(node, |it| (it.parked, it.dropped) = (false, false)),
            HandlerStep::GivenUp => self.change(node, |it| it.given_up = true),
            HandlerStep::Wrote => {}
        }
    }

    fn change(&mut self, node: u32, change: impl Fn(&mut HandlerState)) {
        self.handlers.get_mut(&node).into_iter().for_each(change);
    }
}

/// Calls `on` for every fact with the handlers after it, the time, and the handler that just started or resumed.
pub(super) fn replay(traces: &Traces<'_>, mut on: impl FnMut(&Handlers, u64, &Fact, Option<u32>)) {
    let mut handlers = Handlers::default();
    for entry in traces.entries {
        let mut starts = None;
        if let Fact::Handler(node, step) = entry.fact {
            handlers.apply(node, step);
            starts = matches!(step, HandlerStep::Started | HandlerStep::Resumed).then_some(node);
        }
        on(&handlers, entry.at_us, &entry.fact, starts);
    }
}
