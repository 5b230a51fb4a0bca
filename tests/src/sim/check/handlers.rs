//! The handlers running at each moment, reconstructed from what the scripted tools report.

use super::{Traces, traces::ended};
use crate::sim::{
    Fact, HandlerStep,
    program::{Index, Node, node_of_id},
};
use std::collections::BTreeMap;
use toolyard::Event;

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
    /// Whether its call has ended.
    pub(super) over: bool,
    /// Whether it was parked when it was given up, and so has kept none of its units.
    pub(super) keeps_nothing: bool,
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

    fn has_stream(&self, node: u32) -> bool {
        self.handlers.get(&node).is_some_and(|it| it.streams > 0)
    }

    /// Applies a step of a handler.
    pub(super) fn apply(&mut self, node: u32, step: HandlerStep) {
        match step {
            HandlerStep::Started => drop(self.handlers.insert(node, HandlerState::default())),
            HandlerStep::Ended => drop(self.handlers.remove(&node)),
            HandlerStep::Parked => self.change(node, |it| it.parked = true),
            HandlerStep::NestedDropped => self.change(node, |it| it.dropped = true),
            HandlerStep::StreamStarted => self.change(node, |it| it.streams += 1),
            // It holds its units when it resumes.
            HandlerStep::StreamEnded => self.change(node, |it| {
                (it.streams, it.dropped) = (it.streams.saturating_sub(1), true);
            }),
            HandlerStep::Resumed => self.change(node, |it| (it.parked, it.dropped) = (false, false)),
            HandlerStep::GivenUp => self.change(node, |it| {
                (it.given_up, it.keeps_nothing) = (true, it.keeps_nothing || !it.is_active());
            }),
            HandlerStep::Wrote => {}
        }
    }

    /// Notes that a call has ended, if this is the event of that.
    pub(super) fn follow(&mut self, fact: &Fact) {
        let node = match fact {
            Fact::Event(event) if event.kind.is_terminal() => node_of(event),
            Fact::Recorded(record, _) => ended(record),
            _ => None,
        };
        if let Some(node) = node {
            self.change(node, |it| {
                (it.over, it.keeps_nothing) = (true, it.keeps_nothing || !it.is_active());
            });
        }
    }

    fn change(&mut self, node: u32, change: impl Fn(&mut HandlerState)) {
        self.handlers.get_mut(&node).into_iter().for_each(change);
    }
}

/// Calls `on` for every fact with the handlers after it, the time, and the handler that just started or resumed.
pub(super) fn replay(traces: &Traces<'_>, mut on: impl FnMut(&Handlers, u64, &Fact, Option<u32>)) {
    let (mut handlers, mut parks) = (Handlers::default(), Parks::default());
    for entry in traces.entries {
        parks.follow(&entry.fact);
        let mut starts = None;
        if let Fact::Handler(node, step) = entry.fact {
            handlers.apply(node, step);
            let resumes =
                step == HandlerStep::Resumed && parks.may_have_parked(node, handlers.has_stream(node));
            starts = (step == HandlerStep::Started || resumes).then_some(node);
        }
        handlers.follow(&entry.fact);
        on(&handlers, entry.at_us, &entry.fact, starts);
    }
}

/// Which handlers may have parked: a dispatch whose calls are answered at once parks nobody.
#[derive(Debug, Default)]
struct Parks {
    /// How many handlers have parked so far.
    count: usize,
    /// How many had when each handler began to wait, or last resumed with a stream open.
    before: BTreeMap<u32, usize>,
}

impl Parks {
    fn follow(&mut self, fact: &Fact) {
        match fact {
            Fact::Permits(change) if change.what == "park" => self.count += 1,
            Fact::Handler(node, HandlerStep::Parked | HandlerStep::StreamStarted) => {
                self.before.entry(*node).or_insert(self.count);
            }
            Fact::Handler(node, HandlerStep::Started) => drop(self.before.remove(node)),
            _ => {}
        }
    }

    /// Whether one has parked since this one began to wait, or last resumed. One with an open stream waits on: it
    /// parks with the next call that is taken in.
    fn may_have_parked(&mut self, node: u32, has_stream: bool) -> bool {
        let before =
            if has_stream { self.before.insert(node, self.count) } else { self.before.remove(&node) };
        before.is_none_or(|before| before < self.count)
    }
}

/// The call of an event, by its id. Twins share an id, but are answered before anything runs and do not matter.
pub(super) fn node_of(event: &Event) -> Option<u32> {
    node_of_id(event.call_id.as_ref()?)
}
