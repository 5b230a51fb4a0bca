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
//! being stopped by one caller of several.

use super::in_flight::InFlight;
use super::nested::{CallRef, Report};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::time::Instant;

struct State {
    /// The call in whose slot it runs; `None` when it is over.
    runs_in: Option<CallRef>,
    /// The calls that wait for the result, oldest first.
    followers: VecDeque<CallRef>,
    /// Calls that have ended and become quiescent together with it (V2).
    ended: Vec<CallRef>,
    /// How often the handler was started.
    attempts: u32,
    /// The latest of its callers' deadlines; `None` when one of them has none.
    deadline: Option<Instant>,
    /// The call that runs it has ended with a result of its own.
    detached: bool,
    /// It has its result: no call joins any more.
    finished: bool,
    /// All followers have the result and are in `ended`.
    shared: bool,
    /// What it reached before it was `shared`.
    reached: Option<Report>,
}

/// A keyed call in flight.
pub(crate) struct Flight {
    state: Mutex<State>,
}

/// What becomes of a caller that leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Leaving {
    /// It ends now, and nothing has run for it.
    Unstarted,
    /// It ends now and becomes quiescent with the flight, whose handler was started this often.
    EndsWithFlight { attempts: u32 },
    /// It is the last one and the handler runs: it stays for the handler's result.
    Stays,
    /// The result is on its way to it.
    ResultComing,
}

/// What becomes of a flight when the call that ran it has ended.
pub(crate) enum PassedOn {
    /// This call takes over.
    To(CallRef),
    /// No call waits: it is over.
    ToNobody,
    /// It had been passed on before.
    Already,
}

impl Flight {
    /// A flight led by this call, whose deadline it takes over.
    pub(crate) fn led_by(call: CallRef, deadline: Option<Instant>) -> Arc<Self> {
        let state = State {
            runs_in: Some(call),
            followers: VecDeque::new(),
            ended: Vec::new(),
            attempts: 0,
            deadline,
            detached: false,
            finished: false,
            shared: false,
            reached: None,
        };
        Arc::new(Self { state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call in whose slot it runs; `None` when it is over.
    pub(crate) fn runs_in(&self) -> Option<CallRef> {
        self.state().runs_in.clone()
    }

    /// Whether it runs in this slot.
    pub(crate) fn is_run_by(&self, me: InFlight<'_>) -> bool {
        self.state().runs_in.as_ref().is_some_and(|call| me.is(call))
    }

    /// Whether its handler has been started.
    pub(crate) fn has_started(&self) -> bool {
        self.state().attempts > 0
    }

    /// Adds a follower; `false` if the flight is over and its key must be reserved anew.
    pub(crate) fn join(&self, call: CallRef, deadline: Option<Instant>) -> bool {
        let mut state = self.state();
        let is_open = state.runs_in.is_some() && !state.finished;
        if is_open {
            state.deadline = state.deadline.zip(deadline).map(|(one, other)| one.max(other));
            state.followers.push_back(call);
        }
        is_open
    }

    /// The instant by which it must have ended (ID-4). Each caller ends at its own deadline, and the flight with the
    /// last of them.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.state().deadline
    }

    /// Counts an attempt that starts.
    pub(crate) fn started(&self) {
        self.state().attempts += 1;
    }

    /// Removes a follower that no longer waits. With `may_stay`, it stays if it is the last call for which the
    /// handler runs.
    pub(crate) fn leave(&self, me: InFlight<'_>, may_stay: bool) -> Leaving {
        let mut state = self.state();
        let Some(at) = state.followers.iter().position(|call| me.is(call)) else {
            // Either it is about to take over, and the `HandOver` will see that it has left; or the result is on its
            // way to it.
            let takes_over = state.runs_in.as_ref().is_some_and(|call| me.is(call));
            return match state.attempts {
                _ if !takes_over => Leaving::ResultComing,
                0 => Leaving::Unstarted,
                attempts => Leaving::EndsWithFlight { attempts },
            };
        };
        if may_stay && state.detached && state.followers.len() == 1 {
            return Leaving::Stays;
        }
        let left = state.followers.remove(at);
        if state.attempts == 0 {
            return Leaving::Unstarted;
        }
        state.ended.extend(left);
        Leaving::EndsWithFlight { attempts: state.attempts }
    }

    /// Whether no call waits for its result any more.
    pub(crate) fn is_deserted(&self) -> bool {
        let state = self.state();
        state.detached && state.followers.is_empty()
    }

    /// Detaches the call that runs it. Returns `false` if no other call waits: then the flight ends with its call.
    pub(crate) fn detach(&self) -> bool {
        let mut state = self.state();
        let others = !state.followers.is_empty();
        state.detached |= others;
        others
    }

    /// Passes the flight from the call that ran it, and has ended, to the oldest follower. If the call waits and
    /// something has run for it, it becomes quiescent with the flight.
    pub(crate) fn pass_on(&self, me: InFlight<'_>, waits: bool) -> PassedOn {
        let mut state = self.state();
        // A call that ends while it takes over is passed on twice, by its end and by its `HandOver`: the first one
        // counts.
        let Some(before) = state.runs_in.take_if(|call| me.is(call)) else {
            return PassedOn::Already;
        };
        state.runs_in = state.followers.pop_front();
        state.detached = false;
        if waits && state.attempts > 0 && state.runs_in.is_some() {
            state.ended.push(before);
        }
        state.runs_in.clone().map_or(PassedOn::ToNobody, PassedOn::To)
    }

    /// Puts a call back that was to take over and has not: it waits as before, first of all.
    pub(crate) fn take_back(&self, call: CallRef) {
        self.state().followers.push_front(call);
    }

    /// Notes that it has its result; returns the calls that wait for it.
    pub(crate) fn finish(&self) -> VecDeque<CallRef> {
        let mut state = self.state();
        state.finished = true;
        std::mem::take(&mut state.followers)
    }

    /// Adds a call that has ended and becomes quiescent with the flight.
    pub(crate) fn add_ended(&self, call: CallRef) {
        self.state().ended.push(call);
    }

    /// Notes that all followers have the result. Returns the calls that become quiescent with it, and what it reached
    /// before, if anything.
    pub(crate) fn mark_shared(&self) -> Option<(Vec<CallRef>, Report)> {
        let mut state = self.state();
        state.shared = true;
        let reached = state.reached.take()?;
        Some((state.ended_for(reached), reached))
    }

    /// Notes what it has reached; returns the calls that reach it together with it. Before all followers have the
    /// result this is deferred to [`Self::mark_shared`]: the handler may become quiescent while its own end is
    /// still to be written.
    pub(crate) fn reach(&self, report: Report) -> Vec<CallRef> {
        let mut state = self.state();
        if state.shared {
            return state.ended_for(report);
        }
        // That it was listed has not been reported, so this is plain quiescence.
        state.reached = Some(if report == Report::ListedQuiescent { Report::Quiescent } else { report });
        Vec::new()
    }

    /// It is over without a result; returns the calls that become quiescent with it.
    pub(crate) fn is_over(&self) -> Vec<CallRef> {
        self.state().ended_for(Report::Quiescent)
    }
}

impl State {
    fn ended_for(&mut self, report: Report) -> Vec<CallRef> {
        if report == Report::Listed {
            return self.ended.clone();
        }
        self.runs_in = None;
        std::mem::take(&mut self.ended)
    }
}
