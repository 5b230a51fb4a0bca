//! I3, I4: no pool, limit or cap is used beyond its width, and serial handlers never overlap.

use super::{
    SLACK_US, Traces, Violation,
    handlers::{HandlerState, Handlers, replay},
};
use crate::sim::{
    Fact,
    program::{Index, Node, Placement},
};
use toolyard::{LimitScope, ToolClass};

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut widths = Widths::of(index);
    replay(traces, |handlers, at_us, fact, starts| {
        widths.follow(at_us, fact);
        if let Some(node) = starts.and_then(|node| index.nodes.get(&node)) {
            at_start(index, handlers, &widths, at_us, node, &mut violations);
        }
    });
    violations
}

/// Checks every bound of a call at its start.
fn at_start(
    index: &Index<'_>,
    handlers: &Handlers,
    widths: &Widths,
    at_us: u64,
    node: &Node<'_>,
    violations: &mut Vec<Violation>,
) {
    if node.class().is_none() {
        violations.push(Violation::new("I14", format!("c{} runs although it was refused", node.call.node)));
    }
    let mut bound = |rule, what: &str, most: usize, counts: &dyn Fn(HandlerState, &Node<'_>) -> bool| {
        let running = handlers.active(index).filter(|(state, other)| counts(*state, other));
        let running: Vec<_> = running.map(|(_, other)| format!("c{}", other.call.node)).collect();
        if running.len() > most {
            let who = running.join(", ");
            let what = format!("at {at_us} us {who} run at once, but {what} has width {most}");
            violations.push(Violation::new(rule, what));
        }
    };
    let agent = &index.agents[node.agent];
    match node.class() {
        Some(ToolClass::Read) => {
            bound("I3", "the read pool", widths.most(ToolClass::Read), &|state, other| {
                !state.given_up && other.class() == Some(ToolClass::Read)
            })
        }
        Some(ToolClass::Concurrent) => {
            bound("I3", "the concurrent pool", widths.most(ToolClass::Concurrent), &|state, other| {
                other.class() == Some(ToolClass::Concurrent)
                    && !state.keeps_nothing
                    && index.agents[other.agent].concurrent_of == agent.concurrent_of
            });
        }
        Some(ToolClass::Serial) => {
            bound("I4", "the serial lease", 1, &|_, other| other.scope(index) == node.scope(index))
        }
        None => {}
    }
    if let Some((tool, limit)) = node.tool.and_then(|tool| Some((tool, tool.limit?))) {
        bound("I3", "its tool", limit, &|state, other| {
            other.call.tool == node.call.tool
                && !state.keeps_nothing
                && !(state.given_up && other.class() == Some(ToolClass::Read))
                && match tool.limit_scope {
                    LimitScope::Agent => other.agent == node.agent,
                    LimitScope::Tree => index.agents[other.agent].root == agent.root,
                    LimitScope::Engine => true,
                }
        });
    }
    if let Some(cap) = index.program.sessions[agent.root].tree_cap {
        bound("I3", "its tree", cap, &|state, other| {
            !state.given_up && index.agents[other.agent].root == agent.root
        });
    }
    if let Some(cap) = agent.cap {
        bound("I3", "its session", cap, &|state, other| !state.given_up && other.agent == node.agent);
    }
    let on_thread = |node: &Node<'_>| node.tool.is_some_and(|tool| tool.placement == Placement::Blocking);
    if let Some(threads) = index.program.threads.filter(|_| on_thread(node)) {
        bound("I3", "the threads", threads, &|state, other| on_thread(other) && !state.keeps_nothing);
    }
}

/// The widths that may be in force. While a pool is being resized, and a little after, both widths may be.
struct Widths {
    may_be: [Vec<(usize, u64)>; 3],
    resizes: [Resizes; 3],
    now_us: u64,
}

/// The resizes of a pool in progress, and whether any of them overlapped.
#[derive(Default)]
struct Resizes {
    under_way: usize,
    overlap: bool,
}

impl Widths {
    fn of(index: &Index<'_>) -> Self {
        let widths = [index.program.read, 1, index.program.concurrent];
        let may_be = widths.map(|width| vec![(width, u64::MAX)]);
        Self { may_be, resizes: Default::default(), now_us: 0 }
    }

    fn follow(&mut self, at_us: u64, fact: &Fact) {
        self.now_us = at_us;
        match fact {
            Fact::Resizing(class, width) => {
                self.may_be[class.index()].push((*width, u64::MAX));
                let resizes = &mut self.resizes[class.index()];
                resizes.overlap |= resizes.under_way > 0;
                resizes.under_way += 1;
            }
            Fact::Resized(class, width) => self.resized(at_us, *class, *width),
            _ => {}
        }
    }

    /// If several resizes overlap, their order cannot be observed, so any of their widths may be in force.
    fn resized(&mut self, at_us: u64, class: ToolClass, width: usize) {
        let (widths, resizes) = (&mut self.may_be[class.index()], &mut self.resizes[class.index()]);
        resizes.under_way -= 1;
        if resizes.under_way == 0 && !std::mem::take(&mut resizes.overlap) {
            widths.iter_mut().for_each(|(_, until)| *until = (*until).min(at_us + SLACK_US));
            widths.push((width, u64::MAX));
        }
    }

    fn most(&self, class: ToolClass) -> usize {
        let live = self.may_be[class.index()].iter().filter(|(_, until)| *until >= self.now_us);
        live.map(|(width, _)| *width).max().unwrap_or(usize::MAX)
    }
}
