//! Decides which calls may run: holds the counting semaphores of the whole engine in one place.
//!
//! ```text
//!   call ──► Need { class pool or serial lease, tool limit, session cap, tree cap }
//!              │ all of it is free and its lane is empty  ──► Permit, at once
//!              └ otherwise ──► its lane ··· a release ──► the heads that can start ──► Permit
//! ```
//!
//! A call gets everything it needs in one step, or waits for all of it and holds nothing (CC-1). If calls took the
//! semaphores one after the other, they would wait for one while holding another, which deadlocks as soon as calls
//! nest. The [`Table`] makes the decisions without tasks or a clock; [`Admission`] puts a lock around it and starts
//! the granted calls after releasing the lock. Neither knows anything of tools, batches or retries.

mod parking;
mod permit;
mod start;
mod table;

pub(crate) use parking::{Held, LeaveResult, Resumed};
pub(crate) use permit::Permit;
pub(crate) use start::Granted;
pub(crate) use table::{
    Ask, EntryId, EntryState, LeaseId, Line, Missing, Need, Reach, Refusal, Scope, Ticket, UnitId, UnitKind,
};

use parking_lot::{Mutex, MutexGuard};
use std::{
    ptr,
    sync::{Arc, atomic::AtomicUsize},
};
use table::{Asked, GrantedWaiter, Moment, PlaceInLine, Table};
use tokio::time::Instant;
use toolyard_core::ToolClass;

/// How many calls are running and waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PoolLoad {
    pub(crate) running: usize,
    pub(crate) queued: usize,
}

/// A batch with waiting calls, and how to start them.
pub(crate) trait Waiter: Send + Sync {
    /// Starts call `index` with the permit it waited for.
    fn start(self: Arc<Self>, index: u32, permit: Permit<'_>);

    /// Lets the parked handler of call `index` continue: it holds what it needs again (CC-6).
    fn resume(self: Arc<Self>, index: u32);

    /// Ends call `index`, which has waited for zombies long enough.
    fn expire(self: Arc<Self>, index: u32);

    /// Ends call `index`: another call took its lease, and it may not wait for that lease (CC-8).
    fn refuse(&self, index: u32);
}

/// A place in line: the batch, and the call's index in it. A waiting call has no task. It does not even have a
/// `Place` of its own when it queued right behind its neighbour in the batch.
#[derive(Clone)]
struct Place {
    waiter: Arc<dyn Waiter>,
    index: u32,
    /// Whether this is a parked handler waiting to resume.
    resumes: bool,
}

impl PlaceInLine for Place {
    fn behind(self, places: u32) -> Self {
        Self { index: self.index + places, ..self }
    }
}

/// A call that asks for permits: one of the calls of a [`Waiter`].
pub(crate) trait Asking {
    /// The batch.
    type Waiter: Waiter + 'static;

    /// The batch, only to be compared.
    fn address(&self) -> *const Self::Waiter;

    /// Its place in the batch.
    fn index(&self) -> u32;

    /// The batch, to be kept: used only if the call has to wait, and no neighbour of it waits before it.
    fn waiter(&self) -> Arc<Self::Waiter>;
}

#[cfg(test)]
impl<T: Waiter + 'static> Asking for (&Arc<T>, u32) {
    type Waiter = T;

    fn address(&self) -> *const T {
        Arc::as_ptr(self.0)
    }

    fn index(&self) -> u32 {
        self.1
    }

    fn waiter(&self) -> Arc<T> {
        self.0.clone()
    }
}

/// A call or handler about to wait.
struct Newcomer<T> {
    call: T,
    resumes: bool,
}

impl<T: Asking> table::Newcomer<Place> for Newcomer<T> {
    fn is_behind(&self, first: &Place, places: u32) -> bool {
        ptr::addr_eq(self.call.address(), Arc::as_ptr(&first.waiter))
            && u64::from(first.index) + u64::from(places) == u64::from(self.call.index())
            && first.resumes == self.resumes
    }

    fn into_first(self) -> Place {
        Place { waiter: self.call.waiter(), index: self.call.index(), resumes: self.resumes }
    }
}

/// The [`Table`] behind a lock.
pub(crate) struct Admission {
    table: Mutex<Table<Place>>,
    /// How many handlers are parked.
    parked: AtomicUsize,
    /// How many of them keep a thread.
    parked_on_threads: AtomicUsize,
    /// The instant that the table's moments count from.
    began: Instant,
}

