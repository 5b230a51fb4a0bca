//! CC-4: results take no more memory than they may, and none is refused while there is room for it.

use super::{SLACK_US, Traces, Violation};
use crate::sim::{
    Fact,
    program::{Index, Owner, Room},
};
use std::collections::BTreeMap;
use toolyard::{ErrorKind, EventKind, event::Failure};

/// A result of this size always fits.
const SMALL: usize = 1 << 10;
/// What a result may take besides the text of its output.
const OVERHEAD: usize = 2 << 10;
/// How much later than a replay the event of the call that ran may be.
const KEPT_US: u64 = SLACK_US / 10;
/// How much a batch may hold before it counts for its session and the engine, and how much it then takes at a time.
const UNCOUNTED: usize = 16 << 10;
const STEP: usize = 64 << 10;

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let room = index.program.room;
    let (mut violations, mut held) = (Vec::new(), Held::new(index, traces));
    for (place, entry) in traces.entries.iter().enumerate() {
        held.place = place;
        let Fact::Event(event) = &entry.fact else { continue };
        let Some(node) = held.of_place.get(&place).copied() else { continue };
        let mut broken = |what: String| {
            let what = format!("at {} us c{node} {what}", entry.at_us);
            violations.push(Violation::new("CC-4", what));
        };
        match (&event.kind, room) {
            (EventKind::Completed { bytes, .. }, Some(room)) if *bytes > SMALL => {
                if let Some((whose, bytes, most)) = held.add(node, *bytes, room) {
                    broken(format!("makes the results of {whose} {bytes} bytes of at most {most}"));
                }
            }
            (kind, room) => {
                let Some(failure) = kind.failure().filter(|failure| for_want_of_room(failure)) else {
                    continue;
                };
                if !held.shares_refusal(node, place, failure)
                    && !held.is_spent(node, place, failure)
                    && room.is_none_or(|room| held.has_room(node, place, room))
                {
                    broken(format!("is refused although there is room: {}", failure.message));
                }
            }
        }
    }
    violations
}

/// Whether a call ended so because there was no room for its result.
pub(super) fn for_want_of_room(failure: &Failure) -> bool {
    failure.reason == Some(toolyard::Reason::ResultBudget)
        && matches!(failure.code, ErrorKind::OutputTooLarge | ErrorKind::Overloaded)
}

/// What batches hold: at least, from what has been reported; at most, from what may have been.
struct Held<'a> {
    index: &'a Index<'a>,
    traces: &'a Traces<'a>,
    /// The calls whose ends are at these places.
    of_place: BTreeMap<usize, u32>,
    /// For each batch: the places of its first and its last event, and where its results have surely been released.
    spans: BTreeMap<u32, (usize, usize, usize)>,
    /// The large results of each batch so far.
    large: BTreeMap<u32, usize>,
    place: usize,
}

impl<'a> Held<'a> {
    fn new(index: &'a Index<'a>, traces: &'a Traces<'a>) -> Self {
        let (mut of_place, mut spans) = (BTreeMap::new(), BTreeMap::new());
        for (node, trace) in &traces.calls {
            let Some(batch) = index.nodes.get(node).map(|node| node.batch) else { continue };
            let end = trace.events.iter().find(|(_, _, event)| event.kind.is_terminal());
            of_place.extend(end.map(|(place, _, _)| (*place, *node)));
            let (first, last) =
                (trace.events.first().map_or(0, |it| it.0), end.map_or(usize::MAX, |it| it.0));
            let span = spans.entry(batch).or_insert((first, last, usize::MAX));
            (span.0, span.1) = (span.0.min(first), span.1.max(last));
        }
        for (batch, released) in released(index, traces) {
            spans.entry(batch).and_modify(|span| span.2 = released);
        }
        Self { index, traces, of_place, spans, large: BTreeMap::new(), place: 0 }
    }

    /// Adds a large result; returns whose bound it breaks, if any, with what is held and the bound.
    fn add(&mut self, node: u32, bytes: usize, room: Room) -> Option<(&'static str, usize, usize)> {
        let (batch, root) = (self.index.nodes[&node].batch, self.index.root_of(node));
        *self.large.entry(batch).or_default() += bytes;
        let own = self.large[&batch];
        if own > room.batch {
            return Some(("its batch", own, room.batch));
        }
        // Those of a batch may be released as soon as all its calls have ended.
        let open = self.large.iter().filter(|(batch, _)| self.spans[batch].1 >= self.place);
        let counted = |of_root: Option<usize>| -> usize {
            let of = open
                .clone()
                .filter(|(batch, _)| of_root.is_none_or(|root| self.index.root_of(**batch) == root));
            of.map(|(_, bytes)| bytes.saturating_sub(UNCOUNTED)).sum()
        };
        let (session, engine) = (counted(Some(root)), counted(None));
        match () {
            () if session > room.session => Some(("its session", session, room.session)),
            () if engine > room.engine => Some(("all sessions", engine, room.engine)),
            () => None,
        }
    }

