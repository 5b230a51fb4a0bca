//! The journal of a run, sorted by call.

use crate::sim::{Entry, Fact, Moved, Said, Shape, program::Index};
use std::collections::{BTreeMap, BTreeSet};
use toolyard::{ErrorKind, Event, EventKind, event::Failure};

/// The journal of a run, sorted by call. A *place* is a position in the journal.
#[derive(Debug)]
pub struct Seen<'a> {
    /// All entries, in order.
    pub entries: &'a [Entry],
    /// The calls by number.
    pub calls: BTreeMap<u32, Life<'a>>,
    /// Events that do not belong to any call of the program.
    pub strangers: Vec<&'a Event>,
    /// Events of calls that were sent again.
    pub again: Vec<&'a Event>,
    /// The results that callers received, by call.
    pub results: BTreeMap<u32, &'a Shape>,
    /// Whether the run came to its end instead of getting stuck.
    pub is_over: bool,
}

/// Everything observed of one call.
#[derive(Debug, Default)]
pub struct Life<'a> {
    /// Its events, with places and times.
    pub events: Vec<(usize, u64, &'a Event)>,
    /// The steps of its handlers, with times.
    pub moves: Vec<(u64, Moved)>,
    /// When and how it ended.
    pub end: Option<Ended>,
    /// Its attempts, in order.
    pub tries: Vec<Try>,
}

/// Everything observed of one attempt.
#[derive(Debug, Clone, Copy)]
pub struct Try {
    /// Its number, as reported.
    pub number: u32,
    /// The time of its event.
    pub at_us: u64,
    /// The place of its event.
    pub place: usize,
    /// When its handler started, with the place.
    pub began: Option<(u64, usize)>,
    /// When and how its handler ended.
    pub said: Option<(u64, Said)>,
    /// When its handler was gone, with the place.
    pub ended: Option<(u64, usize)>,
    /// When the end of the call or its next attempt was reported, with the place.
    pub closed: Option<(u64, usize)>,
    /// The delay and code reported if the attempt is to be repeated.
    pub retry: Option<(u64, ErrorKind)>,
}

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// When.
    pub at_us: u64,
    /// The error code; `None` with an output.
    pub code: Option<ErrorKind>,
}

impl<'a> Seen<'a> {
    /// Sorts the journal by call.
    pub fn new(index: &Index<'_>, entries: &'a [Entry]) -> Self {
        let is_over = !entries.iter().any(|entry| matches!(entry.fact, Fact::Stuck(_)));
        let mut seen = Self {
            entries,
            calls: BTreeMap::new(),
            strangers: Vec::new(),
            again: Vec::new(),
            results: BTreeMap::new(),
            is_over,
        };
        let (mut batches, mut known) = (BTreeMap::new(), BTreeSet::new());
        for (place, Entry { at_us, fact }) in entries.iter().enumerate() {
            match fact {
                Fact::Handler(node, moved) => {
                    let life = seen.calls.entry(*node).or_default();
                    life.moves.push((*at_us, *moved));
                    match (moved, life.tries.last_mut()) {
                        (Moved::Began, Some(it)) => it.began = Some((*at_us, place)),
                        (Moved::Ended, Some(it)) => it.ended = Some((*at_us, place)),
                        _ => {}
                    }
                }
                Fact::Said(node, said) => {
                    let last = seen.calls.get_mut(node).and_then(|life| life.tries.last_mut());
                    last.into_iter().for_each(|it| it.said = Some((*at_us, *said)));
                }
                Fact::Results(batch, shapes) => {
                    let calls = index.batches.get(batch).map_or(&[][..], |placed| &placed.plan.calls);
                    seen.results.extend(calls.iter().zip(shapes).map(|(call, shape)| (call.node, shape)));
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
        match (&event.kind, event.attempt) {
            (EventKind::Attempt, number) => life.tries.push(Try {
                number: number.unwrap_or(0),
                at_us,
                place,
                began: None,
                said: None,
                ended: None,
                closed: None,
                retry: None,
            }),
            (EventKind::Retry { delay_ms, code }, _) => {
                let last = life.tries.last_mut().into_iter();
                last.for_each(|it| (it.retry, it.closed) = (Some((*delay_ms, *code)), Some((at_us, place))));
            }
            (kind, _) if kind.is_terminal() => {
                let last = life.tries.last_mut().filter(|it| it.closed.is_none()).into_iter();
                last.for_each(|it| it.closed = Some((at_us, place)));
            }
            _ => {}
        }
        if event.kind.is_terminal() {
            let code = event.kind.failure().map(|failure| failure.code);
            life.end.get_or_insert(Ended { at_us, code });
        }
    }

    /// The end of a call, if it ended.
    pub fn end(&self, node: u32) -> Option<Ended> {
        self.calls.get(&node)?.end
    }
}

impl Try {
    /// When, at the latest, the engine knew that the attempt was over, with the place. A handler that cannot be
    /// dropped may keep running.
    pub fn over(&self) -> Option<(u64, usize)> {
        [self.ended, self.closed].into_iter().flatten().min_by_key(|(_, place)| *place)
    }

    /// When its handler was gone; `u64::MAX` if it is still running.
    pub fn gone_us(&self) -> u64 {
        self.ended.map_or(u64::MAX, |(at_us, _)| at_us)
    }
}

impl Life<'_> {
    /// When the call was ready for its first permits, computed from its `called` event, to the millisecond.
    pub fn ready_us(&self) -> Option<u64> {
        self.events.iter().find_map(|(_, at_us, event)| match &event.kind {
            EventKind::Called { queue_ms, .. } => Some(at_us.saturating_sub(queue_ms * 1000)),
            _ => None,
        })
    }

    /// The failure it ended with, and its place.
    pub fn failure(&self) -> Option<(usize, &Failure)> {
        self.events.iter().find_map(|(place, _, event)| Some((*place, event.kind.failure()?)))
    }

    /// When its handler first made this step.
    pub fn when(&self, moved: Moved) -> Option<u64> {
        self.moves.iter().find(|(_, did)| *did == moved).map(|(at, _)| *at)
    }
}

/// The number of an event's call. The first call of a batch always has its own id.
fn first_call(event: &Event) -> Option<u32> {
    event.call_id.as_ref()?.as_str().strip_prefix('c')?.parse().ok()
}
