//! Parking: handlers that await calls of their own release what they hold and take it again (CC-6).

use super::{Admission, Asking, EntryId, Granted, Need, Newcomer, Permit, Ticket, UnitKind, table};
use std::sync::{Arc, atomic::Ordering};
use tokio::time::Instant;

/// What a running call holds: its units and its entry on a lease.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held {
    pub(super) need: Need,
    pub(super) entry: Option<EntryId>,
}

impl Held {
    /// Only its entry on a lease.
    pub(crate) fn without_units(self) -> Self {
        Self { need: Need::default(), entry: self.entry }
    }

    /// Only its units.
    pub(crate) fn units_only(self) -> Self {
        Self { need: self.need, entry: None }
    }

    /// The nearest lease entry in the lineage of calls nested in it: its own, else that of its ancestors.
    pub(crate) fn lineage(self, ancestors: Option<EntryId>) -> Option<EntryId> {
        self.entry.or(ancestors)
    }
}

/// Whether a waiter has left the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaveResult {
    /// It has left.
    Left,
    /// It had already been granted what it waited for; the grant is on its way.
    AlreadyGranted,
}

/// The answer to a handler that wants to resume.
pub(crate) enum Resumed {
    /// It holds everything again.
    Now,
    /// It waits; [`Waiter::resume`] is called when it has everything.
    Waiting {
        ticket: Ticket,
        /// Whether zombies hold something that it needs.
        behind_zombies: bool,
    },
}

impl Admission {
    /// Parks a handler; `None` when `max` are parked, or `threads_max` of those that keep a thread (CC-4).
    pub(crate) fn park(self: &Arc<Self>, held: Held, max: usize, threads_max: usize) -> Option<Granted<'_>> {
        let (parked, on_threads) = self.count_parked(held);
        if parked >= max || on_threads >= threads_max {
            self.unparked(held);
            return None;
        }
        Some(self.grant(|table, now| table.park(held.need, held.entry, now)))
    }

    /// Parks a handler again that has just been granted its units, and releases them.
    pub(crate) fn park_again(self: &Arc<Self>, Held { need, entry }: Held) -> Granted<'_> {
        self.count_parked(Held { need, entry });
        self.grant(|table, now| table.park(need, entry, now))
    }

    /// Counts one parked handler more. Returns how many there were, and how many that keep a thread, if it is one.
    fn count_parked(&self, held: Held) -> (usize, usize) {
        let on_threads = match held.need.is_on_thread() {
            true => self.parked_on_threads.fetch_add(1, Ordering::Relaxed),
            false => 0,
        };
        (self.parked.fetch_add(1, Ordering::Relaxed), on_threads)
    }

    /// Counts one parked handler less.
    pub(crate) fn unparked(&self, held: Held) {
        if held.need.is_on_thread() {
            self.parked_on_threads.fetch_sub(1, Ordering::Relaxed);
        }
        self.parked.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many handlers are parked, including those waiting to resume.
    pub(crate) fn parked(&self) -> usize {
        self.parked.load(Ordering::Relaxed)
    }

    /// Resumes a parked handler, at once or later through [`Waiter::resume`].
    pub(crate) fn resume(
        self: &Arc<Self>,
        Held { need, entry }: Held,
        call: impl Asking,
    ) -> (Resumed, Granted<'_>) {
        let mut table = self.table();
        let resumed = table.resume(need, entry, || self.now(), Newcomer { call, resumes: true });
        let resumed = match resumed {
            table::Resumed::Now => {
                self.unparked(Held { need, entry });
                Resumed::Now
            }
            table::Resumed::Waiting(ticket) => {
                Resumed::Waiting { ticket, behind_zombies: table.is_behind_zombies(ticket) }
            }
        };
        (resumed, self.settled(&mut table))
    }

    /// Takes a handler that waits to resume out of the line.
    pub(crate) fn leave_resume(self: &Arc<Self>, ticket: Ticket) -> (LeaveResult, Granted<'_>) {
        let mut table = self.table();
        let left = table.cancel(ticket, || self.now());
        let granted = self.settled(&mut table);
        drop(table);
        // A cancelled place may hold the last reference to its batch, so it is dropped outside the lock.
        (if left.is_some() { LeaveResult::Left } else { LeaveResult::AlreadyGranted }, granted)
    }

    /// Releases the units of a handler that has stopped while calls under it may still run.
    pub(crate) fn release(self: &Arc<Self>, Held { need, entry }: Held) -> Granted<'_> {
        self.grant(|table, now| table.release(need, entry, now))
    }

    /// Takes a quiescent call off its lease.
    pub(crate) fn quiet(self: &Arc<Self>, held: Held) -> Granted<'_> {
        self.grant(|table, now| {
            if let Some(entry) = held.entry {
                table.quiet(entry, now);
            }
        })
    }

    /// Marks a call of which only listed zombies are left.
    pub(crate) fn listed(&self, held: Held) {
        if let Some(entry) = held.entry {
            self.table().listed(entry);
        }
    }

    /// Ends a call that dispatched nothing and was over at `at`, so that no clock is read under the lock.
    pub(crate) fn finish(self: &Arc<Self>, Held { need, entry }: Held, at: Instant) {
        let mut table = self.table();
        table.finish(need, entry, || self.moment(at));
        if table.has_no_decisions() {
            return; // nothing became grantable
        }
        let granted = Granted { at: Some(at), ..self.settled(&mut table) };
        drop(table);
        granted.start();
    }

    /// Ends a zombie whose call had dispatched nothing: its handler has stopped.
    pub(crate) fn zombie_gone(self: &Arc<Self>, Held { need, entry }: Held) {
        self.change(|table, now| {
            table.zombie_ended(need, entry, now);
            if let Some(entry) = entry {
                table.quiet(entry, now);
            }
        });
    }

    /// Turns a call into a zombie and returns what it keeps (SC-6). It keeps its lease in any case.
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

    /// Notes that a zombie's handler has stopped; calls under it may still run.
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
