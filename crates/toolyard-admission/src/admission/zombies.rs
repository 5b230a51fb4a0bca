//! Zombies: handlers that were abandoned and still run. What they hold nobody gets, so who waits for it is told (V3).

use super::{Admission, granted::Granted, held::Held};
use crate::{ids::Ticket, unit::UnitKind};
use std::sync::Arc;

impl Admission {
    /// Whether a waiter is still in line and blocked by zombies.
    ///
    /// # Examples
    /// See [`Admission::become_zombie`].
    pub fn is_behind_zombies(&self, ticket: Ticket) -> bool {
        self.table().is_behind_zombies(ticket)
    }

    /// A mark in the order of waiters: everyone in line now is before it.
    ///
    /// # Examples
    /// See [`Admission::expire_behind_zombies`].
    pub fn mark(&self) -> u64 {
        self.table().last_ticket()
    }

    /// Expires the waiters that were in line at the mark and are still blocked by zombies: [`Waiter::expire`] is called
    /// for each, on this thread.
    ///
    /// [`Waiter::expire`]: crate::Waiter::expire
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::Admission;
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// let mark = admission.mark();
    /// // After as long as a waiter may have to wait for zombies:
    /// admission.expire_behind_zombies(mark);
    /// ```
    pub fn expire_behind_zombies(&self, mark: u64) {
        let expired = self.table().behind_zombies(mark);
        expired.into_iter().for_each(|place| place.waiter.expire(place.index));
    }

    /// Turns a call into a zombie and returns what it keeps (SC-6): the units that `keeps` selects, and its lease in any
    /// case.
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
    /// use toolyard_admission::{Admission, Admitted, Ask, Need, UnitKind};
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// let one = Need::of(admission.open(UnitKind::Session, 1), None, None);
    /// let held = admission.try_admit(1, one).expect("nothing runs").hand_over();
    /// let (kept, granted) = admission.become_zombie(held, |_| true);
    /// granted.start();
    /// let asked = admission.admit(&Ask::of_root(1, one), Instant::now(), (&Arc::new(Batch), 0));
    /// let Ok(Admitted::Waiting { ticket, behind_zombies: true }) = asked else { panic!("it is kept") };
    /// assert!(admission.is_behind_zombies(ticket));
    /// admission.zombie_gone(kept);
    /// assert!(!admission.is_behind_zombies(ticket));
    /// ```
    pub fn become_zombie(
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
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, Need, Scope};
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// let serial = Need::serial(admission.open_lease(Scope::Tree), None, None);
    /// let held = admission.try_admit(1, serial).expect("nothing runs").hand_over();
    /// let (kept, granted) = admission.become_zombie(held, |_| true);
    /// granted.start();
    /// admission.zombie_ended(kept).start();
    /// admission.quiet(kept).start(); // nothing under it runs any more
    /// assert!(admission.try_admit(1, serial).is_some());
    /// ```
    pub fn zombie_ended(self: &Arc<Self>, Held { need, entry }: Held) -> Granted<'_> {
        self.grant(|table, now| table.zombie_ended(need, entry, now))
    }

    /// Ends a zombie whose call had dispatched nothing: its handler has stopped.
    ///
    /// # Examples
    /// See [`Admission::become_zombie`].
    pub fn zombie_gone(self: &Arc<Self>, Held { need, entry }: Held) {
        self.change(|table, now| {
            table.zombie_ended(need, entry, now);
            if let Some(entry) = entry {
                table.quiet(entry, now);
            }
        });
    }

    /// Marks a call of which only zombies are left, each of them known as one (V2).
    ///
    /// # Examples
    /// ```
    /// use toolyard_admission::{Admission, Need, Scope};
    /// let admission = Admission::new([1, 1, 1], 1_000, 100);
    /// let serial = Need::serial(admission.open_lease(Scope::Tree), None, None);
    /// let held = admission.try_admit(1, serial).expect("nothing runs").hand_over();
    /// admission.release(held).start(); // its handler has stopped; a zombie that it called has not
    /// admission.listed(held);
    /// ```
    pub fn listed(&self, held: Held) {
        if let Some(entry) = held.entry {
            self.table().listed(entry);
        }
    }
}
