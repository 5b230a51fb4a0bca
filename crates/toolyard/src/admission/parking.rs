//! Handlers that await calls of their own: what they hold is given back and taken again (CC-6).

use super::{Admission, EntryId, Granted, Need, Newcomer, Permit, Ticket, UnitKind, Waiter, table};
use std::sync::{Arc, atomic::Ordering};
use tokio::time::Instant;

/// How many handlers may be parked at once (CC-4).
const PARKED_MAX: usize = 100_000;

/// What a running call holds: its units and its place on a lease.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(super) need: Need,
    pub(super) entry: Option<EntryId>,
}

impl Held {
    /// Its place on a lease alone.
    pub(crate) fn without_units(self) -> Self {
        Self { need: Need::default(), entry: self.entry }
    }

    /// Its units alone.
    pub(crate) fn units_only(self) -> Self {
        Self { need: self.need, entry: None }
    }

    /// The nearest place on a lease of what is nested in it: its own, or that of its ancestors.
    pub(crate) fn lineage(self, ancestors: Option<EntryId>) -> Option<EntryId> {
        self.entry.or(ancestors)
    }
}

/// Whether one who waited has left the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    /// It has.
    Gone,
    /// It was granted what it waited for before; that is on its way.
    Granted,
}

/// What a handler that is to go on is told.
pub(crate) enum Resumed {
    /// It has everything again.
    Now,
    /// It waits and is told when it has.
    Waiting {
        ticket: Ticket,
        /// Whether something it needs is held by nobody but handlers that were given up.
        behind_zombies: bool,
    },
}

impl Admission {
    /// A handler is parked; `None` when too many are.
    pub(crate) fn park(self: &Arc<Self>, held: Held) -> Option<Granted<'_>> {
        if self.parked.fetch_add(1, Ordering::Relaxed) >= PARKED_MAX {
            self.unparked();
            return None;
        }
        Some(self.grant(|table, now| table.park(held.need, held.entry, now)))
    }

    /// A handler that was granted its units is to stay parked and gives them back.
    pub(crate) fn park_again(self: &Arc<Self>, Held { need, entry }: Held) -> Granted<'_> {
        self.parked.fetch_add(1, Ordering::Relaxed);
        self.grant(|table, now| table.park(need, entry, now))
    }

    /// A handler is parked no more.
    pub(crate) fn unparked(&self) {
        self.parked.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many handlers are parked, those that wait to go on included.
    pub(crate) fn parked(&self) -> usize {
        self.parked.load(Ordering::Relaxed)
    }

    /// A parked handler is to go on: at once, or `waiter` is told by [`Waiter::resume`].
    pub(crate) fn resume(
        self: &Arc<Self>,
        Held { need, entry }: Held,
        waiter: &Arc<impl Waiter + 'static>,
        index: u32,
    ) -> (Resumed, Granted<'_>) {
        let mut table = self.table();
        let resumed = table.resume(need, entry, || self.now(), Newcomer { waiter, index, resumes: true });
        let resumed = match resumed {
            table::Resumed::Now => {
                self.unparked();
                Resumed::Now
            }
            table::Resumed::Waiting(ticket) => {
                Resumed::Waiting { ticket, behind_zombies: table.is_behind_zombies(ticket) }
            }
        };
        (resumed, self.settled(&mut table))
    }

    /// A handler that waits to resume leaves the line.
    pub(crate) fn leave_resume(self: &Arc<Self>, ticket: Ticket) -> (Left, Granted<'_>) {
        let mut table = self.table();
        let left = table.cancel(ticket, || self.now());
        let granted = self.settled(&mut table);
        drop(table);
        // What stands for the handler may be the last of its batch: dropped outside of the lock.
        (if left.is_some() { Left::Gone } else { Left::Granted }, granted)
    }

    /// A handler has stopped, and something under it may not have.
    pub(crate) fn release(self: &Arc<Self>, Held { need, entry }: Held) -> Granted<'_> {
        self.grant(|table, now| table.release(need, entry, now))
    }

    /// A call is quiescent.
    pub(crate) fn quiet(self: &Arc<Self>, held: Held) -> Granted<'_> {
        self.grant(|table, now| {
            if let Some(entry) = held.entry {
                table.quiet(entry, now);
            }
        })
    }

    /// All that is left of a call are listed zombies.
    pub(crate) fn listed(&self, held: Held) {
        if let Some(entry) = held.entry {
            self.table().listed(entry);
        }
    }

    /// A call that dispatched nothing was over at that time: no clock is read under the lock.
    pub(crate) fn finish(self: &Arc<Self>, Held { need, entry }: Held, at: Instant) {
        let mut table = self.table();
        table.finish(need, entry, || self.moment(at));
        if table.has_nobody_to_start() {
            return; // nobody waited for it
        }
        let granted = Granted { at: Some(at), ..self.settled(&mut table) };
        drop(table);
        granted.start();
    }

    /// A handler that was given up has stopped, and its call had dispatched nothing.
    pub(crate) fn zombie_gone(self: &Arc<Self>, Held { need, entry }: Held) {
        self.change(|table, now| {
            table.zombie_ended(need, entry, now);
            if let Some(entry) = entry {
                table.quiet(entry, now);
            }
        });
    }

    /// A handler was given up and runs on; gives what it goes on holding (SC-6). A lease it keeps in any case.
    pub(crate) fn become_zombie(
        self: &Arc<Self>,
        Held { need, entry }: Held,
        keeps: impl Fn(UnitKind) -> bool,
    ) -> (Held, Granted<'_>) {
        let mut table = self.table();
        let (kept, freed) = need.split(|unit| table.kind(unit).is_some_and(&keeps));
        table.become_zombie(kept, freed, entry, || self.now());
        (Held { need: kept, entry }, self.settled(&mut table))
    }

    /// A handler that was given up has stopped; what is under it may not have.
    pub(crate) fn zombie_ended(self: &Arc<Self>, Held { need, entry }: Held) -> Granted<'_> {
        self.grant(|table, now| table.zombie_ended(need, entry, now))
    }
}

impl Permit<'_> {
    /// What it holds.
    pub(crate) fn held(&self) -> Held {
        Held { need: self.need, entry: self.entry }
    }
}
