//! A keyed call in flight, and the calls that share its result (ID-3, ID-4).
//!
//! ```text
//!   lead ──► queued ──► running ──► result ──► to the call that ran it, then to its followers
//!     │         │          │ its call leaves, others wait: it is detached, its handler goes on for them
//!     │         └ its call leaves: the oldest follower takes over
//!     │                    └ the last caller leaves: the handler is told to stop
//!     └ followers join, with no permit, token or budget of their own
//! ```
//!
//! The leading call runs in its own slot. Its followers are attached to the flight, which also keeps the handler from
//! being stopped by one caller of several. What a flight goes through is a pure machine (`machine.rs`); around it are
//! the ways in (`join.rs`), the ways out (`leave.rs`, `pass_on.rs`), and its result (`land.rs`).

mod join;
mod land;
mod leave;
mod machine;
mod pass_on;

use crate::call::{
    in_flight::{CallRef, InFlight},
    nested::Report,
};
use machine::Machine;
use parking_lot::{Mutex, MutexGuard};
use std::{collections::VecDeque, sync::Arc};
use tokio::time::Instant;

/// A keyed call in flight.
pub(crate) struct Flight(Mutex<Machine<CallRef>>);

impl Flight {
    /// A flight led by this call, whose deadline it takes over.
    fn led_by(call: CallRef, deadline: Option<Instant>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Machine::led_by(call, deadline))))
    }

    fn machine(&self) -> MutexGuard<'_, Machine<CallRef>> {
        // Every move of the machine is whole wherever it could unwind.
        self.0.lock()
    }

    /// The call in whose slot it runs; `None` when it is over.
    fn runs_in(&self) -> Option<CallRef> {
        self.machine().runs_in().cloned()
    }

    /// Whether it runs in this slot.
    #[inline]
    fn is_run_by(&self, me: InFlight<'_>) -> bool {
        self.machine().runs_in().is_some_and(|call| me.is(call))
    }

    /// Whether its handler has been started.
    fn has_started(&self) -> bool {
        self.machine().attempts() > 0
    }

    /// The instant by which it must have ended (ID-4). Each caller ends at its own deadline, and the flight with the
    /// last of them.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.machine().deadline()
    }

    /// Counts an attempt that starts.
    pub(crate) fn started(&self) {
        self.machine().started();
    }

    /// Its callers have their result, and reach what its handler reaches.
    fn mark_shared(&self) {
        let shared = self.machine().shared();
        if let Some((ended, report)) = shared {
            report_all(&ended, report);
        }
    }

    /// It is over without a result: the calls that ended with it are quiescent.
    fn abandon(&self) {
        let ended = self.machine().abandon();
        report_all(&ended, Report::Quiescent);
    }

    /// Is over if only its own call shares its result, which it has now, and is quiescent with that; `false` if it is to
    /// land.
    pub(super) fn ends_alone(&self) -> bool {
        self.machine().ends_alone()
    }

    /// Takes the calls that wait for its result, which it has now.
    fn land(&self) -> VecDeque<CallRef> {
        self.machine().land()
    }
}

fn report_all(ended: &[CallRef], report: Report) {
    ended.iter().for_each(|call| call.at().report_up(report));
}

impl<'a> InFlight<'a> {
    /// The flight that runs in this call's slot, if any.
    #[inline(always)]
    pub(crate) fn flight_run_by(self) -> Option<&'a Arc<Flight>> {
        self.flight().filter(|flight| flight.is_run_by(self))
    }

    /// The flight for which this call's attempt runs, if any. A call of a flight has an attempt only while the flight
    /// runs in its slot, so this need not ask the flight.
    #[inline(always)]
    pub(crate) fn flight_of_attempt(self) -> Option<&'a Arc<Flight>> {
        let flight = self.flight();
        debug_assert!(
            flight.is_none_or(|flight| flight.is_run_by(self)),
            "an attempt runs for its own flight"
        );
        flight
    }

    /// The flight that this call leads or has joined, if any.
    #[inline]
    pub(crate) fn flight(self) -> Option<&'a Arc<Flight>> {
        self.slot().flight()
    }

    /// Whether a call has joined a flight whose handler has started: a drain waits for it as for a running call.
    pub(crate) fn follows_running_flight(self) -> bool {
        self.slot().life().following().is_some() && self.flight().is_some_and(|flight| flight.has_started())
    }

    /// Adds the calls that become quiescent with the flight in this call's slot: they reach what it has reached.
    pub(crate) fn collect_with_flight(self, report: Report, pending: &mut Vec<(CallRef, Report)>) {
        let Some(flight) = self.flight_run_by() else { return };
        let reached = flight.machine().reach(report);
        pending.extend(reached.into_iter().map(|call| (call, report)));
    }
}