    /// Whether a call that did not run was told what another call with its key had been told before (ID-3): that there
    /// was no room for the result in the batch of that one, which is checked there. A result without room is kept for
    /// a replay only if the tool must not run twice (V4); of another tool, only a call that came while it ran is told.
    /// A result is kept before its own event is emitted (V1), so that a replay may be reported a little before it.
    fn shares_refusal(&self, node: u32, place: usize, failure: &Failure) -> bool {
        let begins = |node: &u32| self.traces.calls.get(node)?.events.first().map(|it| it.0);
        let is_kept = self.index.nodes[&node].tool.is_some_and(|tool| !tool.is_repeatable());
        let has_run = |node: &u32| self.traces.calls.get(node).is_some_and(|it| !it.attempts.is_empty());
        let time = |place: usize| self.traces.entries[place].at_us;
        let told_before = |peer: &u32| {
            let (at, theirs) = self.traces.calls.get(peer)?.failure()?;
            let in_time =
                if is_kept { time(at) <= time(place) + KEPT_US } else { at < place && begins(&node)? < at };
            let is_same = for_want_of_room(theirs) && theirs.message == failure.message;
            (in_time && is_same && has_run(peer)).then_some(())
        };
        failure.code == ErrorKind::OutputTooLarge
            && !has_run(&node)
            && self.index.peers(node).iter().any(|peer| told_before(peer).is_some())
    }

    /// Whether a call was not started because a result of its batch had found no room, which is checked there.
    fn is_spent(&self, node: u32, place: usize, failure: &Failure) -> bool {
        let batch = self.index.nodes[&node].batch;
        let refused = |other: &u32| {
            let (at, theirs) = self.traces.calls.get(other)?.failure()?;
            (at < place && theirs.code == ErrorKind::OutputTooLarge && for_want_of_room(theirs)).then_some(())
        };
        let calls = self.index.batches[&batch].plan.calls.iter();
        failure.code == ErrorKind::Overloaded
            && calls.map(|call| call.node).any(|other| refused(&other).is_some())
    }

    /// Whether there was room for the result of a call that was refused, whatever had been held by then.
    fn has_room(&self, node: u32, place: usize, room: Room) -> bool {
        let (batch, root) = (self.index.nodes[&node].batch, self.index.root_of(node));
        if self.sizes(batch).sum::<usize>() > room.batch {
            return false;
        }
        let taken = |of_root: Option<usize>| -> usize {
            let held =
                self.spans.iter().filter(|(_, (first, _, released))| *first <= place && place <= *released);
            let of = held.filter(|(batch, _)| of_root.is_none_or(|root| self.index.root_of(**batch) == root));
            of.map(|(batch, _)| self.most_taken(*batch)).sum()
        };
        // A batch takes a whole step, and nothing starts any more when no other can be taken.
        taken(Some(root)) + STEP <= room.session && taken(None) + STEP <= room.engine
    }

    /// The most that a batch can take from its session and the engine. One that is streamed takes for each piece.
    fn most_taken(&self, batch: u32) -> usize {
        let owner = self.index.batches[&batch].owner;
        if matches!(owner, Owner::Turn(turn) if turn.mode.gap_ms().is_some()) {
            return self.sizes(batch).map(|bytes| bytes.next_multiple_of(STEP)).sum();
        }
        let bytes: usize = self.sizes(batch).sum();
        if bytes > UNCOUNTED { bytes.next_multiple_of(STEP) } else { 0 }
    }

    /// The most that each result of a batch can take. A call with a key may have the result of another.
    fn sizes(&self, batch: u32) -> impl Iterator<Item = usize> {
        self.index.batches[&batch].plan.calls.iter().map(|call| {
            let peers = self.index.peers(call.node).iter().chain([&call.node]);
            let most = peers.map(|peer| self.index.nodes[peer].call.script.bytes).max();
            most.unwrap_or(0) + OVERHEAD
        })
    }
}

/// Where the results of batches have surely been released: a little after their caller has taken them, and those of a
/// turn after it has sent them again. What was dropped may be held by a handler that runs on.
fn released(index: &Index<'_>, traces: &Traces<'_>) -> BTreeMap<u32, usize> {
    let mut taken = BTreeMap::new();
    for entry in traces.entries {
        match &entry.fact {
            Fact::Results(batch, _) | Fact::Resent(batch, ..) => drop(taken.insert(*batch, entry.at_us)),
            _ => {}
        }
    }
    let place = |at_us: u64| traces.entries.partition_point(|entry| entry.at_us <= at_us + SLACK_US);
    let awaited = taken.into_iter().filter(|(batch, _)| index.batches.contains_key(batch));
    awaited.map(|(batch, at_us)| (batch, place(at_us))).collect()
}
