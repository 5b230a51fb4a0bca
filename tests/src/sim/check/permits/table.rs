//! The units and the stacks of the leases: I3, I4, CC-7, CC-8.

use super::{Broken, Need};
use crate::sim::PermitChange;
use std::collections::BTreeMap;

/// The units and leases in use, according to the trace.
#[derive(Debug, Default)]
pub(super) struct Table<'a> {
    pub(super) units: BTreeMap<&'a str, Unit>,
    /// The stack of each lease, bottom first.
    stacks: BTreeMap<&'a str, Vec<&'a str>>,
    pub(super) entries: BTreeMap<&'a str, Entry<'a>>,
    pub(super) serial_paused: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Unit {
    pub(super) in_use: usize,
    pub(super) width: usize,
    pub(super) paused: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Entry<'a> {
    lease: &'a str,
    lineage: Option<&'a str>,
    pub(super) state: EntryState,
}

/// The state of a serial call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryState {
    Running,
    Parked,
    Resuming,
    Stopped,
    Zombie,
}

impl<'a> Table<'a> {
    /// Applies a change.
    pub(super) fn change(&mut self, change: &'a PermitChange, broken: &mut Broken<'_>) {
        match change.what.as_str() {
            "open" | "resize" | "pause" => self.set(change),
            "close" => self.close(change, broken),
            "grant" => {
                self.take(change, false, broken);
                self.push(change, broken);
            }
            "resume" => {
                self.take(change, true, broken);
                if change.entry.as_deref().is_some_and(|entry| self.top_above(entry) != Some(entry)) {
                    broken("CC-6c", "a handler resumes below the top of its lease".to_owned());
                }
                self.state(change, EntryState::Running);
            }
            "park" => self.release(change, EntryState::Parked, broken),
            "release" | "zombie_end" => self.release(change, EntryState::Stopped, broken),
            "zombie" => self.release(change, EntryState::Zombie, broken),
            "quiet" => self.pop(change, broken),
            "queue" => self.state(change, EntryState::Resuming),
            "cancel" => self.state(change, EntryState::Parked),
            _ => {}
        }
        if change.lease.is_some() {
            self.serial_paused = change.serial_paused;
        }
        self.compare(change, broken);
    }

    fn set(&mut self, change: &'a PermitChange) {
        for reported in &change.units {
            let in_use = self.units.get(reported.name.as_str()).map_or(0, |unit| unit.in_use);
            self.units
                .insert(&reported.name, Unit { in_use, width: reported.width, paused: reported.paused });
        }
    }

    fn close(&mut self, change: &'a PermitChange, broken: &mut Broken<'_>) {
        for reported in &change.units {
            if self.units.remove(reported.name.as_str()).is_none_or(|unit| unit.in_use > 0) {
                broken("I3", "a unit in use is closed".to_owned());
            }
        }
    }

    fn take(&mut self, change: &'a PermitChange, is_resume: bool, broken: &mut Broken<'_>) {
        for reported in &change.units {
            let Some(unit) = self.units.get_mut(reported.name.as_str()) else { continue };
            if unit.in_use >= unit.width {
                broken("I3", format!("{} is granted over its width of {}", reported.name, unit.width));
            }
            if unit.paused && !is_resume {
                broken("CC-2", format!("{} is granted while paused", reported.name));
            }
            unit.in_use += 1;
        }
        if change.lease.is_some() && self.serial_paused && !is_resume {
            broken("CC-2", "a lease is granted while paused".to_owned());
        }
    }

    fn push(&mut self, change: &'a PermitChange, broken: &mut Broken<'_>) {
        let (Some(lease), Some(entry)) = (change.lease.as_deref(), change.entry.as_deref()) else { return };
        let lineage = change.lineage.as_deref();
        if !self.may_push(lease, self.holder(lease, lineage)) {
            broken("I4", "a serial call gets a lease that is not lent to it".to_owned());
        }
        self.stacks.entry(lease).or_default().push(entry);
        self.entries.insert(entry, Entry { lease, lineage, state: EntryState::Running });
    }

    fn pop(&mut self, change: &PermitChange, broken: &mut Broken<'_>) {
        let entry = change.entry.as_deref();
        let Some(popped) = entry.and_then(|entry| self.entries.remove(entry)) else {
            return broken("CC-7", "a call becomes quiescent twice".to_owned());
        };
        if popped.state != EntryState::Stopped {
            broken("V2", format!("a call becomes quiescent in state {:?}", popped.state));
        }
        self.stacks.entry(popped.lease).or_default().retain(|at| Some(*at) != entry);
    }

