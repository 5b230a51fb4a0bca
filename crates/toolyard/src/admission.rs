//! Who may run: the counting semaphores of the whole engine, in one place.
//!
//! ```text
//!   call ──► Need { class pool or serial lease, tool limit, session cap, tree cap }
//!              │ all of it is free, nobody of its lane waits  ──► Permit, at once
//!              └ otherwise ──► its lane ··· a release ──► the heads that can go ──► Permit
//! ```
//!
//! A call gets everything it needs in one step or waits for all of it and holds nothing (CC-1). Taking the
//! semaphores one after the other would have calls wait for one while they hold another, which deadlocks as
//! soon as calls nest. The [`Table`] decides and knows no task and no clock; [`Admission`] puts a lock around
//! it and starts what it grants, after the lock is gone. It knows nothing of tools, batches or retries.

mod parking;
mod permit;
mod start;
mod table;

pub(crate) use parking::{Held, Left, Resumed};
pub(crate) use permit::Permit;
pub(crate) use start::Granted;
pub(crate) use table::{
    Ask, EntryId, EntryState, LeaseId, Line, Missing, Need, Refusal, Scope, Ticket, UnitId, UnitKind,
};

use crate::pool::PoolLoad;
use std::{
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicUsize},
};
use table::{Asked, Going, Moment, Table, Waits};
use tokio::time::Instant;
use toolyard_core::ToolClass;

/// A call that waits, and how to start it.
pub(crate) trait Waiter: Send + Sync {
    /// Starts call `index` with the permit it waited for.
    fn start(self: Arc<Self>, index: u32, permit: Permit<'_>);

    /// Lets the handler of call `index` go on, which was parked and has what it needs again (CC-6).
    fn resume(self: Arc<Self>, index: u32);

    /// Ends call `index`, which has waited long enough for what handlers hold that were given up.
    fn expire(self: Arc<Self>, index: u32);

    /// Ends call `index`, whose lease went to another and who may not wait for it (CC-8).
    fn refuse(&self, index: u32);
}

/// A place in line: the batch, and the call's index in it. A waiting call has no task, and not even this of its own where
/// it came right behind its neighbour of the batch.
#[derive(Clone)]
struct Place {
    waiter: Arc<dyn Waiter>,
    index: u32,
    /// Whether it is a handler that waits to go on.
    resumes: bool,
}

impl Waits for Place {
    fn behind(self, places: u32) -> Self {
        Self { index: self.index + places, ..self }
    }
}

/// Who comes to wait, unless it goes at once. Its batch is counted once more only where it begins a party.
struct Newcomer<'a, T> {
    waiter: &'a Arc<T>,
    index: u32,
    resumes: bool,
}

impl<T: Waiter + 'static> table::Newcomer<Place> for Newcomer<'_, T> {
    fn is_behind(&self, first: &Place, places: u32) -> bool {
        ptr::addr_eq(Arc::as_ptr(self.waiter), Arc::as_ptr(&first.waiter))
            && u64::from(first.index) + u64::from(places) == u64::from(self.index)
            && first.resumes == self.resumes
    }

    fn into_first(self) -> Place {
        Place { waiter: self.waiter.clone(), index: self.index, resumes: self.resumes }
    }
}

/// The lock around the [`Table`].
pub(crate) struct Admission {
    table: Mutex<Table<Place>>,
    /// How many handlers are parked.
    parked: AtomicUsize,
    /// What the table's moments are counted from.
    began: Instant,
}

/// What an attempt to get in ends with.
pub(crate) enum Admitted {
    /// What it asked for, which is the caller's to give back.
    Now(Held),
    /// A place in line; the call is started when its turn comes.
    Waiting {
        ticket: Ticket,
        /// Whether it waits for nothing but what handlers hold that were given up.
        behind_zombies: bool,
    },
}

impl Admission {
    /// `widths` of the classes' units, in the order of [`ToolClass::index`], and the bounds of the queue.
    pub(crate) fn new(
        widths: [usize; ToolClass::ALL.len()],
        queue_engine_max: usize,
        queue_session_max: usize,
    ) -> Arc<Self> {
        let table = Mutex::new(Table::new(widths, queue_engine_max, queue_session_max));
        Arc::new(Self { table, parked: AtomicUsize::new(0), began: Instant::now() })
    }

    fn now(&self) -> Moment {
        self.moment(Instant::now())
    }

    fn moment(&self, at: Instant) -> Moment {
        let since = at.saturating_duration_since(self.began);
        Moment(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    fn table(&self) -> MutexGuard<'_, Table<Place>> {
        // The table is consistent at every point where it could unwind: its own code runs under the lock.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everything at once, or a place in line from `at` on: no clock is read under the lock.
    ///
    /// # Errors
    /// [`Refusal`]: the call ends, for it may not even wait.
    pub(crate) fn admit(
        self: &Arc<Self>,
        ask: &Ask,
        at: Instant,
        waiter: &Arc<impl Waiter + 'static>,
        index: u32,
    ) -> Result<Admitted, Refusal> {
        let now = |entry| Ok(Admitted::Now(Held { need: ask.need, entry }));
        let mut table = self.table();
        if let Some(entry) = table.try_grant(ask) {
            drop(table);
            return now(entry);
        }
        let newcomer = Newcomer { waiter, index, resumes: false };
        match table.admit(ask, || self.moment(at), newcomer) {
            Asked::Granted(entry) => {
                // It stands on its lease now, and that may end calls which may not wait for it.
                let refused = self.settled(&mut table);
                drop(table);
                refused.start();
                now(entry)
            }
            Asked::Waiting(ticket) => {
                Ok(Admitted::Waiting { ticket, behind_zombies: table.is_behind_zombies(ticket) })
            }
            Asked::Refused(refusal) => Err(refusal),
        }
    }

    /// A permit now, without waiting.
    #[cfg(any(test, toolyard_faults))]
    pub(crate) fn try_admit(self: &Arc<Self>, root: u64, need: Need) -> Option<Permit<'_>> {
        let entry = self.table().try_grant(&Ask::of_root(root, need))?;
        Some(Permit::new(self, need, entry, Instant::now()))
    }

    /// Leaves the line (CC-9), unless the call has been granted its permit meanwhile. Who can go for it is the
    /// caller's to start, outside of its own locks.
    pub(crate) fn leave(self: &Arc<Self>, ticket: Ticket) -> Granted<'_> {
        let mut table = self.table();
        let left = table.cancel(ticket, || self.now());
        let granted = self.settled(&mut table);
        drop(table);
        drop(left); // what stands for a call may be the last of its batch
        granted
    }

