//! A keyed call in the air, and the calls that share its result (ID-3, ID-4).
//!
//! ```text
//!   lead ──► queued ──► running ──► result ──► to the call that ran it, then to those who joined
//!     │         │          │ it leaves, others wait: detached, its handler goes on for them
//!     │         └ it leaves: the oldest of the others takes over
//!     │                    └ the last one leaves: the handler is told to stop
//!     └ others join, with no permit, token or budget of their own
//! ```
//!
//! The call that leads runs in its own slot; this is what the others hang on, and what keeps its handler from being
//! stopped by one caller of several.

use super::state::BatchState;
use crate::{
    keys::Fingerprint,
    nesting::{CallRef, Up},
};
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::time::Instant;
use toolyard_core::{CallError, Sandbox, ToolOutput};

/// What a tree knows a call by: the key it came with, and what that stands for (ID-1, ID-2).
pub(crate) struct KeyOf {
    pub(crate) key: Arc<str>,
    pub(crate) fingerprint: Fingerprint,
}

/// A result that is kept for whoever comes with its key (ID-6).
#[derive(Debug)]
pub(crate) struct KeptResult {
    pub(super) status: Result<ToolOutput, Box<CallError>>,
    pub(super) attempts: u32,
    pub(super) sandbox: Sandbox,
}

struct State {
    /// The call in whose slot it runs; `None` when it is over.
    runs_in: Option<CallRef>,
    /// Who waits for the result, the oldest first.
    followers: VecDeque<CallRef>,
    /// Calls that have ended and are quiescent when it is (V2).
    resting: Vec<CallRef>,
    /// How often the handler was started.
    attempts: u32,
    /// The latest of its callers' deadlines; `None` when one of them has none.
    deadline: Option<Instant>,
    /// The call that runs it has its own result already.
    detached: bool,
    /// It has its result: nobody joins any more.
    landed: bool,
    /// Everybody has it, and rests with the flight.
    shared: bool,
    /// What it came to in the meantime.
    came: Option<Up>,
}

/// A keyed call in the air.
pub(crate) struct Flight {
    state: Mutex<State>,
}

/// What a caller that leaves is to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Leaving {
    /// It ends now, and nothing has run for it.
    Unstarted,
    /// It ends now and is quiescent when the flight is, whose handler was started so often.
    Rests { attempts: u32 },
    /// It is the last one and the handler runs: it stays for what comes of that.
    Stays,
    /// The result is on its way to it.
    Lands,
}

/// What has become of a flight whose call ended that ran it.
pub(super) enum Passed {
    /// This call takes over.
    To(CallRef),
    /// Nobody waits: it is over.
    ToNobody,
    /// It had been passed on before.
    Before,
}

