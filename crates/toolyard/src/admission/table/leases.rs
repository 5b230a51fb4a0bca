//! The serial leases: stacks of those who were let in.
//!
//! ```text
//!   tree(1)        ┌ call 4  running        lease     a stack, empty: any serial call may step on it
//!                  └ call 1  parked         entry     one serial call, from its grant to its quiescence
//!   named("db")    └ call 3  stopped        lineage   4 ─► 3 ─► 1: entries of any lease, nearest first
//! ```
//!
//! On a stack that is not empty, only a descendant of the top may step, and only while the top is lent: its
//! handler is parked or has stopped (CC-7). So at most one handler that is not parked runs on a lease.

use super::queue::Queue;
use super::slab::{Key, Slab};
use std::{collections::BTreeSet, iter, sync::Arc};

/// A serial scope of the table (CC-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct LeaseId(pub(super) Key);

/// A serial call on its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct EntryId(pub(super) Key);

/// Whose lease it is, in order of rank: that of a tree is the lowest, named ones go by name (CC-8).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// One session and everything under it.
    Tree,
    /// What a tool has named, in the whole engine.
    Named(Arc<str>),
}

/// How a serial call stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryState {
    /// Its handler runs.
    Running,
    /// Its handler awaits calls of its own, and the lease is lent to them.
    Parked,
    /// Its handler is to go on and waits for that.
    Resuming,
    /// Its handler has stopped; something under it has not.
    Stopped,
    /// Its handler was given up and still runs.
    Zombie,
}

/// One place on a stack.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) lease: LeaseId,
    pub(super) root: u64,
    pub(super) state: EntryState,
    /// Whether all that is left of it are handlers that were given up (V2).
    pub(super) listed: bool,
    /// The nearest ancestor on any lease.
    parent: Option<EntryId>,
    above: Option<EntryId>,
    below: Option<EntryId>,
    /// The lane in which its handler waits to resume.
    pub(super) resume: Option<u32>,
}

impl Entry {
    fn is_lent(&self) -> bool {
        !faulty!(LeaseNotLent) && matches!(self.state, EntryState::Parked | EntryState::Stopped)
    }

    /// Whether its handler runs, given up or not.
    pub(super) fn runs(&self) -> bool {
        matches!(self.state, EntryState::Running | EntryState::Zombie)
    }

    fn is_zombie(&self) -> bool {
        self.listed || self.state == EntryState::Zombie
    }
}

/// One stack and those who want to step on it.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    pub(super) scope: Scope,
    pub(super) top: Option<EntryId>,
    /// Calls that wait and need this lease.
    pub(super) queued: usize,
    pub(super) queue: Option<Box<Queue>>,
    /// Its lanes by their heads, oldest first.
    pub(super) heads: BTreeSet<(u64, u32)>,
    /// Those of its lanes that may not wait for it.
    pub(super) strict: BTreeSet<u32>,
    /// Of the heads that may step on it now, the oldest, as the whole table's list of the oldest has it.
    pub(super) eldest: Option<(u64, u32)>,
}

/// All stacks.
#[derive(Debug, Clone)]
pub(super) struct Leases {
    all: Slab<Lease>,
    entries: Slab<Entry>,
}

impl Leases {
    pub(super) fn new() -> Self {
        Self { all: Slab::new(), entries: Slab::new() }
    }

    pub(super) fn open(&mut self, scope: Scope) -> LeaseId {
        LeaseId(self.all.insert(Lease {
            scope,
            top: None,
            queued: 0,
            queue: None,
            heads: BTreeSet::new(),
            strict: BTreeSet::new(),
            eldest: None,
        }))
    }

    pub(super) fn close(&mut self, lease: LeaseId) {
        let lease = self.all.remove(lease.0);
        debug_assert!(lease.is_some_and(|lease| lease.top.is_none() && lease.queued == 0), "lease in use");
    }

    pub(super) fn get(&self, lease: LeaseId) -> &Lease {
        self.all.get(lease.0).expect("a need names an open lease")
    }

    pub(super) fn get_mut(&mut self, lease: LeaseId) -> &mut Lease {
        self.all.get_mut(lease.0).expect("a need names an open lease")
    }