    /// Whether a call still waits, for nothing but what handlers hold that were given up.
    pub(crate) fn is_behind_zombies(&self, ticket: Ticket) -> bool {
        self.table().is_behind_zombies(ticket)
    }

    /// A mark in the order of those who wait: who is in line by now is before it.
    pub(crate) fn mark(&self) -> u64 {
        self.table().last_ticket()
    }

    /// Ends those who were in line at the mark and wait for nothing but what handlers hold that were given up.
    pub(crate) fn expire_behind_zombies(&self, mark: u64) {
        let expired = self.table().behind_zombies(mark);
        expired.into_iter().for_each(|place| place.waiter.expire(place.index));
    }

    /// Changes the table, then starts whoever can go now, outside the lock: starting a call may admit others.
    fn change<T>(self: &Arc<Self>, change: impl FnOnce(&mut Table<Place>, &dyn Fn() -> Moment) -> T) -> T {
        let mut table = self.table();
        let value = change(&mut table, &|| self.now());
        let granted = self.settled(&mut table);
        drop(table);
        granted.start();
        value
    }

    fn grant(self: &Arc<Self>, change: impl FnOnce(&mut Table<Place>, &dyn Fn() -> Moment)) -> Granted<'_> {
        let mut table = self.table();
        change(&mut table, &|| self.now());
        self.settled(&mut table)
    }

    /// What the changes of the table have led to.
    fn settled(self: &Arc<Self>, table: &mut Table<Place>) -> Granted<'_> {
        Granted { admission: self, calls: table.take_granted(), refused: table.take_refused(), at: None }
    }

    /// A new unit of a class, as wide as the class is at this moment and paused if the class is (CL-6).
    pub(crate) fn open_class(&self, class: ToolClass) -> UnitId {
        self.table().open_class(class)
    }

    /// A new unit for the calls of one tool in one agent.
    pub(crate) fn open_tool(&self, width: usize) -> UnitId {
        self.table().open_tool(width)
    }

    /// A new unit for the calls of one session.
    pub(crate) fn open_session(&self, width: usize) -> UnitId {
        self.table().open_session(width)
    }

    /// A new unit for the calls of one session tree.
    pub(crate) fn open_tree(&self, width: usize) -> UnitId {
        self.table().open_tree(width)
    }

    /// How many calls of a tree go in a round (CC-3): 1, 2 or 4.
    pub(crate) fn set_weight(&self, root: u64, weight: u8) {
        self.table().set_weight(root, weight);
    }

    /// A lease for the serial calls of a session tree, or of a named scope.
    pub(crate) fn open_lease(&self, scope: Scope) -> LeaseId {
        self.table().open_lease(scope)
    }

    /// Takes a lease away that nobody stands on or waits for any more.
    pub(crate) fn close_lease(&self, lease: LeaseId) {
        self.table().close_lease(lease);
    }

    /// Takes units away that nothing uses or waits for any more.
    pub(crate) fn close_units(&self, units: impl IntoIterator<Item = UnitId>) {
        let mut table = self.table();
        units.into_iter().for_each(|unit| table.close_unit(unit));
    }

    /// Sets the width of one unit. Who can go now is the caller's to start, outside of its own locks.
    pub(crate) fn resize_unit(self: &Arc<Self>, unit: UnitId, width: usize) -> Granted<'_> {
        self.grant(|table, now| table.resize_unit(unit, width, now))
    }

    /// Sets the width of every unit of a class, those still to be opened included. Narrower
    /// than what runs: nothing is taken away, new calls wait until enough have ended.
    pub(crate) fn resize_class(self: &Arc<Self>, class: ToolClass, width: usize) {
        self.change(|table, now| table.resize_class(class, width, now));
    }

    /// Stops or resumes granting of a class, in units still to be opened too; what runs goes on.
    pub(crate) fn pause_class(self: &Arc<Self>, class: ToolClass, paused: bool) {
        self.change(|table, now| table.pause_class(class, paused, now));
    }

    /// How many calls of each class run and wait.
    pub(crate) fn load(&self, class: ToolClass) -> PoolLoad {
        self.table().load(class)
    }

    /// Who waits for what, the longest wait first.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let table = self.table();
        // Read under the lock: nobody may have come to wait after this moment.
        table.lines(self.now())
    }
}

/// Rebuilt from these few numbers, the table of a running engine is what a person wants to see.
impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
