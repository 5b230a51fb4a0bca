//! I10: after a cancel nothing of what it reaches starts, and after the grace nothing of it runs but what cannot be
//! dropped.

use super::{SLACK_US, Seen, Violation};
use crate::sim::{
    Entry, Fact, Moved,
    program::{Index, Where},
};

/// What a cancel reaches.
#[derive(Debug, Clone, Copy)]
pub(super) enum Reach {
    Batch(u32),
    Session(usize),
    Fork(u32),
    All,
}

impl Reach {
    /// Whether it reaches this call.
    pub(super) fn reaches(self, index: &Index<'_>, node: u32) -> bool {
        match self {
            Self::Batch(batch) => {
                index.lineage(node).any(|above| index.nodes.get(&above).is_some_and(|it| it.batch == batch))
            }
            Self::Session(session) => index.root_of(node) == session,
            Self::Fork(number) => index
                .nodes
                .get(&node)
                .is_some_and(|it| index.agents_above(it.agent).any(|agent| agent.fork == Some(number))),
            Self::All => true,
        }
    }
}

pub(super) fn check(index: &Index<'_>, seen: &Seen<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    for Entry { at_us, fact } in seen.entries {
        let grace_ms = index.program.grace_ms;
        let (reach, within_ms) = match fact {
            Fact::CancelTurn(batch) | Fact::Drop(batch) => (Reach::Batch(*batch), grace_ms),
            Fact::CancelSession(session) => (Reach::Session(*session), grace_ms),
            Fact::CancelFork(number) => (Reach::Fork(*number), grace_ms),
            Fact::ShuttingDown(finish, grace) => (Reach::All, finish + grace_ms.min(*grace)),
            _ => continue,
        };
        let stops_by = at_us + within_ms * 1000 + SLACK_US;
        for (node, life) in seen.calls.iter().filter(|(node, _)| reach.reaches(index, **node)) {
            if life.when(Moved::Began).is_some_and(|began| began > at_us + SLACK_US) {
                let what = format!("c{node} starts after {fact:?} at {at_us} us");
                violations.push(Violation::new("I10", what));
            }
            let ended = life.when(Moved::Ended).unwrap_or(if seen.is_over { 0 } else { u64::MAX });
            if ended > stops_by && life.when(Moved::Began).is_some() && can_be_dropped(index, *node) {
                let what = format!("c{node} runs after {fact:?} at {at_us} us and its grace");
                violations.push(Violation::new("I10", what));
            }
        }
    }
    violations
}

fn can_be_dropped(index: &Index<'_>, node: u32) -> bool {
    let tool = index.nodes.get(&node).and_then(|node| node.tool);
    tool.is_some_and(|tool| tool.placement != Where::Blocking)
}