    pub(super) fn entry(&self, entry: EntryId) -> &Entry {
        self.entries.get(entry.0).expect("an entry is named until its call is quiescent")
    }

    /// An entry, if its call is not quiescent yet.
    pub(super) fn find(&self, entry: EntryId) -> Option<&Entry> {
        self.entries.get(entry.0)
    }

    pub(super) fn entry_mut(&mut self, entry: EntryId) -> &mut Entry {
        self.entries.get_mut(entry.0).expect("an entry is named until its call is quiescent")
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (LeaseId, &Lease)> {
        self.all.iter().map(|(key, lease)| (LeaseId(key), lease))
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// Whether a call with this nearest ancestor on the lease may step on it (CC-7).
    pub(super) fn may_push(&self, lease: LeaseId, holder: Option<EntryId>) -> bool {
        match self.get(lease).top {
            None => true,
            Some(top) => holder == Some(top) && self.entry(top).is_lent(),
        }
    }

    /// Puts a call that may step on the lease on it.
    pub(super) fn push(&mut self, lease: LeaseId, parent: Option<EntryId>, root: u64) -> EntryId {
        let below = self.get(lease).top;
        let entry = EntryId(self.entries.insert(Entry {
            lease,
            root,
            state: EntryState::Running,
            listed: false,
            parent,
            above: None,
            below,
            resume: None,
        }));
        if let Some(below) = below {
            self.entry_mut(below).above = Some(entry);
        }
        self.get_mut(lease).top = Some(entry);
        entry
    }

    /// Takes an entry off its stack, from wherever it stands.
    pub(super) fn remove(&mut self, entry: EntryId) -> Entry {
        let gone = self.entries.remove(entry.0).expect("a call becomes quiescent once");
        match gone.above {
            Some(above) => self.entry_mut(above).below = gone.below,
            None => self.get_mut(gone.lease).top = gone.below,
        }
        if let Some(below) = gone.below {
            self.entry_mut(below).above = gone.above;
        }
        gone
    }

    /// The entry and its ancestors on all leases, nearest first.
    fn lineage(&self, nearest: Option<EntryId>) -> impl Iterator<Item = (EntryId, &Entry)> {
        let named = |id: EntryId| self.entries.get(id.0).map(|entry| (id, entry));
        iter::successors(nearest.and_then(named), move |(_, entry)| entry.parent.and_then(named))
    }

    /// The nearest ancestor on this lease.
    pub(super) fn holder(&self, lease: LeaseId, lineage: Option<EntryId>) -> Option<EntryId> {
        self.lineage(lineage).find(|(_, entry)| entry.lease == lease).map(|(id, _)| id)
    }

    /// Whether a call of this lineage may not wait for the lease (CC-8): it is neither that of the nearest
    /// ancestor on any lease, nor does it rank above all of them. Were it to wait, two calls could each wait for
    /// what an ancestor of the other holds.
    pub(super) fn is_strict(&self, lease: LeaseId, lineage: Option<EntryId>) -> bool {
        let Some((_, nearest)) = self.lineage(lineage).next() else { return false };
        let scope = &self.get(lease).scope;
        let is_above = |(_, entry): (_, &Entry)| *scope > self.get(entry.lease).scope;
        nearest.lease != lease && !self.lineage(lineage).all(is_above)
    }

    /// The stack of a lease, from the top down.
    pub(super) fn stack(&self, lease: LeaseId) -> impl Iterator<Item = (EntryId, &Entry)> {
        let named = |id: EntryId| (id, self.entry(id));
        iter::successors(self.get(lease).top.map(named), move |(_, entry)| entry.below.map(named))
    }

    /// Whether somebody stands above this entry, or on the lease at all, and all of them are handlers that were
    /// given up, or have nothing else left (V3).
    pub(super) fn is_behind_zombies(&self, lease: LeaseId, above: Option<EntryId>) -> bool {
        let mut over = self.stack(lease).take_while(|(id, _)| Some(*id) != above).peekable();
        over.peek().is_some() && over.all(|(_, entry)| entry.is_zombie())
    }
}
