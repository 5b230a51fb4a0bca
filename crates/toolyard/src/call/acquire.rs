//! Acquires what an attempt needs, step by step: budget, rate token, permits, breaker slots (V1).
//!
//! ```text
//!   budget ──► rate token ──► permits, all at once ──► breaker slots ──► attempt
//!     │            │ none: in the tool's line │ none: queued    │
//!     └────────────┴──── the call ends ───────┴─────────────────┘
//! ```
//!
//! Whatever a call waits for, it holds nothing but its budget reservation (CC-5). A further attempt starts at the
//! rate token.

use super::attempt::{Attempt, AttemptStart};
use super::batch::{BatchState, vanished};
use super::in_flight::InFlight;
use super::progress::Bid;
use super::ready::refused;
use super::slot::{Delayed, Phase, Started};
use crate::{
    admission::{Admitted, Held, Need},
    tool::{Slots, TakeResult, TooLong, rate},
};
use std::{
    sync::{Arc, MutexGuard},
    time::Duration,
};
use tokio::time::Instant;
use toolyard_core::{CallError, CallTimeout, ErrorKind, wording};

impl InFlight<'_> {
    /// Takes a rate token and then permits; returns the attempt if both are available now. The caller has just
    /// [rechecked](Self::recheck) the call, and its phase says that it waits for nothing else.
    #[inline(always)]
    pub(crate) fn acquire(self, mut phase: MutexGuard<'_, Phase>, bid: Bid, now: Instant) -> Option<Attempt> {
        let guard = self.work().entry.guard();
        match guard.line.take(now) {
            TakeResult::Now => return self.take_permits(phase, bid, now),
            TakeResult::Wait => {}
        }
        match guard.line.enqueue(now, rate::Place { waiter: self.shared_batch(), index: self.index }) {
            Ok(ticket) => {
                self.set_wait_alarms(&bid);
                *phase = Phase::Delayed(Delayed::Rate { ticket, bid });
                drop(phase);
                guard.line_changed(&self.engine().tasks, self.engine().clock);
            }
            Err(TooLong { retry_after }) => self.end_with(phase, bid, too_many(retry_after)),
        }
        None
    }

    #[inline(always)]
    fn take_permits(self, phase: MutexGuard<'_, Phase>, bid: Bid, now: Instant) -> Option<Attempt> {
        let work = self.work();
        let (need, resized) = self.session().need(&work.entry, work.class);
        let attempt = self.take_units(phase, bid, need, now);
        if let Some(resized) = resized {
            resized.start(); // the call's own phase is unlocked: the policy is asked about those that start
        }
        attempt
    }

    #[inline(always)]
    fn take_units(
        self,
        mut phase: MutexGuard<'_, Phase>,
        bid: Bid,
        need: Need,
        now: Instant,
    ) -> Option<Attempt> {
        let engine = &self.engine();
        // The phase stays locked until it has the ticket: another thread that grants it at once waits for that.
        let ask = self.batch.ask_for(need);
        match engine.admission.admit(&ask, now, self) {
            Ok(Admitted::Now(held)) => self.start_with(phase, bid, held, now),
            Ok(Admitted::InPlaceOf(held, ended)) => {
                let attempt = self.start_in_place_of(phase, bid, held, now);
                ended.start(); // the call's own phase is unlocked, whoever learns of their end
                attempt
            }
            Ok(Admitted::Waiting { ticket, behind_zombies }) => {
                self.set_wait_alarms(&bid);
                *phase = Phase::Queued { ticket, bid };
                if behind_zombies {
                    self.expire_later(ticket);
                }
                None
            }
            Err(refusal) => {
                self.end_with(phase, bid, refused(refusal));
                None
            }
        }
    }

    #[cold]
    fn start_in_place_of(
        self,
        phase: MutexGuard<'_, Phase>,
        bid: Bid,
        held: Held,
        now: Instant,
    ) -> Option<Attempt> {
        self.start_with(phase, bid, held, now)
    }

    /// Makes the attempt of a call that has its permits, if its events can be written and the breakers admit it.
    #[inline(always)]
    fn start_with(
        self,
        mut phase: MutexGuard<'_, Phase>,
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
                *phase = Phase::Started(Started { held, deadline }.into());
                Some(Attempt::new(self.owned(), AttemptStart { held, slots, bid, granted_at: now }))
            }
            Err(error) => {
                self.end_with(phase, bid, *error);
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
        match self.work().entry.guard().pass() {
            Some(slots) => Ok(slots),
            None => self.ask_breakers(now),
        }
    }

    #[cold]
    fn ask_breakers(self, now: Instant) -> Result<Slots, Box<CallError>> {
        let entry = &self.work().entry;
        let timeout = self.call().timeout.map_or_else(|| entry.attempt_timeout(), CallTimeout::duration);
        let (slots, moves) = entry.guard().admit(entry.name(), || now, timeout);
        self.engine().emit_transitions(entry, &moves);
        slots.map_err(Box::new)
    }
}

impl rate::Waiter for BatchState {
    fn has_token(self: Arc<Self>, index: u32) {
        let call = self.at(index);
        let allowed = call.may_still_run();
        let mut phase = call.slot().phase();
        match std::mem::replace(&mut *phase, Phase::Waiting) {
            Phase::Delayed(Delayed::Rate { bid, .. }) => {
                let now = call.engine().clock.now();
                if let Err(error) = allowed.and_then(|()| call.recheck(now, bid.first_ready_at())) {
                    call.end_with(phase, bid, *error);
                } else if let Some(attempt) = call.take_permits(phase, bid, now) {
                    attempt.spawn();
                }
            }
            other => *phase = other,
        }
    }

    fn has_no_token(&self, index: u32, retry_after: Duration) {
        let waits = matches!(*self.at(index).slot().phase(), Phase::Delayed(Delayed::Rate { .. }));
        if waits {
            self.at(index).end_unstarted(|| too_many(retry_after));
        }
    }

    fn end_in_lost_line(&self, index: u32) {
        self.at(index).end_unstarted(|| vanished(0));
    }
}

/// The error of a call that exceeds the rate limit of its tool.
fn too_many(retry_after: Duration) -> CallError {
    let span = wording::Span(retry_after);
    let message = format!("the tool's rate limit is reached; try again in {span}");
    let mut error = CallError::new(ErrorKind::RateLimited, message);
    error.retry_after = Some(retry_after);
    error
}
