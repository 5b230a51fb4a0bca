//! JR-1, JR-5: a call whose cancel was acknowledged does not start in a later life.

use super::History;
use crate::sim::{
    Fact,
    check::{Violation, reach},
    program::node_of_id,
};
use std::collections::BTreeSet;
use toolyard::{Event, EventKind};

pub(super) fn check(history: &History<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (life, lived) in history.lives.iter().enumerate() {
        for (place, entry) in lived.entries.iter().enumerate() {
            let Fact::Held(cancel) = &entry.fact else { continue };
            let Some(reach) = reach(cancel) else { continue };
            let given = lived.entries[..place].iter().rposition(|it| is_same(&it.fact, cancel)).unwrap_or(0);
            let open = open_calls(lived.entries[..given].iter().map(|it| &it.fact));
            let reached = open.into_iter().filter(|node| reach.reaches(&history.index, *node));
            let run = reached.filter(|node| history.starts_after(*node, life));
            found.extend(run.map(|node| {
                let what = format!("c{node} runs after its cancel in life {} was acknowledged", life + 1);
                Violation::new("JR-5", what)
            }));
        }
    }
    found
}

fn is_same(fact: &Fact, cancel: &Fact) -> bool {
    match (fact, cancel) {
        (Fact::CancelTurn(one), Fact::CancelTurn(other)) => one == other,
        (Fact::CancelCall(one), Fact::CancelCall(other)) => one == other,
        (Fact::CancelFork(one), Fact::CancelFork(other)) => one == other,
        (Fact::CancelSession(one), Fact::CancelSession(other)) => one == other,
        (Fact::CancelCalls(one), Fact::CancelCalls(other)) => one == other,
        _ => false,
    }
}

/// The calls that were received and have not ended.
fn open_calls<'a>(facts: impl Iterator<Item = &'a Fact>) -> BTreeSet<u32> {
    let mut open = BTreeSet::new();
    let node_of = |event: &Event| event.call_id.as_ref().and_then(node_of_id);
    for fact in facts {
        let Fact::Event(event) = fact else { continue };
        let Some(node) = node_of(event) else { continue };
        match &event.kind {
            EventKind::Received { .. } => drop(open.insert(node)),
            EventKind::InputInvalid(_) => {} // perhaps that of another call with its id
            kind if kind.is_terminal() => drop(open.remove(&node)),
            _ => {}
        }
    }
    open
}
