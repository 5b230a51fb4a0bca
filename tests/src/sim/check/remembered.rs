//! The approver's answers that hold for more than one call (PO-3, PO-4).

use super::Traces;
use crate::sim::{
    Fact,
    program::{Consent, Index, Node},
};
use std::ops::Range;
use toolyard::{Decision, Receipt};

/// The calls for which one answer holds: those with the same root session, tool and significant arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pattern {
    root: usize,
    tool: usize,
    args: Option<u32>,
}

impl Pattern {
    pub(super) fn of(index: &Index<'_>, node: &Node<'_>) -> Self {
        let args = node.call.key.map(|key| key.args);
        Self { root: index.agents[node.agent].root, tool: node.call.tool, args }
    }
}

/// An answer to all calls of a pattern.
#[derive(Debug, Clone, Copy)]
pub(super) struct RememberedAnswer {
    pub(super) at_us: u64,
    pub(super) place: usize,
    pub(super) allows: bool,
    /// Where its giver was told that the engine took it (SM-6), if it did; it remembers no other.
    taken: Option<usize>,
    pattern: Pattern,
}

impl RememberedAnswer {
    /// Whether the engine took it.
    pub(super) fn is_taken(&self) -> bool {
        self.taken.is_some()
    }
}

/// Where the giver of the answer that was given here about this call was told that the engine took it, if it did.
fn taken(traces: &Traces<'_>, place: usize, node: u32) -> Option<usize> {
    let mut receipts = (place..).zip(&traces.entries[place..]).filter_map(|(at, entry)| match &entry.fact {
        Fact::Receipt(of, receipt) if *of == node => Some((at, receipt)),
        _ => None,
    });
    receipts.next().filter(|(_, receipt)| **receipt == Receipt::Taken).map(|(at, _)| at)
}

/// All remembered answers, and when they are forgotten.
pub(super) struct RememberedAnswers {
    given: Vec<RememberedAnswer>,
    /// Position in the journal, time, and root session.
    forgotten: Vec<(usize, u64, usize)>,
}

impl RememberedAnswers {
    pub(super) fn of(index: &Index<'_>, traces: &Traces<'_>) -> Self {
        let (mut given, mut forgotten) = (Vec::new(), Vec::new());
        for (place, entry) in traces.entries.iter().enumerate() {
            let at_us = entry.at_us;
            match &entry.fact {
                Fact::Forget(root) => forgotten.push((place, at_us, *root)),
                Fact::Answered(node, _, answer) => {
                    let Some(node) = index.nodes.get(node) else { continue };
                    // What was changed holds for one call alone.
                    let once = node.tool.is_some_and(|tool| tool.consent == Consent::AskedOnce)
                        && answer.arguments().is_none();
                    if once || answer.decision() == Decision::Always {
                        given.push(RememberedAnswer {
                            at_us,
                            place,
                            allows: answer.allows(),
                            taken: taken(traces, place, node.call.node),
                            pattern: Pattern::of(index, node),
                        });
                    }
                }
                _ => {}
            }
        }
        Self { given, forgotten }
    }

    /// The answers for a pattern given before this position.
    pub(super) fn before(&self, pattern: Pattern, place: usize) -> impl Iterator<Item = &RememberedAnswer> {
        self.given.iter().filter(move |given| given.pattern == pattern && given.place < place)
    }

    /// Whether an answer may have been forgotten before this position.
    pub(super) fn may_be_forgotten(&self, given: &RememberedAnswer, place: usize) -> bool {
        self.is_forgotten(given.pattern, given.place..place, u64::MAX)
    }

    /// Whether an answer was forgotten, after the engine had taken it, before this position and no later than this time.
    /// It takes an answer when that is recorded (SM-4), and forgets what it has taken.
    pub(super) fn must_be_forgotten(&self, given: &RememberedAnswer, place: usize, at_us: u64) -> bool {
        self.is_forgotten(given.pattern, given.taken.unwrap_or(given.place)..place, at_us)
    }

    fn is_forgotten(&self, pattern: Pattern, places: Range<usize>, until_us: u64) -> bool {
        let forgets = |(place, at_us, root): &(usize, u64, usize)| {
            *root == pattern.root && places.contains(place) && *at_us <= until_us
        };
        self.forgotten.iter().any(forgets)
    }
}
