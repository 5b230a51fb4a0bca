//! Whether a call can wait forever while others keep coming.

use super::programs::Program;
use super::world::{Budget, Event, Phase, World};
use std::collections::HashMap;

/// The part of a state that shows whether a call starves.
struct Node {
    waits: Vec<bool>,
    runs: Vec<bool>,
    aged: Vec<bool>,
    next: Vec<(usize, Event)>,
}

impl Node {
    fn of(world: &World<'_>) -> Self {
        let calls = || 0..world.calls.len();
        let waits = |call: usize| matches!(world.calls[call].phase, Phase::Waiting(_));
        Self {
            waits: calls().map(waits).collect(),
            runs: calls().map(|call| world.calls[call].phase == Phase::Running).collect(),
            aged: calls().map(|call| waits(call) && world.is_aged(call)).collect(),
            next: Vec::new(),
        }
    }
}

/// Looks for a cycle of states in which one call waits all the time. Only a fair cycle counts: no handler runs all
/// through it, and every waiter that could come of age does. `None`: there are too many states to tell.
pub(super) fn starves(program: &Program, most: usize) -> Option<Option<usize>> {
    let nodes = graph(program, most)?;
    let starved = (0..program.calls.len())
        .find(|call| circles(&nodes, |node| node.waits[*call]).iter().any(|circle| is_fair(&nodes, circle)));
    Some(starved)
}

fn graph(program: &Program, most: usize) -> Option<Vec<Node>> {
    let start = World::new(program, Budget::default());
    let (mut known, mut nodes) = (HashMap::from([(start.key(), 0)]), vec![Node::of(&start)]);
    let mut todo = vec![(0, start)];
    while let Some((at, world)) = todo.pop() {
        let events = world.events();
        assert!(!world.is_stuck(&events), "stuck: {program:#?}");
        for event in events {
            let mut next = world.clone();
            next.happen(event);
            let to = *known.entry(next.key()).or_insert(nodes.len());
            nodes[at].next.push((to, event));
            if to == nodes.len() {
                nodes.push(Node::of(&next));
                todo.push((to, next));
            }
        }
        if nodes.len() > most {
            return None;
        }
    }
    Some(nodes)
}

fn is_fair(nodes: &[Node], circle: &[usize]) -> bool {
    let calls = 0..nodes[0].waits.len();
    let all = |of: &dyn Fn(&Node) -> bool| circle.iter().all(|at| of(&nodes[*at]));
    let never_ends = calls.clone().any(|call| all(&|node| node.runs[call]));
    let stays_young = |call: usize| {
        let may_age = |at: &usize| nodes[*at].next.iter().any(|(_, event)| *event == Event::Age(call));
        all(&|node| node.waits[call] && !node.aged[call]) && circle.iter().any(may_age)
    };
    !never_ends && !calls.clone().any(stays_young)
}

/// The strongly connected components of those states (Tarjan), of two states or more.
fn circles(nodes: &[Node], keep: impl Fn(&Node) -> bool) -> Vec<Vec<usize>> {
    const NEW: usize = usize::MAX;
    let (mut index, mut low) = (vec![NEW; nodes.len()], vec![0; nodes.len()]);
    let (mut stack, mut on_stack, mut count, mut found) = (vec![], vec![false; nodes.len()], 0, vec![]);
    for root in (0..nodes.len()).filter(|at| keep(&nodes[*at])) {
        let mut work = vec![(root, 0)];
        while let Some((at, edge)) = work.pop() {
            if edge == 0 {
                if index[at] != NEW {
                    continue;
                }
                (index[at], low[at], on_stack[at]) = (count, count, true);
                count += 1;
                stack.push(at);
            } else if let Some((to, _)) = nodes[at].next.get(edge - 1).filter(|(to, _)| on_stack[*to]) {
                low[at] = low[at].min(low[*to]);
            }
            if let Some((to, _)) = nodes[at].next.get(edge) {
                work.push((at, edge + 1));
                if keep(&nodes[*to]) && index[*to] == NEW {
                    work.push((*to, 0));
                }
            } else if low[at] == index[at] {
                let from = stack.iter().position(|other| *other == at).unwrap();
                let circle = stack.split_off(from);
                circle.iter().for_each(|at| on_stack[*at] = false);
                found.extend((circle.len() > 1).then_some(circle));
            }
        }
    }
    found
}
