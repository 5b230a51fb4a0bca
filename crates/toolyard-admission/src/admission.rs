//! The [`Table`] behind a lock, and its parts that calls see: what they ask for, hold and give back.
//!
//! The table decides without tasks or a clock; [`Admission`] puts a lock around it and starts the granted calls after
//! releasing the lock. Neither knows anything of tools, batches or retries.

mod granted;
mod held;
mod operating;
mod parking;
mod permit;
mod start;
mod waiter;
mod zombies;

pub use granted::Granted;
pub use held::Held;
pub use parking::Resumed;
pub use permit::Permit;
pub use waiter::{Asker, Waiter};

use crate::{
    ids::Ticket,
    moment::Moment,
    need::{Ask, Need},
    refusal::Refusal,
    table::{Asked, Table},
};
use parking_lot::{Mutex, MutexGuard};
use std::{
    fmt,
    sync::{Arc, atomic::AtomicUsize},
};
use tokio::time::Instant;
use toolyard_core::ToolClass;
use waiter::{Newcomer, Place};

/// The table of an engine: every counting semaphore and every serial lease, and who waits for them.
///
/// # Examples
/// ```
/// use toolyard_admission::{Admission, Need};
/// use toolyard_core::ToolClass;
/// let admission = Admission::new([1, 1, 10], 1_000, 100); // one read at a time
/// let read = Need::of(admission.open_class(ToolClass::Read), None, None);
/// let permit = admission.try_admit(1, read).expect("nothing runs");
/// assert!(admission.try_admit(2, read).is_none());
/// drop(permit);
/// assert!(admission.try_admit(2, read).is_some());
/// ```
pub struct Admission {
    table: Mutex<Table<Place>>,
    /// How many handlers are parked.
    parked: AtomicUsize,
    /// How many of them keep a thread.
    parked_on_threads: AtomicUsize,
    /// The instant that the table's moments count from.
    began: Instant,
}

/// The result of asking for admission.
///
/// # Examples
/// ```
/// # use std::sync::Arc;
/// # use toolyard_admission::{Permit, Waiter};
/// # struct Batch;
/// # impl Waiter for Batch {
/// #     fn start(self: Arc<Self>, _: u32, _: Permit<'_>) {}
/// #     fn resume(self: Arc<Self>, _: u32) {}
/// #     fn expire(self: Arc<Self>, _: u32) {}
/// #     fn refuse(&self, _: u32) {}
/// # }
/// use tokio::time::Instant;
/// use toolyard_admission::{Admission, Admitted, Ask, Need};
/// use toolyard_core::ToolClass;
/// let admission = Admission::new([1, 1, 10], 1_000, 100);
/// let ask = Ask::of_root(1, Need::of(admission.open_class(ToolClass::Read), None, None));
/// let batch = Arc::new(Batch);
/// match admission.admit(&ask, Instant::now(), (&batch, 0)) {
///     Ok(Admitted::Now(held)) => admission.finish(held, Instant::now()), // after it has run
///     Ok(Admitted::InPlaceOf(held, ended)) => {
///         ended.start();
///         admission.finish(held, Instant::now());
///     }
///     Ok(Admitted::Waiting { .. }) => println!("Batch::start is called when its turn comes"),
///     Err(refusal) => println!("it ends: {refusal:?}"),
/// }
/// ```
pub enum Admitted<'a> {
    /// What the call asked for. The caller has to give it back.
    Now(Held),
    /// The same. The caller also ends those that may not wait for what it took, outside its own locks.
    InPlaceOf(Held, Box<Granted<'a>>),
    /// A place in line; the call is started when its turn comes.
    Waiting {
        /// Its place.
        ticket: Ticket,
        /// Whether everything it still lacks is held by zombies.
        behind_zombies: bool,
    },
}

/// Whether a waiter has left the line.
///
/// # Examples
/// See [`Ticket`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeaveResult {
    /// It has left.
    Left,
    /// It had already been granted what it waited for; the grant is on its way.
    AlreadyGranted,
}

impl Admission {
    /// A table in which nothing is open. `widths` are those of the class units, in the order of [`ToolClass::index`]; the
    /// others bound how many calls may wait, in all and in one session (CC-4).
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::Admission;
    /// let admission = Admission::new([20, 1, 10], 10_000, 1_000);
    /// assert_eq!(admission.parked(), 0);
    /// ```
    pub fn new(
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
    ///
    /// # Examples
    /// See [`Admitted`].
    #[inline(always)]
    pub fn admit(
        self: &Arc<Self>,
        ask: &Ask,
        at: Instant,
        call: impl Asker,
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
        call: impl Asker,
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

    /// Grants a permit if it is free now and nobody waits, for a call at the root.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, Need, UnitKind};
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// let one = Need::of(admission.open(UnitKind::Session, 1), None, None);
    /// let permit = admission.try_admit(1, one);
    /// assert!(permit.is_some() && admission.try_admit(1, one).is_none());
    /// ```
    pub fn try_admit(self: &Arc<Self>, root: u64, need: Need) -> Option<Permit<'_>> {
        let entry = self.table().try_grant(&Ask::of_root(root, need))?;
        Some(Permit::new(self, Held { need, entry }, Instant::now()))
    }

    /// Takes a waiter out of the line (CC-9), unless what it waits for has been granted meanwhile. The caller starts the
    /// calls that this unblocks, outside its own locks.
    ///
    /// # Examples
    /// See [`Ticket`].
    pub fn leave(self: &Arc<Self>, ticket: Ticket) -> (LeaveResult, Granted<'_>) {
        let mut table = self.table();
        let left = table.cancel(ticket, || self.now());
        let granted = self.settled(&mut table);
        drop(table);
        // A cancelled place may hold the last reference to its batch, so it is dropped outside the lock.
        (if left.is_some() { LeaveResult::Left } else { LeaveResult::AlreadyGranted }, granted)
    }

    /// Ends a call that dispatched nothing and was over at `at`, so that no clock is read under the lock: gives back all
    /// that it held, and starts whom that unblocks.
    ///
    /// # Examples
    /// See [`Held`].
    pub fn finish(self: &Arc<Self>, Held { need, entry }: Held, at: Instant) {
        let mut table = self.table();
        table.finish(need, entry, || self.moment(at));
        if table.has_no_decisions() {
            return; // nothing became grantable
        }
        let granted = self.settled(&mut table).granted_at(at);
        drop(table);
        granted.start();
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
        Granted::new(self, table.take_granted(), table.take_refused(), table.take_owes())
    }
}

/// Shows no fields, because printing the table would need its lock. See [`Admission::lines`] for its waiters.
impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
