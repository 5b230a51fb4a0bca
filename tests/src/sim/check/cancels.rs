//! I10: after a cancel, nothing within its reach starts, and after the grace nothing within its reach runs unless it
//! cannot be dropped.

use super::{SLACK_US, Traces, Violation};
use crate::sim::{
    Entry, Fact, HandlerStep,
    program::{Index, Placement},
};

/// The reach of a cancel.
#[derive(Debug, Clone, Copy)]
pub(in crate::sim) enum Reach {
    Batch(u32),
    Session(usize),
    Fork(u32),
    /// One call and its descendants.
    Call(u32),
    /// The descendants of a call.
    Below(u32),
    All,
}

impl Reach {
    /// Whether it reaches this call.
    pub(in crate::sim) fn reaches(self, index: &Index<'_>, node: u32) -> bool {
        match self {
            Self::Batch(batch) => {
                index.lineage(node).any(|above| index.nodes.get(&above).is_some_and(|it| it.batch == batch))
            }
            Self::Session(session) => index.root_of(node) == session,
            Self::Fork(number) => index
                .nodes
                .get(&node)
                .is_some_and(|it| index.agents_above(it.agent).any(|agent| agent.fork == Some(number))),
            Self::Call(call) => index.lineage(node).any(|above| above == call),
            Self::Below(call) => index.lineage(node).skip(1).any(|above| above == call),
            Self::All => true,
        }
    }

    /// Whether it may affect this call: it reaches the call, an ancestor, or a call that shares the result of either.
    pub(super) fn may_reach(self, index: &Index<'_>, node: u32) -> bool {
        let mut peers = index.lineage(node).flat_map(|above| index.peers(above));
        self.reaches(index, node) || peers.any(|peer| self.reaches(index, *peer))
    }

    /// Whether a handler within its reach may go on because a call that is not cancelled with it shares the result
    /// (ID-4).
    fn is_shared_outside(self, index: &Index<'_>, node: u32, is_later: impl Fn(u32) -> bool) -> bool {
        let reached = index.lineage(node).filter(|above| self.reaches(index, *above));
        let mut peers = reached.flat_map(|above| index.peers(above));
        peers.any(|peer| !self.reaches(index, *peer) || is_later(*peer))
    }
}

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (place, Entry { at_us, fact }) in traces.entries.iter().enumerate() {
        let grace_ms = index.program.grace_ms;
        let (reach, within_ms) = match fact {
            Fact::CancelTurn(batch) | Fact::Drop(batch) => (Reach::Batch(*batch), grace_ms),
            Fact::CancelSession(session) => (Reach::Session(*session), grace_ms),
            Fact::CancelFork(number) => (Reach::Fork(*number), grace_ms),
            Fact::CancelCalls(session) => (Reach::Session(*session), grace_ms),
            Fact::CancelCall(node) => (Reach::Call(*node), grace_ms),
            Fact::ShuttingDown(finish, grace) => (Reach::All, finish + grace_ms.min(*grace)),
            _ => continue,
        };
        let stops_by = at_us + within_ms * 1000 + SLACK_US;
        // A call that came after its session's calls were cancelled is not cancelled with them.
        let is_later = |node: u32| {
            let received = traces.calls.get(&node).and_then(|trace| trace.events.first());
            matches!(fact, Fact::CancelCalls(_)) && received.is_some_and(|it| it.0 > place)
        };
        let reached = |node: &u32| {
            reach.reaches(index, *node)
                && is_in_flight(index, traces, fact, *node, place)
                && !reach.is_shared_outside(index, *node, is_later)
        };
        for (node, trace) in traces.calls.iter().filter(|(node, _)| reached(node)) {
            if trace.first_time(HandlerStep::Started).is_some_and(|started| started > at_us + SLACK_US) {
                let what = format!("c{node} started after {fact:?} at {at_us} us");
                violations.push(Violation::new("I10", what));
            }
            let is_cut_off = traces.is_finished || traces.has_crashed;
            let ended = trace.first_time(HandlerStep::Ended).unwrap_or(if is_cut_off { 0 } else { u64::MAX });
            if ended > stops_by
                && trace.first_time(HandlerStep::Started).is_some()
                && can_be_dropped(index, *node)
            {
                let what = format!("c{node} still ran when the grace of {fact:?} at {at_us} us was over");
                violations.push(Violation::new("I10", what));
            }
        }
    }
    violations
}

/// Whether a fact that cancels only calls in flight finds this call, or the call it is cancelled with, in flight.
pub(super) fn is_in_flight(
    index: &Index<'_>,
    traces: &Traces<'_>,
    fact: &Fact,
    node: u32,
    place: usize,
) -> bool {
    let cancelled = match fact {
        // The batch may be dropped before it started, by an attempt that is followed by another; the later attempt
        // may start it.
        Fact::Drop(batch) => {
            let parent = index.batches.get(batch).and_then(|placed| traces.calls.get(&placed.parent?));
            let received = traces.calls.get(batch).and_then(|trace| trace.events.first());
            return parent.is_none_or(|parent| parent.attempts.len() < 2)
                || received.is_some_and(|it| it.0 < place);
        }
        Fact::CancelCall(call) => *call,
        Fact::CancelCalls(_) => index.lineage(node).last().unwrap_or(node),
        _ => return true,
    };
    let trace = traces.calls.get(&cancelled);
    trace.is_some_and(|trace| {
        let end = trace.events.iter().find(|(_, _, event)| event.kind.is_terminal());
        trace.events.first().is_some_and(|(received, _, _)| *received < place)
            && end.is_none_or(|(end, _, _)| *end > place)
    })
}

fn can_be_dropped(index: &Index<'_>, node: u32) -> bool {
    let tool = index.nodes.get(&node).and_then(|node| node.tool);
    tool.is_some_and(|tool| tool.placement != Placement::Blocking)
}
