//! What earlier lives of the engine have done for calls of a program, as far as it decides how they may end now (JR-5,
//! JR-8, JR-10).

use super::{Reach, at_gate::at_gate, handlers::node_of};
use crate::sim::{
    Entry, Fact,
    program::{AtGate, Index, Node, node_of_id},
};
use std::collections::{BTreeMap, BTreeSet};
use toolyard::{ErrorKind, EventKind, MemoryRecord};

/// What earlier lives have done.
#[derive(Debug, Clone, Default)]
pub struct Earlier {
    lives: usize,
    calls: BTreeMap<u32, Done>,
    /// What was cancelled, or may have been with a drain.
    cancelled: Vec<Reach>,
    /// The calls that somebody was asked about and answered.
    answered: BTreeSet<u32>,
    /// The calls whose question has an answer, be it that to another one.
    settled: BTreeSet<u32>,
    /// How the gate answered calls.
    at_gate: BTreeMap<u32, AtGate>,
}

/// What they have done for a call.
#[derive(Debug, Clone, Default)]
struct Done {
    /// The codes with which it ended; `None` with an output.
    codes: BTreeSet<Option<ErrorKind>>,
    attempts: u32,
}

impl Earlier {
    pub(super) fn is_empty(&self) -> bool {
        self.lives == 0
    }

    /// Adds a life.
    pub fn follow(&mut self, entries: &[Entry]) {
        self.lives += 1;
        self.at_gate = self.at_gate(entries);
        for entry in entries {
            match &entry.fact {
                Fact::Event(event) => {
                    let Some(node) = node_of(event) else { continue };
                    let done = self.calls.entry(node).or_default();
                    if event.kind.is_terminal() && !matches!(event.kind, EventKind::Suspended { .. }) {
                        done.codes.insert(event.kind.failure().map(|failure| failure.code));
                    }
                }
                Fact::Recorded(record, _) => match &**record {
                    MemoryRecord::Ended { call, code, .. } => {
                        let node = node_of_id(&call.call_id);
                        node.into_iter().for_each(|node| {
                            self.calls.entry(node).or_default().codes.insert(*code);
                        });
                    }
                    MemoryRecord::Answer { call, .. } => self.settled.extend(node_of_id(&call.call_id)),
                    MemoryRecord::Attempt { call, attempt, .. } => {
                        let node = node_of_id(&call.call_id);
                        node.into_iter().for_each(|node| {
                            let done = self.calls.entry(node).or_default();
                            done.attempts = done.attempts.max(*attempt);
                        });
                    }
                    _ => {}
                },
                Fact::Answered(node, ..) => drop(self.answered.insert(*node)),
                fact => self.cancelled.extend(reach(fact)),
            }
        }
    }

    /// How the gate has answered calls in a life or in those before it, if they have ended there.
    pub(super) fn at_gate(&self, entries: &[Entry]) -> BTreeMap<u32, AtGate> {
        let passes: BTreeSet<_> = entries.iter().filter_map(passed).collect();
        // One whose end was not durable is looked at anew.
        let stays = |node: &u32| self.has_ended(*node) && !passes.contains(node);
        let now = at_gate(entries).into_iter().filter(|(node, _)| !self.has_ended(*node));
        let before = self.at_gate.iter().filter(|(node, _)| stays(node));
        now.chain(before.map(|(node, answer)| (*node, *answer))).collect()
    }

    /// Whether a call has ended.
    pub(super) fn has_ended(&self, node: u32) -> bool {
        self.calls.get(&node).is_some_and(|done| !done.codes.is_empty())
    }

    /// Whether somebody has answered a question that may settle this call: about it, or one that shares it.
    pub(super) fn is_answered(&self, index: &Index<'_>, node: &Node<'_>) -> bool {
        let shares = |number: &u32| {
            *number == node.call.node
                || index.peers(node.call.node).contains(number)
                || index.nodes.get(number).is_some_and(|it| it.call.tool == node.call.tool)
        };
        self.answered.iter().any(shares)
    }

    /// Whether the question of a call has an answer, be it that to another one.
    pub(super) fn is_settled(&self, node: u32) -> bool {
        self.settled.contains(&node)
    }

    /// Whether a call, or one whose result it shares, was attempted.
    pub(super) fn was_attempted(&self, index: &Index<'_>, node: u32) -> bool {
        index.peers(node).iter().chain([&node]).any(|it| self.attempts(*it) > 0)
    }

    /// Whether an earlier cancel may reach a call.
    pub fn is_cancelled(&self, index: &Index<'_>, node: u32) -> bool {
        self.cancelled.iter().any(|reach| reach.may_reach(index, node))
    }

    /// How often a call was attempted.
    pub fn attempts(&self, node: u32) -> u32 {
        self.calls.get(&node).map_or(0, |done| done.attempts)
    }

    /// The latest attempt with which a call may go on now, for itself or for one with its key.
    pub(super) fn next_attempt(&self, index: &Index<'_>, node: u32) -> u32 {
        let peers = index.peers(node).iter().chain([&node]);
        peers.map(|peer| self.attempts(*peer) + 1).max().unwrap_or(1)
    }

    /// The attempts with which a call may go on now.
    pub(super) fn next_attempts(&self, node: u32) -> std::ops::RangeInclusive<u32> {
        2..=self.attempts(node) + 1
    }

    /// The codes with which a call may end because of them.
    pub(super) fn codes(&self, index: &Index<'_>, node: &Node<'_>) -> BTreeSet<Option<ErrorKind>> {
        let mut codes = BTreeSet::new();
        if self.is_empty() {
            return codes;
        }
        let related =
            index.lineage(node.call.node).flat_map(|above| index.peers(above)).chain([&node.call.node]);
        for done in related.filter_map(|number| self.calls.get(number)) {
            codes.extend(&done.codes);
            if done.attempts > 0 {
                codes.insert(Some(ErrorKind::Interrupted));
                codes.insert(Some(ErrorKind::AlreadyExecuted));
            }
        }
        let is_unknown_before = |above: u32| {
            let Some(above) = index.nodes.get(&above) else { return false };
            let before = index.batches.get(&above.batch).map_or(&[][..], |it| &it.plan.calls[..above.at]);
            before.iter().any(|call| self.was_attempted(index, call.node))
        };
        if self.is_cancelled(index, node.call.node) || index.lineage(node.call.node).any(is_unknown_before) {
            codes.insert(Some(ErrorKind::Cancelled));
        }
        codes
    }
}

/// The call that passes the gate here, or has: one that joins another has only an end, with an output or an error that
/// handlers have.
fn passed(entry: &Entry) -> Option<u32> {
    use ErrorKind::{ExecutionError, Panic, Timeout, Transient};
    let Fact::Event(event) = &entry.fact else { return None };
    let has_passed = match event.kind {
        EventKind::Called { .. } | EventKind::Completed { .. } => true,
        _ => matches!(event.kind.failure()?.code, ExecutionError | Panic | Timeout | Transient),
    };
    if has_passed { node_of(event) } else { None }
}

/// What this cancels.
pub(in crate::sim) fn reach(fact: &Fact) -> Option<Reach> {
    Some(match fact {
        Fact::CancelTurn(batch) | Fact::Drop(batch) => Reach::Batch(*batch),
        Fact::CancelSession(session) | Fact::CancelCalls(session) => Reach::Session(*session),
        Fact::CancelFork(number) => Reach::Fork(*number),
        Fact::CancelCall(node) => Reach::Call(*node),
        Fact::ShuttingDown(..) => Reach::All,
        _ => return None,
    })
}
