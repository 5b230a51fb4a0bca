//! I13: started calls never cost more than the budget; reservations of calls that never started are refunded (RT-11).

use super::{
    Traces, Violation,
    traces::{AttemptTrace, CallTrace},
};
use crate::sim::{
    Fact,
    program::{Index, Node},
};
use toolyard::{Budget, ErrorKind, event::Failure};

/// The owner of a budget that a call draws on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum BudgetOwner {
    /// A turn, by its batch.
    Turn(u32),
    /// An agent.
    Agent(usize),
    /// A tree.
    Tree(usize),
    /// A tool within a tree.
    Tool(usize, usize),
}

impl BudgetOwner {
    /// Its name in the engine's messages.
    fn name(self) -> &'static str {
        match self {
            Self::Turn(_) => "turn",
            Self::Agent(_) => "session",
            Self::Tree(_) => "tree",
            Self::Tool(..) => "tool",
        }
    }

    fn limit(self, index: &Index<'_>) -> Budget {
        let [turn, session, tree] = index.program.budgets;
        match self {
            Self::Turn(_) => turn,
            Self::Agent(_) => session,
            Self::Tree(_) => tree,
            Self::Tool(_, tool) => index.program.tools[tool].guards.budget,
        }
    }

    /// Whether this call draws on it.
    fn charges(self, index: &Index<'_>, node: &Node<'_>) -> bool {
        owners(index, node).any(|owner| owner == self)
    }
}

/// All owners of budgets that a call draws on.
fn owners<'a>(index: &'a Index<'_>, node: &Node<'_>) -> impl Iterator<Item = BudgetOwner> + 'a {
    let root = index.agents[node.agent].root;
    let top = index.lineage(node.call.node).last().and_then(|top| index.nodes.get(&top));
    let agents = std::iter::successors(Some(node.agent), |agent| index.agents[*agent].parent);
    let turn = top.map(|top| BudgetOwner::Turn(top.batch));
    agents
        .map(BudgetOwner::Agent)
        .chain(turn)
        .chain([BudgetOwner::Tree(root), BudgetOwner::Tool(root, node.call.tool)])
}

pub(super) fn check(index: &Index<'_>, traces: &Traces<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut all: Vec<_> = index.nodes.values().flat_map(|node| owners(index, node)).collect();
    all.sort_unstable();
    all.dedup();
    for owner in all.into_iter().filter(|owner| is_known(index, *owner) && !owner.limit(index).is_unlimited())
    {
        let (limit, spent) = (owner.limit(index), spent(index, traces, owner));
        if limit.calls.is_some_and(|most| spent.0 > most) || limit.cost.is_some_and(|most| spent.1 > most) {
            let what = format!("{owner:?} has spent {spent:?} of {limit:?}");
            violations.push(Violation::new("I13", what));
        }
    }
    for entry in traces.entries {
        if let Fact::BudgetLeft(root, left) = entry.fact {
            violations.extend(left_over(index, traces, root, left));
        }
    }
    for (number, trace) in &traces.calls {
        let Some(node) = index.nodes.get(number) else { continue };
        if let Some((place, failure)) = trace.failure().filter(|(_, it)| it.code == ErrorKind::BudgetExceeded)
        {
            violations.extend(refused(index, traces, node, place, failure));
        }
    }
    violations
}

fn is_known(index: &Index<'_>, owner: BudgetOwner) -> bool {
    !matches!(owner, BudgetOwner::Tool(_, tool) if tool >= index.program.tools.len())
}

/// Whether a call started and paid. Only its first attempt pays, in each life of the engine.
fn has_paid(index: &Index<'_>, node: u32, trace: &CallTrace<'_>) -> bool {
    let is_first = |it: &AttemptTrace| it.number == 1 || it.number <= index.earlier.attempts(node) + 1;
    let has_started = trace.attempts.iter().any(|it| it.not_started.is_none());
    let may_have_paid = trace.attempts.first().is_some_and(is_first) && has_started;
    may_have_paid && trace.failure().is_none_or(|(_, it)| it.attempts > 0)
}

