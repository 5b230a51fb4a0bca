//! I5, JR-5, JR-6, JR-10: nothing that changes something is done twice, neither by one call nor under one key. JR-1: a
//! read is not repeated once something behind it has begun.

use super::History;
use crate::sim::{
    Fact, HandlerEnd,
    check::Violation,
    program::{End, Node},
    stage::effect,
};
use std::collections::BTreeMap;
use toolyard::ToolClass;

pub(super) fn check(history: &History<'_>) -> Vec<Violation> {
    let (mut effects, mut harmless) = (BTreeMap::<u32, i32>::new(), BTreeMap::<u32, usize>::new());
    for (_, fact) in history.facts() {
        if let Some((node, change)) = effect(fact) {
            *effects.entry(node).or_default() += change;
        }
        if let Fact::HandlerEnd(node, HandlerEnd::Scripted(End::Harmless)) = fact {
            *harmless.entry(*node).or_default() += 1;
        }
    }
    let index = &history.index;
    let once = |node: &&Node<'_>| node.tool.is_some_and(|tool| !tool.is_repeatable());
    let mut found = Vec::new();
    for node in index.nodes.values().filter(once) {
        let number = node.call.node;
        let peers = index.peers(number);
        // A group is looked at once.
        if peers.first().is_some_and(|first| *first != number) {
            continue;
        }
        let all = || peers.iter().chain(peers.is_empty().then_some(&number));
        let done: i32 = all().filter_map(|it| effects.get(it)).sum();
        if done > 1 {
            let what = format!("c{number} or calls with its key have had {done} effects");
            found.push(Violation::new("I5", what));
        }
        let starts: usize = all().map(|it| history.starts_of(*it).len()).sum();
        let for_nothing: usize = all().filter_map(|it| harmless.get(it)).sum();
        // What a tool says was not done is started again.
        if starts > 1 + for_nothing && !history.plan.reconciles {
            let what = format!("c{number} or calls with its key were started {starts} times");
            found.push(Violation::new("I5", what));
        }
    }
    found.extend(index.nodes.values().filter_map(|node| read_again(history, node)));
    found
}

/// A read that runs again although what changes something behind it had begun in an earlier life.
fn read_again(history: &History<'_>, node: &Node<'_>) -> Option<Violation> {
    let number = node.call.node;
    let last = *history.starts_of(number).last().filter(|_| history.is_plain_read(number))?;
    let behind = history.index.batches.get(&node.batch)?.plan.calls.get(node.at + 1..)?;
    let has_begun = behind.iter().find(|call| {
        let writes = |it: &Node<'_>| it.tool.is_some_and(|tool| tool.class != ToolClass::Read);
        let changes = |it: &Node<'_>| it.run > node.run && writes(it);
        history.index.nodes.get(&call.node).is_some_and(changes)
            && history.starts_of(call.node).first().is_some_and(|life| *life < last)
    })?;
    let what = format!("c{number} was read again after c{} behind it had begun", has_begun.node);
    Some(Violation::new("JR-1", what))
}
