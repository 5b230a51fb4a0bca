//! The checks over all lives of a run: each life passes those of a run with one, after what earlier lives have done; and
//! together they do nothing twice, lose no result that somebody was given, and run nothing that was cancelled.

mod approvals;
mod cancels;
mod effects;
mod ends;
mod recovered;
mod results;

use super::{Lived, LivesPlan};
use crate::sim::{
    Fact, HandlerStep,
    check::{Earlier, Violation, check_life},
    program::Index,
};
use std::collections::BTreeMap;

/// All lives, and what is looked up in them.
struct History<'a> {
    plan: &'a LivesPlan,
    lives: &'a [Lived],
    /// An index over the program, as if the gate let every call pass.
    index: Index<'a>,
    /// The lives in which each call was started, one for each start.
    starts: BTreeMap<u32, Vec<usize>>,
}

impl<'a> History<'a> {
    fn of(plan: &'a LivesPlan, lives: &'a [Lived]) -> Option<Self> {
        let index = Index::new(&lives.first()?.program, BTreeMap::new());
        let mut starts: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (life, fact) in facts(lives) {
            if let Fact::Handler(node, HandlerStep::Started) = fact {
                starts.entry(*node).or_default().push(life);
            }
        }
        Some(Self { plan, lives, index, starts })
    }

    /// All facts, in order, with the number of their life.
    fn facts(&self) -> impl Iterator<Item = (usize, &'a Fact)> {
        facts(self.lives)
    }

    /// The lives in which a call was started.
    fn starts_of(&self, node: u32) -> &[usize] {
        self.starts.get(&node).map_or(&[], Vec::as_slice)
    }

    fn starts_after(&self, node: u32, life: usize) -> bool {
        self.starts_of(node).iter().any(|it| *it > life)
    }

    /// Whether a call only reads and has no key: it may run again if nobody can tell what came of it (JR-3).
    fn is_plain_read(&self, node: u32) -> bool {
        self.index.nodes.get(&node).is_some_and(|it| {
            let reads = it.tool.is_some_and(|tool| tool.class == toolyard::ToolClass::Read);
            reads && it.call.key.is_none()
        })
    }
}

fn facts(lives: &[Lived]) -> impl Iterator<Item = (usize, &Fact)> {
    lives.iter().enumerate().flat_map(|(life, lived)| lived.entries.iter().map(move |it| (life, &it.fact)))
}

pub(super) fn check(plan: &LivesPlan, lives: &[Lived]) -> Vec<Violation> {
    let (mut found, mut earlier) = (Vec::new(), Earlier::default());
    for (number, life) in lives.iter().enumerate() {
        let of_life = check_life(&life.program, &life.entries, earlier.clone());
        let in_life = |it: Violation| Violation::new(it.rule, format!("life {}: {}", number + 1, it.what));
        found.extend(of_life.into_iter().map(in_life));
        earlier.follow(&life.entries);
    }
    let Some(history) = History::of(plan, lives) else { return found };
    let checks =
        [effects::check, results::check, cancels::check, ends::check, approvals::check, recovered::check];
    found.extend(checks.iter().flat_map(|check| check(&history)));
    found
}