/// The number of calls that were started and their total cost.
fn spent(index: &Index<'_>, traces: &Traces<'_>, owner: BudgetOwner) -> (u64, u64) {
    let paid = traces
        .calls
        .iter()
        .filter(|(node, trace)| has_paid(index, **node, trace))
        .filter_map(|(node, _)| index.nodes.get(node));
    let costs =
        paid.filter(|node| owner.charges(index, node)).filter_map(|node| Some(node.tool?.guards.cost));
    costs.fold((0, 0), |(calls, cost), one| (calls + 1, cost + one))
}

/// Compares what a root session reports as left with what it and its tree have spent.
fn left_over(index: &Index<'_>, traces: &Traces<'_>, root: usize, left: Budget) -> Option<Violation> {
    let lefts = [BudgetOwner::Agent(root), BudgetOwner::Tree(root)].map(|owner| {
        let (limit, (calls, cost)) = (owner.limit(index), spent(index, traces, owner));
        (limit.calls.map(|most| most.saturating_sub(calls)), limit.cost.map(|most| most.saturating_sub(cost)))
    });
    let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
    let expected = (least(lefts[0].0, lefts[1].0), least(lefts[0].1, lefts[1].1));
    ((left.calls, left.cost) != expected).then(|| {
        let what = format!("session {root} has {left:?} left at the end instead of {expected:?}");
        Violation::new("I13", what)
    })
}

/// Checks the numbers in a `budget_exceeded` refusal: what was spent or reserved is at most what calls that had
/// started or were in flight could hold.
fn refused(
    index: &Index<'_>,
    traces: &Traces<'_>,
    node: &Node<'_>,
    place: usize,
    failure: &Failure,
) -> Option<Violation> {
    let (name, left, unit) = parse_refusal(&failure.message)?;
    let possible = owners(index, node).filter(|owner| owner.name() == name).any(|owner| {
        let limit = owner.limit(index);
        let others = traces.calls.iter().filter_map(|(it, trace)| Some((index.nodes.get(it)?, trace)));
        let held = others.filter(|(it, trace)| owner.charges(index, it) && may_hold(trace, place));
        let costs = held.filter_map(|(it, _)| Some(it.tool?.guards.cost));
        let (calls, cost) = costs.fold((0, 0), |(calls, cost), one| (calls + 1, cost + one));
        let (limit, held, needs) = match unit {
            "calls" => (limit.calls, calls, 1),
            _ => (limit.cost, cost, node.tool.map_or(0, |tool| tool.guards.cost)),
        };
        limit.is_some_and(|limit| limit.saturating_sub(left) <= held && left < needs)
    });
    (!possible).then(|| {
        let what =
            format!("c{} was refused with '{}', but other calls hold less", node.call.node, failure.message);
        Violation::new("I13", what)
    })
}

/// Whether a call had started by then or was still in flight.
fn may_hold(trace: &CallTrace<'_>, place: usize) -> bool {
    let received = trace.events.first().is_some_and(|(at, _, _)| *at < place);
    let end = trace.events.iter().find(|(_, _, event)| event.kind.is_terminal());
    let is_open = end.is_none_or(|(end, _, _)| *end > place);
    received && (is_open || trace.attempts.first().is_some_and(|it| it.place < place))
}

/// Parses owner, remainder and unit from `the budget of this turn does not cover this call: 0 of 3 calls left`.
fn parse_refusal(message: &str) -> Option<(&str, u64, &str)> {
    let (name, rest) =
        message.strip_prefix("the budget of this ")?.split_once(" does not cover this call: ")?;
    let (left, rest) = rest.split_once(" of ")?;
    let (_, unit) = rest.strip_suffix(" left")?.split_once(' ')?;
    Some((name, left.parse().ok()?, unit))
}