    fn release(&mut self, change: &PermitChange, state: EntryState, broken: &mut Broken<'_>) {
        for reported in &change.units {
            match self.units.get_mut(reported.name.as_str()) {
                Some(unit) if unit.in_use > 0 => unit.in_use -= 1,
                _ => broken("I3", format!("{} is released although not in use", reported.name)),
            }
        }
        self.state(change, state);
    }

    fn state(&mut self, change: &PermitChange, state: EntryState) {
        let entry = change.entry.as_deref().and_then(|entry| self.entries.get_mut(entry));
        entry.into_iter().for_each(|entry| entry.state = state);
    }

    /// Checks that the counts here equal those of the engine.
    fn compare(&self, change: &PermitChange, broken: &mut Broken<'_>) {
        let rule = if change.what == "park" { "I11" } else { "I3" };
        for reported in &change.units {
            let counted = self.units.get(reported.name.as_str()).map(|unit| unit.in_use);
            if let Some(counted) = counted.filter(|counted| *counted != reported.in_use) {
                broken(
                    rule,
                    format!("{} is in use {} times instead of {counted}", reported.name, reported.in_use),
                );
            }
        }
    }

    fn top_above(&self, entry: &str) -> Option<&'a str> {
        self.top(self.entries.get(entry)?.lease)
    }

    pub(super) fn top(&self, lease: &str) -> Option<&'a str> {
        self.stacks.get(lease)?.last().copied()
    }

    /// The nearest ancestor on this lease.
    pub(super) fn holder(&self, lease: &str, lineage: Option<&'a str>) -> Option<&'a str> {
        self.lineage(lineage).find(|(_, entry)| entry.lease == lease).map(|(name, _)| name)
    }

    fn lineage(&self, nearest: Option<&'a str>) -> impl Iterator<Item = (&'a str, Entry<'a>)> {
        let named = |name: &'a str| self.entries.get(name).map(|entry| (name, *entry));
        std::iter::successors(nearest.and_then(named), move |(_, entry)| entry.lineage.and_then(named))
    }

    /// Whether a call may be pushed on a lease (CC-7).
    pub(super) fn may_push(&self, lease: &str, holder: Option<&str>) -> bool {
        self.top(lease).is_none_or(|top| {
            let state = self.entries[top].state;
            Some(top) == holder && matches!(state, EntryState::Parked | EntryState::Stopped)
        })
    }

    /// Whether a call of this lineage may not wait for a lease (CC-8).
    pub(super) fn may_not_wait(&self, lease: &str, lineage: Option<&'a str>) -> bool {
        let Some((_, nearest)) = self.lineage(lineage).next() else { return false };
        let is_above = |(_, entry): (_, Entry<'_>)| rank(lease) > rank(entry.lease);
        nearest.lease != lease && !self.lineage(lineage).all(is_above)
    }

    /// Whether a call could be granted all it needs now, with one of each thing that `held_back` needs out of reach.
    pub(super) fn can_grant(
        &self,
        need: &Need<'_>,
        holder: Option<&str>,
        held_back: Option<&Need<'_>>,
    ) -> bool {
        let is_free = |name: &&str| {
            let held_back = held_back.is_some_and(|it| it.units.contains(name));
            self.units.get(name).is_some_and(|it| !it.paused && it.in_use + usize::from(held_back) < it.width)
        };
        let may_push = |lease: &str| {
            !self.serial_paused
                && held_back.is_none_or(|it| it.lease != Some(lease))
                && self.may_push(lease, holder)
        };
        need.units.iter().all(is_free) && need.lease.is_none_or(may_push)
    }

    /// Whether a handler could resume now.
    pub(super) fn can_resume(&self, need: &Need<'_>, entry: Option<&str>) -> bool {
        let has_room = |name: &&str| self.units.get(name).is_some_and(|it| it.in_use < it.width);
        need.units.iter().all(has_room) && entry.is_none_or(|entry| self.top_above(entry) == Some(entry))
    }

    /// Everything still in use.
    pub(super) fn still_held(&self) -> impl Iterator<Item = String> {
        let units = self.units.iter().filter(|(_, unit)| unit.in_use > 0);
        let units = units.map(|(name, unit)| format!("{name} is in use {} times", unit.in_use));
        units.chain(self.entries.iter().map(|(name, entry)| format!("{name} holds {}", entry.lease)))
    }
}

/// The rank of a lease: the tree's scope is lowest, named scopes rank by name.
fn rank(lease: &str) -> &str {
    if lease.starts_with("tree") { "" } else { lease }
}
