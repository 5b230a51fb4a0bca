//! The journal of a run, sorted by call.

use super::handlers::node_of;
use crate::sim::{
    Entry, Fact, HandlerEnd, HandlerStep, ResultView,
    program::{End, Index, node_of_id},
};
use std::collections::{BTreeMap, BTreeSet};
use toolyard::{ErrorKind, Event, EventKind, MemoryRecord, event::Failure};

/// The journal of a run, sorted by call. A *place* is a position in the journal.
#[derive(Debug)]
pub struct Traces<'a> {
    /// All entries, in order.
    pub entries: &'a [Entry],
    /// The calls by number.
    pub calls: BTreeMap<u32, CallTrace<'a>>,
    /// Events that do not belong to any call of the program.
    pub unknown: Vec<&'a Event>,
    /// Events of calls that were sent again.
    pub resent: Vec<&'a Event>,
    /// The results that callers received, by call.
    pub results: BTreeMap<u32, &'a ResultView>,
    /// Whether the run came to its end instead of getting stuck.
    pub is_finished: bool,
    /// Whether it was cut short by the end of the engine's life.
    pub has_crashed: bool,
}

/// Everything observed of one call.
#[derive(Debug, Default)]
pub struct CallTrace<'a> {
    /// Its events, with places and times.
    pub events: Vec<(usize, u64, &'a Event)>,
    /// The steps of its handlers, with times.
    pub steps: Vec<(u64, HandlerStep)>,
    /// When and how it ended.
    pub end: Option<CallEnd>,
    /// When the engine ended it, with the place: that is told when it is recorded (SM-4).
    pub over: Option<(u64, usize)>,
    /// Its attempts, in order.
    pub attempts: Vec<AttemptTrace>,
}

/// Everything observed of one attempt.
#[derive(Debug, Clone, Copy)]
pub struct AttemptTrace {
    /// Its number, as reported.
    pub number: u32,
    /// The time of its event.
    pub at_us: u64,
    /// The place of its event.
    pub place: usize,
    /// When its handler started, with the place.
    pub started: Option<(u64, usize)>,
    /// When and how its handler ended.
    pub end: Option<(u64, HandlerEnd)>,
    /// When its handler stopped running, with the place.
    pub stopped: Option<(u64, usize)>,
    /// When its sandbox failed before the handler started, with the place.
    pub not_started: Option<(u64, usize)>,
    /// When the end of the call or its next attempt was reported, with the place.
    pub closed: Option<(u64, usize)>,
    /// The delay and code reported if the attempt is to be repeated.
    pub retry: Option<(u64, ErrorKind)>,
}

/// The end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallEnd {
    /// When.
    pub at_us: u64,
    /// The error code; `None` with an output.
    pub code: Option<ErrorKind>,
}

impl<'a> Traces<'a> {
    /// Sorts the journal by call.
    pub fn new(index: &Index<'_>, entries: &'a [Entry]) -> Self {
        let is_finished = !entries.iter().any(|entry| matches!(entry.fact, Fact::Stuck(_) | Fact::Crashed));
        let mut traces = Self {
            entries,
            calls: BTreeMap::new(),
            unknown: Vec::new(),
            resent: Vec::new(),
            results: BTreeMap::new(),
            is_finished,
            has_crashed: entries.iter().any(|entry| matches!(entry.fact, Fact::Crashed)),
        };
        let (mut batches, mut known) = (BTreeMap::new(), BTreeSet::new());
        for (place, Entry { at_us, fact }) in entries.iter().enumerate() {
            match fact {
                Fact::Handler(node, step) => {
                    let trace = traces.calls.entry(*node).or_default();
                    trace.steps.push((*at_us, *step));
                    match (step, trace.attempts.last_mut()) {
                        (HandlerStep::Started, Some(it)) => it.started = Some((*at_us, place)),
                        (HandlerStep::Ended, Some(it)) => it.stopped = Some((*at_us, place)),
                        _ => {}
                    }
                }
                Fact::HandlerEnd(node, end) => {
                    let last = traces.calls.get_mut(node).and_then(|trace| trace.attempts.last_mut());
                    let Some(it) = last else { continue };
                    it.end = Some((*at_us, *end));
                    if *end == HandlerEnd::Scripted(End::NoSandbox) {
                        it.not_started = Some((*at_us, place));
                    }
                }
                Fact::Results(batch, results) => {
                    let calls = index.batches.get(batch).map_or(&[][..], |placed| &placed.plan.calls);
                    traces
                        .results
                        .extend(calls.iter().zip(results).map(|(call, result)| (call.node, result)));
                }
                Fact::Recorded(record, _) => {
                    if let Some(node) = ended(record) {
                        traces.calls.entry(node).or_default().ended(*at_us, place);
                    }
                }
                Fact::Event(event) => {
                    let (Some(number), Some(at)) = (event.batch, event.index) else { continue };
                    let key = (event.session.as_str(), event.agent.as_str(), number);
                    if let (EventKind::Received { .. }, 0, Some(first)) = (&event.kind, at, node_of(event)) {
                        let batch = index.nodes.get(&first).map(|node| node.batch);
                        let is_resent = batch.is_some_and(|batch| !known.insert(batch));
                        batches.insert(key, (first, is_resent));
                    }
                    let Some((first, is_resent)) = batches.get(&key) else {
                        traces.unknown.push(event);
                        continue;
                    };
                    let plan = index.batches.get(first);
                    match plan.and_then(|placed| placed.plan.calls.get(at as usize)) {
                        _ if *is_resent => traces.resent.push(event),
                        Some(call) => traces.event(call.node, place, *at_us, event),
                        None => traces.unknown.push(event),
                    }
                }
                _ => {}
            }
        }
        // Results of an earlier life that are only told again say nothing of this one.
        let is_sent_anew = |node: &u32| {
            let batch = index.nodes.get(node).filter(|it| it.parent.is_none()).map(|it| it.batch);
            let is_it = |entry: &Entry| matches!(entry.fact, Fact::Unknown(it) if Some(it) == batch);
            batch.is_none() || entries.iter().any(is_it)
        };
        traces.calls.retain(|node, trace| {
            !index.earlier.has_ended(*node) || !trace.is_told_at_once() || is_sent_anew(node)
        });
        traces
    }

