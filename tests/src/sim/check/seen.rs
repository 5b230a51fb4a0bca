//! What was seen of a run, by call.

use crate::sim::{Entry, Fact, Moved, program::Index};
use std::collections::{BTreeMap, BTreeSet};
use toolyard::{ErrorKind, Event, EventKind};

/// What was seen of a run, by call.
#[derive(Debug)]
pub struct Seen<'a> {
    /// All of it, in order.
    pub entries: &'a [Entry],
    /// By the number of a call.
    pub calls: BTreeMap<u32, Life<'a>>,
    /// Events that belong to no call of the program.
    pub strangers: Vec<&'a Event>,
    /// Events of calls that were sent once more.
    pub again: Vec<&'a Event>,
    /// Whether the run came to its end.
    pub is_over: bool,
}

/// What was seen of one call.
#[derive(Debug, Default)]
pub struct Life<'a> {
    /// Its events, with their places in the whole and their times.
    pub events: Vec<(usize, u64, &'a Event)>,
    /// What its handler did, with times.
    pub moves: Vec<(u64, Moved)>,
    /// When and how it ended.
    pub end: Option<Ended>,
}

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// When.
    pub at_us: u64,
    /// With which code; `None` with an output.
    pub code: Option<ErrorKind>,
}

impl<'a> Seen<'a> {
    /// Sorts what was seen by calls.
    pub fn new(index: &Index<'_>, entries: &'a [Entry]) -> Self {
        let is_over = !entries.iter().any(|entry| matches!(entry.fact, Fact::Stuck(_)));
        let mut seen =
            Self { entries, calls: BTreeMap::new(), strangers: Vec::new(), again: Vec::new(), is_over };
        let (mut batches, mut known) = (BTreeMap::new(), BTreeSet::new());
        for (place, Entry { at_us, fact }) in entries.iter().enumerate() {
            match fact {
                Fact::Handler(node, moved) => {
                    seen.calls.entry(*node).or_default().moves.push((*at_us, *moved));
                }
                Fact::Event(event) => {
                    let (Some(number), Some(at)) = (event.batch, event.index) else { continue };
                    let key = (event.session.as_str(), event.agent.as_str(), number);
                    if let (EventKind::Received { .. }, 0, Some(first)) = (&event.kind, at, first_call(event))
                    {
                        let batch = index.nodes.get(&first).map(|node| node.batch);
                        let is_again = batch.is_some_and(|batch| !known.insert(batch));
                        batches.insert(key, (first, is_again));
                    }
                    let Some((first, is_again)) = batches.get(&key) else {
                        seen.strangers.push(event);
                        continue;
                    };
                    let plan = index.batches.get(first);
                    match plan.and_then(|placed| placed.plan.calls.get(at as usize)) {
                        _ if *is_again => seen.again.push(event),
                        Some(call) => seen.event(call.node, place, *at_us, event),
                        None => seen.strangers.push(event),
                    }
                }
                _ => {}
            }
        }
        seen
    }

    fn event(&mut self, node: u32, place: usize, at_us: u64, event: &'a Event) {
        let life = self.calls.entry(node).or_default();
        life.events.push((place, at_us, event));
        if event.kind.is_terminal() {
            let code = event.kind.failure().map(|failure| failure.code);
            life.end.get_or_insert(Ended { at_us, code });
        }
    }

    /// The end of a call, if it had one.
    pub fn end(&self, node: u32) -> Option<Ended> {
        self.calls.get(&node)?.end
    }
}

impl Life<'_> {
    /// When the handler did that first.
    pub fn when(&self, moved: Moved) -> Option<u64> {
        self.moves.iter().find(|(_, did)| *did == moved).map(|(at, _)| *at)
    }
}

/// The number of the call that is told of; the first call of a batch has an id of its own.
fn first_call(event: &Event) -> Option<u32> {
    event.call_id.as_ref()?.as_str().strip_prefix('c')?.parse().ok()
}