impl Flight {
    /// One that this call leads, which has to have ended by then.
    pub(super) fn led_by(call: CallRef, deadline: Option<Instant>) -> Arc<Self> {
        let state = State {
            runs_in: Some(call),
            followers: VecDeque::new(),
            resting: Vec::new(),
            attempts: 0,
            deadline,
            detached: false,
            landed: false,
            shared: false,
            came: None,
        };
        Arc::new(Self { state: Mutex::new(state) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The call in whose slot it runs; `None` when it is over.
    pub(super) fn runs_in(&self) -> Option<CallRef> {
        self.state().runs_in.clone()
    }

    /// Whether it runs in this slot.
    pub(super) fn is_run_by(&self, batch: &BatchState, index: u32) -> bool {
        self.state().runs_in.as_ref().is_some_and(|call| call.is(batch, index))
    }

    /// Whether its handler has been started.
    pub(super) fn has_started(&self) -> bool {
        self.state().attempts > 0
    }

    /// Hangs a call on; `false` when it is over and its key is to be asked for anew.
    pub(super) fn join(&self, call: CallRef, deadline: Option<Instant>) -> bool {
        let mut state = self.state();
        let is_open = state.runs_in.is_some() && !state.landed;
        if is_open {
            state.deadline = state.deadline.zip(deadline).map(|(one, other)| one.max(other));
            state.followers.push_back(call);
        }
        is_open
    }

    /// When it has to have ended (ID-4): each of its callers ends by itself, and it with the last of them.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.state().deadline
    }

    /// An attempt starts.
    pub(crate) fn started(&self) {
        self.state().attempts += 1;
    }

    /// One that joined does not wait any more. `may_stay`: unless it is the last one for whom the handler runs.
    pub(super) fn leave(&self, batch: &BatchState, index: u32, may_stay: bool) -> Leaving {
        let mut state = self.state();
        let Some(at) = state.followers.iter().position(|call| call.is(batch, index)) else {
            // It is to take over, and whoever is about to tell it will see that it has gone; or all is over.
            let takes_over = state.runs_in.as_ref().is_some_and(|call| call.is(batch, index));
            return match state.attempts {
                _ if !takes_over => Leaving::Lands,
                0 => Leaving::Unstarted,
                attempts => Leaving::Rests { attempts },
            };
        };
        if may_stay && state.detached && state.followers.len() == 1 {
            return Leaving::Stays;
        }
        let left = state.followers.remove(at);
        if state.attempts == 0 {
            return Leaving::Unstarted;
        }
        state.resting.extend(left);
        Leaving::Rests { attempts: state.attempts }
    }

    /// Whether nobody waits for it whose result is not written.
    pub(super) fn is_deserted(&self) -> bool {
        let state = self.state();
        state.detached && state.followers.is_empty()
    }

    /// The call that runs it does not wait for the result any more. `false`: nobody else does, so the flight ends with
    /// it.
    pub(super) fn detach(&self) -> bool {
        let mut state = self.state();
        let others = !state.followers.is_empty();
        state.detached |= others;
        others
    }

    /// The oldest of those who wait takes over from the call that ran it and has ended.
    pub(super) fn pass_on(&self, batch: &BatchState, index: u32) -> Passed {
        let mut state = self.state();
        // One that ended on its way to take over is passed on by itself and by what brought it there: by the first.
        let Some(before) = state.runs_in.take_if(|call| call.is(batch, index)) else { return Passed::Before };
        state.runs_in = state.followers.pop_front();
        state.detached = false;
        if state.attempts > 0 && state.runs_in.is_some() {
            state.resting.push(before);
        }
        state.runs_in.clone().map_or(Passed::ToNobody, Passed::To)
    }

    /// The call that was to take it over has not: it waits as before, the first of all.
    pub(super) fn take_back(&self, call: CallRef) {
        self.state().followers.push_front(call);
    }

    /// It has its result: who waits for that.
    pub(super) fn land(&self) -> VecDeque<CallRef> {
        let mut state = self.state();
        state.landed = true;
        std::mem::take(&mut state.followers)
    }

    /// A call has ended and rests with it.
    pub(super) fn rests_with(&self, call: CallRef) {
        self.state().resting.push(call);
    }

    /// All who joined have its result. Who rests with it by now, and what it came to before, if it came to anything.
    pub(super) fn has_been_shared(&self) -> Option<(Vec<CallRef>, Up)> {
        let mut state = self.state();
        state.shared = true;
        let came = state.came.take()?;
        Some((state.resting(came), came))
    }

    /// What it has come to: who rests with it and is to be told so. As long as not everybody has its result that is
    /// told later: what it runs may come to rest while its own end is still to be written.
    pub(super) fn comes_to(&self, up: Up) -> Vec<CallRef> {
        let mut state = self.state();
        if state.shared {
            return state.resting(up);
        }
        // Nobody has been told that it is listed.
        state.came = Some(if up == Up::ListedRests { Up::Quiescent } else { up });
        Vec::new()
    }

    /// It is over without a result. Those who rest with it.
    pub(super) fn is_over(&self) -> Vec<CallRef> {
        self.state().resting(Up::Quiescent)
    }
}

impl State {
    fn resting(&mut self, up: Up) -> Vec<CallRef> {
        if up == Up::Listed {
            return self.resting.clone();
        }
        self.runs_in = None;
        std::mem::take(&mut self.resting)
    }
}
