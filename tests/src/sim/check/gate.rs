//! The gate's part of the naive model: how it may end a call, and which limits it sets.

use super::{
    SLACK_US, Traces,
    in_force::{Allows, InForce},
    remembered::{Pattern, RememberedAnswers},
    traces::CallTrace,
};
use crate::sim::program::{AnswerPlan, Index, Node};
use std::collections::BTreeSet;
use toolyard::ErrorKind;

/// The policies and remembered answers of a run.
pub(super) struct Gate<'a> {
    index: &'a Index<'a>,
    traces: &'a Traces<'a>,
    in_force: InForce<'a>,
    remembered: RememberedAnswers,
}

impl<'a> Gate<'a> {
    pub(super) fn of(index: &'a Index<'a>, traces: &'a Traces<'a>) -> Self {
        let (in_force, remembered) = (InForce::of(index, traces), RememberedAnswers::of(index, traces));
        Self { index, traces, in_force, remembered }
    }

    /// Whether every policy during the call's life denies it.
    pub(super) fn denies(&self, node: &Node<'_>) -> bool {
        let trace = self.traces.calls.get(&node.call.node);
        trace.is_some_and(|trace| self.in_force.allows(self.index, trace, node.call.tool) == Allows::Never)
    }

    /// Whether policies may end a call or another whose result it shares.
    pub(super) fn may_deny(&self, node: &Node<'_>) -> bool {
        self.call_traces(node).any(|trace| {
            let changes = self.in_force.changes(self.index, trace).count();
            let asks = node.tool.is_some_and(|tool| tool.consent.asks());
            let walls: BTreeSet<_> =
                self.in_force.during(self.index, trace).map(|since| since.plan.wall_ms).collect();
            let plans: Vec<_> = self.in_force.during(self.index, trace).map(|since| since.plan).collect();
            // An approval is valid for one policy and those of equal content, and a grant is renewed only once.
            let is_other = plans.windows(2).any(|next| !next[0].is_like(next[1]));
            let outdated = (asks && is_other) || (changes > 1 && walls.len() > 1);
            outdated || self.in_force.allows(self.index, trace, node.call.tool) != Allows::Always
        })
    }

    /// The wall time limits under which attempts of a call may run, in addition to its own timeout.
    pub(super) fn walls_ms(&self, node: &Node<'_>) -> BTreeSet<Option<u64>> {
        let during = self.call_traces(node).flat_map(|trace| self.in_force.during(self.index, trace));
        let walls: BTreeSet<_> = during.map(|since| since.plan.wall_ms).collect();
        if walls.is_empty() { BTreeSet::from([None]) } else { walls }
    }

    /// The traces of a call and of the calls whose results it may share.
    fn call_traces<'b>(&'b self, node: &'b Node<'_>) -> impl Iterator<Item = &'b CallTrace<'a>> {
        let peers = self.index.peers(node.call.node).iter().filter(move |peer| **peer != node.call.node);
        std::iter::once(&node.call.node).chain(peers).filter_map(|peer| self.traces.calls.get(peer))
    }

    /// Whether the answer to another question may have settled this call too: as a yes, as a no.
    pub(super) fn settled(&self, node: &Node<'_>) -> [bool; 2] {
        let trace = self.traces.calls.get(&node.call.node);
        let end = trace.and_then(|trace| trace.events.iter().find(|(_, _, event)| event.kind.is_terminal()));
        let to = end.map_or(usize::MAX, |(place, _, _)| *place);
        let pattern = Pattern::of(self.index, node);
        [true, false].map(|allows| self.remembered.before(pattern, to).any(|given| given.allows == allows))
    }

    /// The latest time in milliseconds at which a call is answered if each new policy asks again.
    pub(super) fn answered_ms(&self, node: &Node<'_>, after_ms: u64) -> u64 {
        let Some(trace) = self.traces.calls.get(&node.call.node) else { return after_ms };
        let received_us = trace.events.first().map_or(0, |(_, at_us, _)| *at_us);
        let last = self.in_force.changes(self.index, trace).last();
        let held_ms = node.call.held_ms.unwrap_or(0);
        last.map_or(after_ms, |since| {
            let since_ms = (since.at_us.saturating_sub(received_us) + SLACK_US) / 1000;
            since_ms + held_ms + after_ms
        })
    }
}

/// The code that the approver's own answer gives a call, and after how many milliseconds it comes.
pub(super) fn answer(plan: AnswerPlan) -> (Option<ErrorKind>, Option<u64>) {
    match plan {
        AnswerPlan::Yes(after) | AnswerPlan::Always(after) => (None, Some(after)),
        AnswerPlan::No(after) => (Some(ErrorKind::UserDenied), Some(after)),
        AnswerPlan::Panic => (Some(ErrorKind::Internal), Some(0)),
        AnswerPlan::Never => (None, None),
    }
}