/// The result of asking for admission.
pub(crate) enum Admitted<'a> {
    /// What the call asked for. The caller has to give it back.
    Now(Held),
    /// The same. The caller also ends those that may not wait for what it took, outside its own locks.
    InPlaceOf(Held, Box<Granted<'a>>),
    /// A place in line; the call is started when its turn comes.
    Waiting {
        ticket: Ticket,
        /// Whether everything it still lacks is held by zombies.
        behind_zombies: bool,
    },
}

impl Admission {
    /// `widths` are those of the class units, in the order of [`ToolClass::index`]; the others bound the queue.
    pub(crate) fn new(
        widths: [usize; ToolClass::ALL.len()],
        queue_engine_max: usize,
        queue_session_max: usize,
    ) -> Arc<Self> {
        let table = Mutex::new(Table::new(widths, queue_engine_max, queue_session_max));
        Arc::new(Self {
            table,
            parked: AtomicUsize::new(0),
            parked_on_threads: AtomicUsize::new(0),
            began: Instant::now(),
        })
    }

    fn now(&self) -> Moment {
        self.moment(Instant::now())
    }

    fn moment(&self, at: Instant) -> Moment {
        let since = at.saturating_duration_since(self.began);
        Moment(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
    }

    fn table(&self) -> MutexGuard<'_, Table<Place>> {
        // The table is consistent wherever it could unwind: only its own code runs under the lock.
        self.table.lock()
    }

