//! Parking: handlers that await calls of their own release what they hold and take it again (CC-6).

use super::{
    Admission,
    granted::Granted,
    held::Held,
    waiter::{Asker, Newcomer},
};
use crate::{ids::Ticket, table};
use std::sync::{Arc, atomic::Ordering};

/// The answer to a handler that wants to resume.
///
/// # Examples
/// See [`Admission::resume`].
pub enum Resumed {
    /// It holds everything again.
    Now,
    /// It waits; [`Waiter::resume`](crate::Waiter::resume) is called when it has everything.
    Waiting {
        /// Its place.
        ticket: Ticket,
        /// Whether zombies hold something that it needs.
        behind_zombies: bool,
    },
}

impl Admission {
    /// Parks a handler that awaits calls of its own: its units are free, and its lease is lent to those calls. `None`
    /// when `max` are parked, or `threads_max` of those that keep a thread (CC-4).
    ///
    /// # Examples
    /// See [`Admission::resume`].
    pub fn park(self: &Arc<Self>, held: Held, max: usize, threads_max: usize) -> Option<Granted<'_>> {
        let (parked, on_threads) = self.count_parked(held);
        if parked >= max || on_threads >= threads_max {
            self.unparked(held);
            return None;
        }
        Some(self.grant(|table, now| table.park(held.need, held.entry, now)))
    }

    /// Parks a handler again that has just been granted its units, and releases them. No bound forbids it.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, Need, UnitKind};
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// let one = Need::of(admission.open(UnitKind::Session, 1), None, None);
    /// let held = admission.try_admit(1, one).expect("nothing runs").hand_over();
    /// admission.park_again(held).start();
    /// assert_eq!(admission.parked(), 1);
    /// ```
    pub fn park_again(self: &Arc<Self>, held: Held) -> Granted<'_> {
        self.count_parked(held);
        self.grant(|table, now| table.park(held.need, held.entry, now))
    }

    /// Counts one parked handler more. Returns how many there were, and how many that keep a thread, if it is one.
    fn count_parked(&self, held: Held) -> (usize, usize) {
        let on_threads = match held.need.is_on_thread() {
            true => self.parked_on_threads.fetch_add(1, Ordering::Relaxed),
            false => 0,
        };
        (self.parked.fetch_add(1, Ordering::Relaxed), on_threads)
    }

    /// Counts one parked handler less, for one that is over without having resumed. A resume counts by itself.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, Need, UnitKind};
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// let one = Need::of(admission.open(UnitKind::Session, 1), None, None);
    /// let held = admission.try_admit(1, one).expect("nothing runs").hand_over();
    /// admission.park(held, 100, 100).expect("few are parked").start();
    /// admission.unparked(held);
    /// admission.release(held.without_units()).start();
    /// assert_eq!(admission.parked(), 0);
    /// ```
    pub fn unparked(&self, held: Held) {
        if held.need.is_on_thread() {
            self.parked_on_threads.fetch_sub(1, Ordering::Relaxed);
        }
        self.parked.fetch_sub(1, Ordering::Relaxed);
    }

    /// How many handlers are parked, including those waiting to resume.
    ///
    /// # Examples
    /// See [`Admission::resume`].
    pub fn parked(&self) -> usize {
        self.parked.load(Ordering::Relaxed)
    }

    /// Resumes a parked handler, at once or later through [`Waiter::resume`](crate::Waiter::resume).
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
    /// use toolyard_admission::{Admission, Need, Resumed};
    /// use toolyard_core::ToolClass;
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// let read = Need::of(admission.open_class(ToolClass::Read), None, None);
    /// let held = admission.try_admit(1, read).expect("nothing runs").hand_over();
    /// admission.park(held, 100, 100).expect("few are parked").start();
    /// let nested = admission.try_admit(1, read);
    /// assert!(nested.is_some() && admission.parked() == 1, "a parked handler holds no unit");
    /// drop(nested);
    /// let (resumed, granted) = admission.resume(held, (&Arc::new(Batch), 0));
    /// granted.start();
    /// assert!(matches!(resumed, Resumed::Now) && admission.parked() == 0);
    /// ```
    pub fn resume(self: &Arc<Self>, Held { need, entry }: Held, call: impl Asker) -> (Resumed, Granted<'_>) {
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

    /// Releases the units of a handler that has stopped while calls under it may still run, and lends them its lease.
    ///
    /// # Examples
    /// See [`Admission::quiet`].
    pub fn release(self: &Arc<Self>, Held { need, entry }: Held) -> Granted<'_> {
        self.grant(|table, now| table.release(need, entry, now))
    }

    /// Takes a quiescent call off its lease: neither it nor a call under it runs.
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, Need, Scope};
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// let serial = Need::serial(admission.open_lease(Scope::Tree), None, None);
    /// let held = admission.try_admit(1, serial).expect("nothing runs").hand_over();
    /// admission.release(held).start();
    /// assert!(admission.try_admit(2, serial).is_none(), "a call under it may still run");
    /// admission.quiet(held).start();
    /// assert!(admission.try_admit(2, serial).is_some());
    /// ```
    pub fn quiet(self: &Arc<Self>, held: Held) -> Granted<'_> {
        self.grant(|table, now| {
            if let Some(entry) = held.entry {
                table.quiet(entry, now);
            }
        })
    }
}
