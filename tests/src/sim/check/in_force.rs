//! Which policy was in force when.

use super::{Seen, seen::Life};
use crate::sim::{
    Fact,
    program::{Index, PolicyPlan},
};

/// What hooks and naps may be between the look at a call and the word that it came in, in virtual microseconds.
const HOOKS_US: u64 = 1_500_000;

/// When a call was looked at at the earliest, that was told of then: hooks of its batch take time in between.
pub(super) fn looked_us(index: &Index<'_>, told_us: u64) -> u64 {
    told_us.saturating_sub(if index.program.hooks { HOOKS_US } else { 0 })
}

/// A policy from when on it was in force.
#[derive(Debug, Clone, Copy)]
pub(super) struct Since<'p> {
    pub(super) at_us: u64,
    pub(super) place: usize,
    pub(super) plan: &'p PolicyPlan,
}

/// The policies in the order in which they came into force: the first has version 1.
pub(super) struct InForce<'p> {
    since: Vec<Since<'p>>,
}

impl<'p> InForce<'p> {
    pub(super) fn of(index: &Index<'p>, seen: &Seen<'_>) -> Self {
        let policies = &index.program.policies;
        let set = seen.entries.iter().enumerate().filter_map(|(place, entry)| match entry.fact {
            Fact::SetPolicy(at) => Some(Since { at_us: entry.at_us, place, plan: policies.get(at)? }),
            _ => None,
        });
        let first = Since { at_us: 0, place: 0, plan: &policies[0] };
        Self { since: std::iter::once(first).chain(set).collect() }
    }

    /// How many there were.
    pub(super) fn count(&self) -> u64 {
        self.since.len() as u64
    }

    /// The policy of this version.
    pub(super) fn version(&self, version: u64) -> Option<&Since<'p>> {
        self.since.get(usize::try_from(version.checked_sub(1)?).ok()?)
    }

    /// When the policy of this version was put out of force.
    pub(super) fn until(&self, version: u64) -> Option<&Since<'p>> {
        self.version(version + 1)
    }

    /// What was in force at some time in this span of places, and of times before the first of them.
    pub(super) fn between(&self, from_us: u64, to: usize) -> impl Iterator<Item = &Since<'p>> {
        let first = self.since.iter().rposition(|since| since.at_us < from_us).unwrap_or(0);
        self.since[first..].iter().filter(move |since| since.place <= to)
    }

    /// The policies that came into force in the life of a call, after its first look at one.
    pub(super) fn changes(&self, index: &Index<'_>, life: &Life<'_>) -> impl Iterator<Item = &Since<'p>> {
        self.during(index, life).skip(1)
    }

    /// What was in force in the life of a call, as far as it may have been looked at for it.
    pub(super) fn during(&self, index: &Index<'_>, life: &Life<'_>) -> impl Iterator<Item = &Since<'p>> {
        let received = life.events.first().map_or((0, 0), |(place, at_us, _)| (*place, *at_us));
        let end = life.events.iter().find(|(_, _, event)| event.kind.is_terminal());
        let to = end.map_or(usize::MAX, |(place, _, _)| *place);
        let is_first = |since: &Since<'_>| match index.program.hooks {
            true => since.at_us < looked_us(index, received.1),
            false => since.place < received.0,
        };
        let first = self.since.iter().rposition(is_first).unwrap_or(0);
        self.since[first..].iter().filter(move |since| since.place <= to)
    }

    /// Whether the policies in the life of a call allow its tool always, sometimes, or never.
    pub(super) fn allows(&self, index: &Index<'_>, life: &Life<'_>, tool: usize) -> Allows {
        let mut said = self.during(index, life).map(|since| since.plan.allows(tool));
        let first = said.next().unwrap_or(true);
        match (said.all(|next| next == first), first) {
            (true, true) => Allows::Always,
            (true, false) => Allows::Never,
            (false, _) => Allows::Sometimes,
        }
    }
}

/// What policies say of a tool over some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allows {
    Always,
    Sometimes,
    Never,
}
