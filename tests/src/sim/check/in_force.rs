//! The policies in force over time.

use super::{Traces, traces::CallTrace};
use crate::sim::{
    Fact,
    program::{Index, PolicyPlan},
};

/// How long hooks and naps may take between the check of a call and its `received` event, in virtual microseconds.
const HOOKS_US: u64 = 1_500_000;

/// The earliest time at which a call whose event came at `event_us` may have been checked: hooks run in between.
pub(super) fn checked_us(index: &Index<'_>, event_us: u64) -> u64 {
    event_us.saturating_sub(if index.program.hooks { HOOKS_US } else { 0 })
}

/// A policy and when it came into force.
#[derive(Debug, Clone, Copy)]
pub(super) struct PolicyPeriod<'p> {
    pub(super) at_us: u64,
    pub(super) place: usize,
    pub(super) plan: &'p PolicyPlan,
}

/// The policies in the order in which they came into force; the first has version 1.
pub(super) struct InForce<'p> {
    since: Vec<PolicyPeriod<'p>>,
}

impl<'p> InForce<'p> {
    pub(super) fn of(index: &Index<'p>, traces: &Traces<'_>) -> Self {
        let policies = &index.program.policies;
        let set = traces.entries.iter().enumerate().filter_map(|(place, entry)| match entry.fact {
            Fact::SetPolicy(at) => Some(PolicyPeriod { at_us: entry.at_us, place, plan: policies.get(at)? }),
            _ => None,
        });
        let first = PolicyPeriod { at_us: 0, place: 0, plan: &policies[0] };
        Self { since: std::iter::once(first).chain(set).collect() }
    }

    /// The number of policies.
    pub(super) fn count(&self) -> u64 {
        self.since.len() as u64
    }

    /// The policy with this version.
    pub(super) fn version(&self, version: u64) -> Option<&PolicyPeriod<'p>> {
        self.since.get(usize::try_from(version.checked_sub(1)?).ok()?)
    }

    /// The policy that replaced this version.
    pub(super) fn until(&self, version: u64) -> Option<&PolicyPeriod<'p>> {
        self.version(version + 1)
    }

    /// The policies in force at any time from `from_us` up to position `to`, including the one in force just before.
    pub(super) fn between(&self, from_us: u64, to: usize) -> impl Iterator<Item = &PolicyPeriod<'p>> {
        self.versions_between(from_us, to).filter_map(|version| self.version(version))
    }

    /// Their versions.
    pub(super) fn versions_between(&self, from_us: u64, to: usize) -> impl Iterator<Item = u64> {
        let first = self.since.iter().rposition(|since| since.at_us < from_us).unwrap_or(0);
        let until = self.since.iter().rposition(|since| since.place <= to).unwrap_or(0);
        (first..=until).map(|at| at as u64 + 1)
    }

    /// The policies that came into force during the life of a call, after its first check.
    pub(super) fn changes(
        &self,
        index: &Index<'_>,
        trace: &CallTrace<'_>,
    ) -> impl Iterator<Item = &PolicyPeriod<'p>> {
        self.during(index, trace).skip(1)
    }

    /// The policies in force during the life of a call, as far as they may have been checked for it.
    pub(super) fn during(
        &self,
        index: &Index<'_>,
        trace: &CallTrace<'_>,
    ) -> impl Iterator<Item = &PolicyPeriod<'p>> {
        let received = trace.events.first().map_or((0, 0), |(place, at_us, _)| (*place, *at_us));
        let end = trace.events.iter().find(|(_, _, event)| event.kind.is_terminal());
        let to = end.map_or(usize::MAX, |(place, _, _)| *place);
        let is_first = |since: &PolicyPeriod<'_>| match index.program.hooks {
            true => since.at_us < checked_us(index, received.1),
            false => since.place < received.0,
        };
        let first = self.since.iter().rposition(is_first).unwrap_or(0);
        self.since[first..].iter().filter(move |since| since.place <= to)
    }

    /// Whether the policies during the life of a call allow its tool always, sometimes, or never.
    pub(super) fn allows(&self, index: &Index<'_>, trace: &CallTrace<'_>, tool: usize) -> Allows {
        let mut verdicts = self.during(index, trace).map(|since| since.plan.allows(tool));
        let first = verdicts.next().unwrap_or(true);
        match (verdicts.all(|next| next == first), first) {
            (true, true) => Allows::Always,
            (true, false) => Allows::Never,
            (false, _) => Allows::Sometimes,
        }
    }
}

/// How often the policies of a period allow a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allows {
    Always,
    Sometimes,
    Never,
}
