//! I13: started calls never cost more than the budget; reservations of calls that never started are refunded (RT-11).

use super::{Seen, Violation, seen::Life};
use crate::sim::{
    Fact,
    program::{Index, Node},
};
use toolyard::{Budget, ErrorKind, event::Failure};

/// The owner of a budget that a call draws on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Whose {
    /// A turn, by its batch.
    Turn(u32),
    /// An agent.
    Agent(usize),
    /// A tree.
    Tree(usize),
    /// A tool within a tree.
    Tool(usize, usize),
}

impl Whose {
    /// The word for it in the engine's messages.
    fn word(self) -> &'static str {
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
            Self::Tool(_, tool) => index.program.tools[tool].care.budget,
        }
    }

    /// Whether this call draws on it.
    fn pays(self, index: &Index<'_>, node: &Node<'_>) -> bool {
        all(index, node).any(|whose| whose == self)
    }
}

/// All owners of budgets that a call draws on.
fn all<'a>(index: &'a Index<'_>, node: &Node<'_>) -> impl Iterator<Item = Whose> + 'a {
    let root = index.agents[node.agent].root;
    let top = index.lineage(node.call.node).last().and_then(|top| index.nodes.get(&top));
    let agents = std::iter::successors(Some(node.agent), |agent| index.agents[*agent].parent);
    let turn = top.map(|top| Whose::Turn(top.batch));
    agents.map(Whose::Agent).chain(turn).chain([Whose::Tree(root), Whose::Tool(root, node.call.tool)])
}

pub(super) fn check(index: &Index<'_>, seen: &Seen<'_>) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut whose: Vec<_> = index.nodes.values().flat_map(|node| all(index, node)).collect();
    whose.sort_unstable();
    whose.dedup();
    for one in whose.into_iter().filter(|one| is_known(index, *one) && !one.limit(index).is_unlimited()) {
        let (limit, spent) = (one.limit(index), spent(index, seen, one));
        if limit.calls.is_some_and(|most| spent.0 > most) || limit.cost.is_some_and(|most| spent.1 > most) {
            let what = format!("{one:?} may spend {limit:?} and has spent {spent:?}");
            violations.push(Violation::new("I13", what));
        }
    }
    for entry in seen.entries {
        if let Fact::BudgetLeft(root, left) = entry.fact {
            violations.extend(left_over(index, seen, root, left));
        }
    }
    for (number, life) in &seen.calls {
        let Some(node) = index.nodes.get(number) else { continue };
        if let Some((place, failure)) = life.failure().filter(|(_, it)| it.code == ErrorKind::BudgetExceeded)
        {
            violations.extend(refused(index, seen, node, place, failure));
        }
    }
    violations
}

fn is_known(index: &Index<'_>, whose: Whose) -> bool {
    !matches!(whose, Whose::Tool(_, tool) if tool >= index.program.tools.len())
}

/// Whether a call started and paid. Only its first attempt pays.
fn has_paid(life: &Life<'_>) -> bool {
    life.tries.first().is_some_and(|it| it.number == 1)
        && life.failure().is_none_or(|(_, it)| it.attempts > 0)
}

/// The number of calls that were started and their total cost.
fn spent(index: &Index<'_>, seen: &Seen<'_>, whose: Whose) -> (u64, u64) {
    let paid =
        seen.calls.iter().filter(|(_, life)| has_paid(life)).filter_map(|(node, _)| index.nodes.get(node));
    let costs = paid.filter(|node| whose.pays(index, node)).filter_map(|node| Some(node.tool?.care.cost));
    costs.fold((0, 0), |(calls, cost), one| (calls + 1, cost + one))
}

/// Compares what a root session reports as left with what it and its tree have spent.
fn left_over(index: &Index<'_>, seen: &Seen<'_>, root: usize, left: Budget) -> Option<Violation> {
    let lefts = [Whose::Agent(root), Whose::Tree(root)].map(|whose| {
        let (limit, (calls, cost)) = (whose.limit(index), spent(index, seen, whose));
        (limit.calls.map(|most| most.saturating_sub(calls)), limit.cost.map(|most| most.saturating_sub(cost)))
    });
    let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
    let expected = (least(lefts[0].0, lefts[1].0), least(lefts[0].1, lefts[1].1));
    ((left.calls, left.cost) != expected).then(|| {
        let what = format!("session {root} has {left:?} left when all is over, and not {expected:?}");
        Violation::new("I13", what)
    })
}

/// Checks the numbers in a `budget_exceeded` refusal: what was spent or reserved is at most what calls that had
/// started or were in flight could hold.
fn refused(
    index: &Index<'_>,
    seen: &Seen<'_>,
    node: &Node<'_>,
    place: usize,
    failure: &Failure,
) -> Option<Violation> {
    let (word, left, unit) = told(&failure.message)?;
    let possible = all(index, node).filter(|whose| whose.word() == word).any(|whose| {
        let limit = whose.limit(index);
        let others = seen.calls.iter().filter_map(|(it, life)| Some((index.nodes.get(it)?, life)));
        let held = others.filter(|(it, life)| whose.pays(index, it) && may_hold(life, place));
        let costs = held.filter_map(|(it, _)| Some(it.tool?.care.cost));
        let (calls, cost) = costs.fold((0, 0), |(calls, cost), one| (calls + 1, cost + one));
        let (limit, held, needs) = match unit {
            "calls" => (limit.calls, calls, 1),
            _ => (limit.cost, cost, node.tool.map_or(0, |tool| tool.care.cost)),
        };
        limit.is_some_and(|limit| limit.saturating_sub(left) <= held && left < needs)
    });
    (!possible).then(|| {
        let what = format!("c{} is told '{}', and others hold less", node.call.node, failure.message);
        Violation::new("I13", what)
    })
}

/// Whether a call had started by then or was still in flight.
fn may_hold(life: &Life<'_>, place: usize) -> bool {
    let received = life.events.first().is_some_and(|(at, _, _)| *at < place);
    let end = life.events.iter().find(|(_, _, event)| event.kind.is_terminal());
    let is_open = end.is_none_or(|(end, _, _)| *end > place);
    received && (is_open || life.tries.first().is_some_and(|it| it.place < place))
}

/// Parses owner, remainder and unit from `the budget of this turn is spent: 0 of 3 calls left`.
fn told(message: &str) -> Option<(&str, u64, &str)> {
    let (word, rest) = message.strip_prefix("the budget of this ")?.split_once(" is spent: ")?;
    let (left, rest) = rest.split_once(" of ")?;
    let (_, unit) = rest.strip_suffix(" left")?.split_once(' ')?;
    Some((word, left.parse().ok()?, unit))
}
