//! The serial leases: each is a stack of the serial calls that were let in.
//!
//! ```text
//!   tree(1)        ┌ call 4  running        lease     a stack; any serial call may push onto an empty one
//!                  └ call 1  parked         entry     one serial call, from its grant to its quiescence
//!   named("db")    └ call 3  stopped        lineage   4 ─► 3 ─► 1: entries of any lease, nearest first
//! ```
//!
//! Only a descendant of the top entry may push onto a stack that is not empty, and only while the top is lent: its
//! handler is parked or has stopped (CC-7). So at most one handler that is not parked runs on a lease.

use super::queue::Queue;
use crate::{
    ids::{EntryId, LeaseId},
    lease::{EntryState, Scope},
    slab::Slab,
};
use std::{collections::BTreeSet, iter};

/// One entry on a stack.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) lease: LeaseId,
    pub(crate) root: u64,
    pub(crate) state: EntryState,
    /// Whether only zombies are left of its call (V2).
    pub(crate) listed: bool,
    /// The nearest ancestor with an entry on any lease.
    parent: Option<EntryId>,
    above: Option<EntryId>,
    below: Option<EntryId>,
    /// The lane in which its handler waits to resume.
    pub(crate) resume: Option<u32>,
}

impl Entry {
    fn is_lent(&self) -> bool {
        matches!(self.state, EntryState::Parked | EntryState::Stopped)
    }

    /// Whether its handler runs, as a zombie or not.
    pub(crate) fn runs(&self) -> bool {
        matches!(self.state, EntryState::Running | EntryState::Zombie)
    }

    fn is_zombie(&self) -> bool {
        self.listed || self.state == EntryState::Zombie
    }
}

/// One stack and the lanes that wait to push onto it.
#[derive(Debug, Clone)]
pub(crate) struct Lease {
    pub(crate) scope: Scope,
    pub(crate) top: Option<EntryId>,
    /// How many waiting calls need this lease.
    pub(crate) queued: usize,
    pub(crate) queue: Option<Box<Queue>>,
    /// Its lanes by their heads, oldest first.
    pub(crate) heads: BTreeSet<(u64, u32)>,
    /// Its lanes whose calls are under an entry on it, by that entry and their heads.
    pub(crate) nested: BTreeSet<(EntryId, u64, u32)>,
    /// Its lanes whose calls may not wait for it.
    pub(crate) may_not_wait: BTreeSet<u32>,
    /// The oldest head that may push onto it now, as listed in the table-wide `Aging::eldest`.
    pub(crate) eldest: Option<(u64, u32)>,
}

/// All stacks.
#[derive(Debug, Clone)]
pub(crate) struct Leases {
    all: Slab<Lease>,
    entries: Slab<Entry>,
}

impl Leases {
    pub(crate) fn new() -> Self {
        Self { all: Slab::new(), entries: Slab::new() }
    }

    pub(crate) fn open(&mut self, scope: Scope) -> LeaseId {
        LeaseId(self.all.insert(Lease {
            scope,
            top: None,
            queued: 0,
            queue: None,
            heads: BTreeSet::new(),
            nested: BTreeSet::new(),
            may_not_wait: BTreeSet::new(),
            eldest: None,
        }))
    }

    pub(crate) fn close(&mut self, lease: LeaseId) {
        let lease = self.all.remove(lease.0);
        debug_assert!(lease.is_some_and(|lease| lease.top.is_none() && lease.queued == 0), "lease in use");
    }

    pub(crate) fn is_open(&self, lease: LeaseId) -> bool {
        self.all.get(lease.0).is_some()
    }

    #[inline]
    pub(crate) fn get(&self, lease: LeaseId) -> &Lease {
        self.all.get(lease.0).expect("a need refers to an open lease")
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, lease: LeaseId) -> &mut Lease {
        self.all.get_mut(lease.0).expect("a need refers to an open lease")
    }

    #[inline]
    pub(crate) fn entry(&self, entry: EntryId) -> &Entry {
        self.entries.get(entry.0).expect("an entry stays until its call is quiescent")
    }

    /// An entry, if its call is not quiescent yet.
    pub(crate) fn find(&self, entry: EntryId) -> Option<&Entry> {
        self.entries.get(entry.0)
    }

    pub(crate) fn entry_mut(&mut self, entry: EntryId) -> &mut Entry {
        self.entries.get_mut(entry.0).expect("an entry stays until its call is quiescent")
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LeaseId, &Lease)> {
        self.all.iter().map(|(key, lease)| (LeaseId(key), lease))
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().map(|(_, entry)| entry)
    }

    /// Whether a call whose nearest ancestor on the lease is `holder` may push onto it (CC-7).
    #[inline]
    pub(crate) fn may_push(&self, lease: LeaseId, holder: Option<EntryId>) -> bool {
        match self.get(lease).top {
            None => true,
            Some(top) => holder == Some(top) && self.entry(top).is_lent(),
        }
    }

    /// Whether some call might push onto it now, or its top entry lends it.
    pub(crate) fn is_empty_or_lent(&self, lease: LeaseId) -> bool {
        self.get(lease).top.is_none_or(|top| self.entry(top).is_lent())
    }

    /// Pushes a call onto the lease. The call must be allowed to.
    pub(crate) fn push(&mut self, lease: LeaseId, parent: Option<EntryId>, root: u64) -> EntryId {
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

    /// Removes an entry from its stack, at any position.
    pub(crate) fn remove(&mut self, entry: EntryId) -> Entry {
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
    #[inline]
    pub(crate) fn holder(&self, lease: LeaseId, lineage: Option<EntryId>) -> Option<EntryId> {
        self.lineage(lineage).find(|(_, entry)| entry.lease == lease).map(|(id, _)| id)
    }

    /// Whether a call of this lineage may not wait for the lease (CC-8): the lease is neither that of its nearest
    /// ancestor on any lease, nor does it rank above those of all its ancestors. If such calls waited, two of them
    /// could each wait for what an ancestor of the other holds.
    pub(crate) fn may_not_wait(&self, lease: LeaseId, lineage: Option<EntryId>) -> bool {
        let Some((_, nearest)) = self.lineage(lineage).next() else { return false };
        let scope = &self.get(lease).scope;
        let is_above = |(_, entry): (_, &Entry)| *scope > self.get(entry.lease).scope;
        nearest.lease != lease && !self.lineage(lineage).all(is_above)
    }

    /// The stack of a lease, from the top down.
    pub(crate) fn stack(&self, lease: LeaseId) -> impl Iterator<Item = (EntryId, &Entry)> {
        let named = |id: EntryId| (id, self.entry(id));
        iter::successors(self.get(lease).top.map(named), move |(_, entry)| entry.below.map(named))
    }

    /// Whether there are entries above `above` (with `None`: any on the lease) and all of them are zombies or have
    /// only zombies left (V3).
    pub(crate) fn is_behind_zombies(&self, lease: LeaseId, above: Option<EntryId>) -> bool {
        let mut over = self.stack(lease).take_while(|(id, _)| Some(*id) != above).peekable();
        over.peek().is_some() && over.all(|(_, entry)| entry.is_zombie())
    }
}