    /// Grants everything at once, or a place in line dating from `at`, so that no clock is read under the lock.
    ///
    /// # Errors
    /// [`Refusal`]: the call ends because it may not even wait.
    #[inline(always)]
    pub(crate) fn admit(
        self: &Arc<Self>,
        ask: &Ask,
        at: Instant,
        call: impl Asking,
    ) -> Result<Admitted<'_>, Refusal> {
        let mut table = self.table();
        if let Some(entry) = table.try_grant(ask) {
            drop(table);
            return Ok(Admitted::Now(Held { need: ask.need, entry }));
        }
        self.admit_or_queue(table, ask, at, call)
    }

    #[inline(never)]
    fn admit_or_queue(
        self: &Arc<Self>,
        mut table: MutexGuard<'_, Table<Place>>,
        ask: &Ask,
        at: Instant,
        call: impl Asking,
    ) -> Result<Admitted<'_>, Refusal> {
        let newcomer = Newcomer { call, resumes: false };
        match table.admit(ask, || self.moment(at), newcomer) {
            Asked::Granted(entry) => {
                let held = Held { need: ask.need, entry };
                // Its new entry on the lease may end calls that may not wait for it.
                let ended = self.settled(&mut table);
                Ok(match ended.is_nothing() {
                    true => Admitted::Now(held),
                    false => Admitted::InPlaceOf(held, Box::new(ended)),
                })
            }
            Asked::Waiting(ticket) => {
                Ok(Admitted::Waiting { ticket, behind_zombies: table.is_behind_zombies(ticket) })
            }
            Asked::Refused(refusal) => Err(refusal),
        }
    }

    /// Grants a permit if it is free now, without waiting.
    #[cfg(test)]
    pub(crate) fn try_admit(self: &Arc<Self>, root: u64, need: Need) -> Option<Permit<'_>> {
        let entry = self.table().try_grant(&Ask::of_root(root, need))?;
        Some(Permit::new(self, need, entry, Instant::now()))
    }

    /// Takes a waiter out of the line (CC-9), unless its permit has been granted meanwhile. The caller starts the
    /// calls that this unblocks, outside its own locks.
    pub(crate) fn leave(self: &Arc<Self>, ticket: Ticket) -> Granted<'_> {
        let mut table = self.table();
        let left = table.cancel(ticket, || self.now());
        let granted = self.settled(&mut table);
        drop(table);
        drop(left); // may hold the last reference to its batch
        granted
    }

    /// Whether a waiter is still in line and blocked by zombies.
    pub(crate) fn is_behind_zombies(&self, ticket: Ticket) -> bool {
        self.table().is_behind_zombies(ticket)
    }

    /// A mark in the order of waiters: everyone in line now is before it.
    pub(crate) fn mark(&self) -> u64 {
        self.table().last_ticket()
    }

    /// Expires the waiters that were in line at the mark and are still blocked by zombies.
    pub(crate) fn expire_behind_zombies(&self, mark: u64) {
        let expired = self.table().behind_zombies(mark);
        expired.into_iter().for_each(|place| place.waiter.expire(place.index));
    }

    /// Changes the table, then starts the granted calls outside the lock, because starting a call may admit others.
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

    /// Collects the grants and refusals that the table's changes have led to.
    fn settled(self: &Arc<Self>, table: &mut Table<Place>) -> Granted<'_> {
        let (calls, refused, owes) = (table.take_granted(), table.take_refused(), table.take_owes());
        Granted { admission: self, calls, refused, owes, at: None }
    }

    /// Opens a unit of a class, with the class's current width and pause state (CL-6).
    pub(crate) fn open_class(&self, class: ToolClass) -> UnitId {
        self.table().open_class(class)
    }

    /// Opens a unit for the calls of one tool in one agent, one tree or the engine.
    pub(crate) fn open_tool(&self, width: usize, reach: Reach) -> UnitId {
        self.table().open_tool(width, reach)
    }

    /// Opens the unit for the threads of blocking handlers.
    pub(crate) fn open_threads(&self, width: usize) -> UnitId {
        self.table().open_threads(width)
    }

    /// Opens a unit for the calls of one session.
    pub(crate) fn open_session(&self, width: usize) -> UnitId {
        self.table().open_session(width)
    }

    /// Opens a unit for the calls of one session tree.
    pub(crate) fn open_tree(&self, width: usize) -> UnitId {
        self.table().open_tree(width)
    }

    /// Sets how many calls of a tree are granted per round (CC-3): 1, 2 or 4.
    pub(crate) fn set_weight(&self, root: u64, weight: u8) {
        self.table().set_weight(root, weight);
    }

    /// Opens a lease for the serial calls of a session tree, or of a named scope.
    pub(crate) fn open_lease(&self, scope: Scope) -> LeaseId {
        self.table().open_lease(scope)
    }

    /// Removes a lease that has no entries and no waiters.
    pub(crate) fn close_lease(&self, lease: LeaseId) {
        self.table().close_lease(lease);
    }

    /// Removes units that nothing uses or waits for.
    pub(crate) fn close_units(&self, units: impl IntoIterator<Item = UnitId>) {
        let mut table = self.table();
        units.into_iter().for_each(|unit| table.close_unit(unit));
    }

    /// Sets the width of one unit. The caller starts the calls that this unblocks, outside its own locks.
    pub(crate) fn resize_unit(self: &Arc<Self>, unit: UnitId, width: usize) -> Granted<'_> {
        self.grant(|table, now| table.resize_unit(unit, width, now))
    }

    /// Sets the width of every unit of a class, including units opened later. If more calls run than the new width
    /// allows, nothing is taken away: new calls wait until enough have ended. Calls that this unblocks are
    /// granted by [`Admission::grant_slice`].
    pub(crate) fn resize_class(&self, class: ToolClass, width: usize) {
        self.table().resize_class(class, width);
    }

    /// Pauses or resumes granting for a class, including units opened later. Running calls continue. Calls that this
    /// unblocks are granted by [`Admission::grant_slice`].
    pub(crate) fn pause_class(&self, class: ToolClass, paused: bool) {
        self.table().pause_class(class, paused);
    }

    /// Grants and starts the next few of the calls that a large change has unblocked (CC-3). Returns whether there
    /// may be more.
    pub(crate) fn grant_slice(self: &Arc<Self>) -> bool {
        let (granted, has_more) = self.settle_slice();
        granted.start();
        has_more
    }

    /// The calls of the next slice, and whether there may be more.
    fn settle_slice(self: &Arc<Self>) -> (Granted<'_>, bool) {
        let mut table = self.table();
        let has_more = table.settle_slice(|| self.now());
        (self.settled(&mut table), has_more)
    }

    /// How many calls of a class are running and waiting.
    pub(crate) fn load(&self, class: ToolClass) -> PoolLoad {
        self.table().load(class)
    }

    /// What each lane waits for, the longest wait first.
    pub(crate) fn lines(&self) -> Vec<Line> {
        let table = self.table();
        // Read under the lock, so that no waiter can have arrived after this moment.
        table.lines(self.now())
    }
}

/// Shows no fields, because printing the table would need its lock. See [`Admission::lines`] for its waiters.
impl std::fmt::Debug for Admission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
