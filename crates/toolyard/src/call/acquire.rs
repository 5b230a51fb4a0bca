//! Acquires what an attempt needs, step by step: budget, rate token, permits, breaker slots (V1).
//!
//! ```text
//!   budget ──► rate token ──► permits, all at once ──► breaker slots ──► attempt
//!     │            │ none: in the tool's queue │ none: queued    │
//!     └────────────┴──── the call ends ───────┴─────────────────┘
//! ```
//!
//! Whatever a call waits for, it holds nothing but its budget reservation (CC-5). A further attempt starts at the
//! rate token.

use crate::{
    call::{
        attempt::{Attempt, AttemptStart},
        batch::BatchState,
        in_flight::InFlight,
        life::{Life, Started},
        progress::Bid,
        refusals::{Refusal, vanished_error},
    },
    tool::{Slots, TakeResult, TooLong, rate},
};
use parking_lot::MutexGuard;
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use toolyard_admission::{Admitted, Held, Need};
use toolyard_core::{CallError, CallTimeout};

impl InFlight<'_> {
    /// Takes a rate token and then permits; returns the attempt if both are available now. The caller has just
    /// [rechecked](Self::recheck) the call, and its phase says that it waits for nothing else.
    #[inline(always)]
    pub(crate) fn acquire(self, mut life: MutexGuard<'_, Life>, bid: Bid, now: Instant) -> Option<Attempt> {
        let guard = self.work().entry.guard();
        match guard.queue.take(now) {
            TakeResult::Now => return self.take_permits(life, bid, now),
            TakeResult::Wait => {}
        }
        match guard.queue.enqueue(now, rate::Place { waiter: self.shared_batch(), index: self.index }) {
            Ok(ticket) => {
                self.set_wait_alarms(&bid);
                life.joins_line(ticket, bid);
                drop(life);
                guard.line_changed(&self.engine().tasks, self.engine().clock);
            }
            Err(TooLong { retry_after }) => {
                self.refuse_bid(life, bid, Refusal::RateLimited { retry_after }.error())
            }
        }
        None
    }

    #[inline(always)]
    fn take_permits(self, life: MutexGuard<'_, Life>, bid: Bid, now: Instant) -> Option<Attempt> {
        let work = self.work();
        let (need, resized) = self.session().need(&work.entry, work.class);
        let attempt = self.take_units(life, bid, need, now);
        if let Some(resized) = resized {
            resized.start(); // the call's own phase is unlocked: the policy is asked about those that start
        }
        attempt
    }

    #[inline(always)]
    fn take_units(
        self,
        mut life: MutexGuard<'_, Life>,
        bid: Bid,
        need: Need,
        now: Instant,
    ) -> Option<Attempt> {
        let engine = &self.engine();
        // The phase stays locked until it has the ticket: another thread that grants it at once waits for that.
        let ask = self.batch.ask_for(need);
        match engine.admission.admit(&ask, now, self) {
            Ok(Admitted::Now(held)) => self.start_with(life, bid, held, now),
            Ok(Admitted::InPlaceOf(held, ended)) => {
                let attempt = self.start_in_place_of(life, bid, held, now);
                ended.start(); // the call's own phase is unlocked, whoever learns of their end
                attempt
            }
            Ok(Admitted::Waiting { ticket, behind_zombies }) => {
                self.set_wait_alarms(&bid);
                life.queues(ticket, bid);
                if behind_zombies {
                    self.expire_later(ticket);
                }
                None
            }
            Err(refusal) => {
                self.refuse_bid(life, bid, Refusal::from(refusal).error());
                None
            }
        }
    }

    #[cold]
    fn start_in_place_of(
        self,
        life: MutexGuard<'_, Life>,
        bid: Bid,
        held: Held,
        now: Instant,
    ) -> Option<Attempt> {
        self.start_with(life, bid, held, now)
    }

    /// Makes the attempt of a call that has its permits, if its events can be written and the breakers admit it.
    #[inline(always)]
    fn start_with(
        self,
        mut life: MutexGuard<'_, Life>,
        bid: Bid,
        held: Held,
        now: Instant,
    ) -> Option<Attempt> {
        // The call may have waited since its run began: for a hook, a token, or the flight of another call.
        let slots = match self.may_not_start() {
            None => self.slots(now),
            Some(refused) => Err(refused),
        };
        match slots {
            Ok(slots) => {
                let deadline = self.deadline_of(bid.first_ready_at());
                life.starts(Started { held, deadline });
                Some(Attempt::new(self.owned(), AttemptStart { held, slots, bid, granted_at: now }))
            }
            Err(error) => {
                self.refuse_bid(life, bid, *error);
                self.engine().admission.finish(held, now);
                None
            }
        }
    }

    /// Why a call must not start now, if its events cannot be written, or there is no room for results.
    #[inline(always)]
    pub(super) fn may_not_start(self) -> Option<Box<CallError>> {
        match self.unrecorded() {
            None => self.batch.no_room(),
            refused => refused,
        }
    }

    /// Takes the breaker slots of an attempt that has its permits.
    #[inline(always)]
    pub(crate) fn slots(self, now: Instant) -> Result<Slots, Box<CallError>> {
        match self.work().entry.guard().pass(self.sandbox_breaker()) {
            Some(slots) => Ok(slots),
            None => self.ask_breakers(now),
        }
    }

    #[cold]
    fn ask_breakers(self, now: Instant) -> Result<Slots, Box<CallError>> {
        let entry = &self.work().entry;
        let timeout = self.call().timeout.map_or_else(|| entry.attempt_timeout(), CallTimeout::duration);
        let (slots, moves) = entry.guard().admit(entry.name(), self.sandbox_breaker(), || now, timeout);
        self.engine().emit_transitions(entry, &moves);
        slots.map_err(Box::new)
    }
}

impl rate::Waiter for BatchState {
    fn token_granted(self: Arc<Self>, index: u32) {
        let call = self.at(index);
        let allowed = call.may_still_run();
        let mut life = call.slot().life();
        let Some(bid) = life.token_granted() else { return };
        let now = call.engine().clock.now();
        if let Err(error) = allowed.and_then(|()| call.recheck(now, bid.first_ready_at())) {
            call.refuse_bid(life, bid, *error);
        } else if let Some(attempt) = call.take_permits(life, bid, now) {
            attempt.spawn();
        }
    }

    fn token_refused(&self, index: u32, retry_after: Duration) {
        let waits = self.at(index).slot().life().is_in_line();
        if waits {
            self.at(index).refuse(|| Refusal::RateLimited { retry_after }.error());
        }
    }

    fn loses_queue(&self, index: u32) {
        self.at(index).refuse(|| vanished_error(0));
    }
}