    fn event(&mut self, node: u32, place: usize, at_us: u64, event: &'a Event) {
        let trace = self.calls.entry(node).or_default();
        trace.events.push((place, at_us, event));
        match (&event.kind, event.attempt) {
            (EventKind::Attempt, number) => trace.attempts.push(AttemptTrace {
                number: number.unwrap_or(0),
                at_us,
                place,
                started: None,
                end: None,
                stopped: None,
                not_started: None,
                closed: None,
                retry: None,
            }),
            (EventKind::Retry { delay_ms, code }, _) => {
                let last = trace.attempts.last_mut().into_iter();
                last.for_each(|it| (it.retry, it.closed) = (Some((*delay_ms, *code)), Some((at_us, place))));
            }
            (kind, _) if kind.is_terminal() => trace.ended(at_us, place),
            _ => {}
        }
        if event.kind.is_terminal() {
            let code = match event.kind {
                EventKind::Suspended { .. } => Some(ErrorKind::ShuttingDown),
                ref kind => kind.failure().map(|failure| failure.code),
            };
            trace.end.get_or_insert(CallEnd { at_us, code });
        }
    }

    /// The end of a call, if it ended.
    pub fn end(&self, node: u32) -> Option<CallEnd> {
        self.calls.get(&node)?.end
    }
}

impl AttemptTrace {
    /// When, at the latest, the engine knew that the attempt was over, with the place. A handler that cannot be
    /// dropped may keep running.
    pub fn finished(&self) -> Option<(u64, usize)> {
        [self.stopped, self.not_started, self.closed].into_iter().flatten().min_by_key(|(_, place)| *place)
    }

    /// When its handler stopped running; `u64::MAX` if it is still running.
    pub fn stopped_us(&self) -> u64 {
        self.stopped.map_or(u64::MAX, |(at_us, _)| at_us)
    }
}

/// The call whose end this records. One that reuses the id of another is refused as invalid.
pub(super) fn ended(record: &MemoryRecord) -> Option<u32> {
    match record {
        MemoryRecord::Ended { call, code, .. } if *code != Some(ErrorKind::InvalidInput) => {
            node_of_id(&call.call_id)
        }
        _ => None,
    }
}

impl CallTrace<'_> {
    /// Notes that the engine has ended it, now at the latest.
    fn ended(&mut self, at_us: u64, place: usize) {
        self.over.get_or_insert((at_us, place));
        let last = self.attempts.last_mut().filter(|it| it.closed.is_none()).into_iter();
        last.for_each(|it| it.closed = Some((at_us, place)));
    }

    /// Whether it has ended as soon as it was received.
    fn is_told_at_once(&self) -> bool {
        match &self.events[..] {
            [(_, from_us, _), (_, to_us, _)] => from_us == to_us,
            _ => false,
        }
    }

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
    pub fn first_time(&self, step: HandlerStep) -> Option<u64> {
        self.steps.iter().find(|(_, did)| *did == step).map(|(at, _)| *at)
    }
}
