//! What a handler holds, lends and gets back while calls of its own are in flight (CC-6, CC-7).
//!
//! ```text
//!             a dispatch        the last one has settled        all is free, it is the top
//!   Held ─────────────────► Parked ───────────────────► Resuming ────────────────────────► Held
//!                             ▲                           │ │ 30 s behind zombies
//!                             └──── another dispatch ─────┘ └─────► Starved (CC-6c)
//!   any of them ── the handler is over ──► Over ── all under it quiescent ──► its entry leaves the lease
//! ```
//!
//! Created when a call dispatches for the first time; most calls never do. Grants that follow from a change are
//! started after its lock is released, because they may resume another handler.

mod dispatches;
mod reports;
mod state;
mod units;
mod waits;

use crate::call::in_flight::CallRef;
use futures::task::AtomicWaker;
use parking_lot::{Mutex, MutexGuard};
use state::{HandlerState, Units};
use std::{collections::BTreeMap, task::Waker, time::Duration};
use tokio::sync::Notify;
use toolyard_admission::Held;

/// A handler's own calls, and what it holds.
pub(crate) struct Parking {
    held: Held,
    state: Mutex<HandlerState>,
    /// Notifies dispatches that wait for the handler's units.
    changed: Notify,
    /// The attempt's task, woken when its clock stops or starts.
    attempt: AtomicWaker,
}

/// The attempt's clock (V3).
pub(crate) enum Clock {
    /// It runs, and has stood still for this long in all.
    Runs(Duration),
    /// The handler is parked or waits to resume.
    Stands,
    /// The handler cannot resume and its call is to end (CC-6c).
    Starved,
}

impl Parking {
    pub(crate) fn new(held: Held) -> Self {
        let state = HandlerState {
            units: Units::Held,
            children: BTreeMap::new(),
            entered: 0,
            unsettled: 0,
            parked_at: None,
            parked_for: Duration::ZERO,
            stopped: false,
            reported: None,
        };
        Self { held, state: Mutex::new(state), changed: Notify::new(), attempt: AtomicWaker::new() }
    }

    fn state(&self) -> MutexGuard<'_, HandlerState> {
        self.state.lock()
    }

    fn notify(&self) {
        self.changed.notify_waiters();
        self.attempt.wake();
    }

    /// The state of the attempt's clock; `waker` is woken when it changes.
    pub(crate) fn clock(&self, waker: &Waker) -> Clock {
        self.attempt.register(waker);
        let state = self.state();
        match state.units {
            Units::Held | Units::Over => Clock::Runs(state.parked_for),
            Units::Parked | Units::Resuming(..) => Clock::Stands,
            Units::Starved => Clock::Starved,
        }
    }
}

impl CallRef {
    fn parking(&self) -> &Parking {
        self.at().known_parking()
    }
}
