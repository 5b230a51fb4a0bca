//! Who may run: the counting semaphores of the whole engine, in one place.
//!
//! ```text
//!   call ──► Need { tool limit, class pool or serial lease, session cap }
//!              │ all of it is free, nobody of its lane waits  ──► Permit, at once
//!              └ otherwise ──► its lane ··· a release ──► the heads that can go ──► Permit
//! ```
//!
//! A call gets everything it needs in one step or waits for all of it and holds nothing (CC-1). Taking the
//! semaphores one after the other would have calls wait for one while they hold another, which deadlocks as
//! soon as calls nest. The [`Table`] decides and knows no task and no clock; [`Admission`] puts a lock around
//! it and starts what it grants, after the lock is gone. It knows nothing of tools, batches or retries.

mod permit;
mod start;
mod table;

pub(crate) use permit::Permit;
pub(crate) use start::Granted;
pub(crate) use table::{Need, Ticket, UnitId, UnitKind};

use crate::pool::PoolLoad;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use table::Table;
use toolyard_core::ToolClass;

/// A call that waits, and how to start it.
pub(crate) trait Waiter: Send + Sync {
    /// Starts call `index` with the permit it waited for.
    fn start(self: Arc<Self>, index: u32, permit: Permit);

    /// Ends call `index`, which has waited long enough for what handlers hold that were given up.
    fn expire(&self, index: u32);
}

/// A place in line: the batch, and the call's index in it. 24 bytes; a waiting call has no task.
#[derive(Clone)]
struct Place {
    waiter: Arc<dyn Waiter>,
    index: u32,
}

/// Why a call may not even wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct QueueFull {
    /// The bound that was met.
    pub(crate) queue_max: usize,
}

/// The lock around the [`Table`].
pub(crate) struct Admission {
    table: Mutex<Table<Place>>,
}

/// What an attempt to get in ends with.
pub(crate) enum Admitted {
    /// The permit.
    Now(Permit),
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
        Arc::new(Self { table: Mutex::new(Table::new(widths, queue_engine_max, queue_session_max)) })
    }

    fn table(&self) -> MutexGuard<'_, Table<Place>> {
        // The table is consistent at every point where it could unwind: its own code runs under the lock.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A permit now, or a place in the line of `lane`.
    ///
    /// # Errors
    /// [`QueueFull`] when the session's or the engine's line is at its bound (CC-4).
    pub(crate) fn admit(
        self: &Arc<Self>,
        lane: u64,
        need: Need,
        waiter: impl FnOnce() -> (Arc<dyn Waiter>, u32),
    ) -> Result<Admitted, QueueFull> {
        let mut table = self.table();
        if table.try_grant(lane, need) {
            drop(table);
            return Ok(Admitted::Now(Permit::new(self.clone(), need)));
        }
        let (waiter, index) = waiter();
        let place = Place { waiter, index };
        match table.enqueue(lane, need, place) {
            Ok(ticket) => Ok(Admitted::Waiting { ticket, behind_zombies: table.is_behind_zombies(need) }),
            Err((queue_max, _)) => Err(QueueFull { queue_max }),
        }
    }

    /// A permit now, without waiting.
    #[cfg(test)]
    pub(crate) fn try_admit(self: &Arc<Self>, lane: u64, need: Need) -> Option<Permit> {
        let granted = self.table().try_grant(lane, need);
        granted.then(|| Permit::new(self.clone(), need))
    }

    /// Leaves the line (CC-9). `false` when the call has been granted its permit meanwhile.
    pub(crate) fn leave(&self, ticket: Ticket) -> bool {
        self.table().cancel(ticket).is_some()
    }

    /// Gives back everything in `need` and starts whoever can go now.
    fn release(self: &Arc<Self>, need: Need) {
        self.change(|table| table.release(need));
    }

    fn release_zombie(self: &Arc<Self>, need: Need) {
        self.change(|table| table.release_zombie(need));
    }

    /// Whether a call of this need waits for nothing but what handlers hold that were given up.
    pub(crate) fn is_behind_zombies(&self, need: Need) -> bool {
        self.table().is_behind_zombies(need)
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
    fn change(self: &Arc<Self>, change: impl FnOnce(&mut Table<Place>)) {
        self.grant(change).start();
    }

    fn grant(self: &Arc<Self>, change: impl FnOnce(&mut Table<Place>)) -> Granted<'_> {
        let mut table = self.table();
        change(&mut table);
        Granted { admission: self, calls: table.take_granted() }
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

    /// Takes units away that nothing uses or waits for any more.
    pub(crate) fn close_units(&self, units: impl IntoIterator<Item = UnitId>) {
        let mut table = self.table();
        units.into_iter().for_each(|unit| table.close_unit(unit));
    }

    /// Sets the width of one unit. Who can go now is the caller's to start, outside of its own locks.
    pub(crate) fn resize_unit(self: &Arc<Self>, unit: UnitId, width: usize) -> Granted<'_> {
        self.grant(|table| table.resize_unit(unit, width))
    }

    /// Sets the width of every unit of a class, those still to be opened included. Narrower
    /// than what runs: nothing is taken away, new calls wait until enough have ended.
    pub(crate) fn resize_class(self: &Arc<Self>, class: ToolClass, width: usize) {
        self.change(|table| table.resize_class(class, width));
    }

    /// Stops or resumes granting of a class, in units still to be opened too; what runs goes on.
    pub(crate) fn pause_class(self: &Arc<Self>, class: ToolClass, paused: bool) {
        self.change(|table| table.pause_class(class, paused));
    }

    /// How many calls of each class run and wait.
    pub(crate) fn load(&self, class: ToolClass) -> PoolLoad {
        self.table().load(class)
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
