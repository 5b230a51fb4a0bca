//! A flight as a pure machine: which call it runs in, who waits for it, and who becomes quiescent with it. It knows no
//! lock, clock or task; `C` stands for a call.
//!
//! ```text
//!   Led ◄──── passed on ────┐
//!    │ its call leaves,     │ its call ends before an attempt, or between two:
//!    ▼ others wait          │ the oldest follower leads
//!   Detached ───────────────┤
//!    │ result               └─► Over, if none waits
//!    ▼
//!   Landed ── every follower has the result ──► Shared ── its handler is quiescent ──► Over
//! ```
//!
//! A flight that nobody has joined goes from Led to Over in one step, when its handler is quiescent with its call.

#[cfg(test)]
mod tests;

use crate::call::nested::Report;
use std::collections::VecDeque;
use tokio::time::Instant;

/// How far a flight has come.
enum Stage<C> {
    /// It runs in the slot of this call, which waits for the result too.
    Led(C),
    /// This call has ended with a result of its own; its handler goes on for the others.
    Detached(C),
    /// It has its result, which its followers are being given: no call joins any more. What its handler has reached
    /// meanwhile waits for that.
    Landed(C),
    /// All its callers have the result, and reach what its handler reaches.
    Shared(C),
    /// It runs in no call any more.
    Over,
}

/// A flight and its callers.
pub(super) struct Machine<C> {
    stage: Stage<C>,
    /// The calls that wait for the result, oldest first.
    followers: VecDeque<C>,
    /// Calls that have ended and become quiescent together with it (V2).
    ended: Vec<C>,
    /// How often its handler was started.
    attempts: u32,
    /// The latest of its callers' deadlines; `None` when one of them has none.
    deadline: Option<Instant>,
    /// What its handler reached before its callers all had the result.
    early: Option<Report>,
}

/// What becomes of a caller that leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PassedOn<C> {
    /// This call takes over.
    To(C),
    /// No call waits: it is over.
    ToNobody,
    /// It had been passed on before.
    Already,
}

impl<C: Clone> Machine<C> {
    /// A flight that this call leads, whose deadline it has.
    pub(super) fn led_by(call: C, deadline: Option<Instant>) -> Self {
        Self {
            stage: Stage::Led(call),
            followers: VecDeque::new(),
            ended: Vec::new(),
            attempts: 0,
            deadline,
            early: None,
        }
    }

    /// The call in whose slot it runs; `None` when it is over.
    #[inline]
    pub(super) fn runs_in(&self) -> Option<&C> {
        match &self.stage {
            Stage::Led(call) | Stage::Detached(call) | Stage::Landed(call) | Stage::Shared(call) => {
                Some(call)
            }
            Stage::Over => None,
        }
    }

    pub(super) fn attempts(&self) -> u32 {
        self.attempts
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Adds a follower; `false` if it has its result or is over, and its key must be reserved anew.
    pub(super) fn join(&mut self, call: C, deadline: Option<Instant>) -> bool {
        let is_open = matches!(self.stage, Stage::Led(_) | Stage::Detached(_));
        if is_open {
            self.deadline = self.deadline.zip(deadline).map(|(one, other)| one.max(other));
            self.followers.push_back(call);
        }
        is_open
    }

    /// Counts an attempt that starts.
    pub(super) fn started(&mut self) {
        self.attempts += 1;
    }

    /// Removes a caller that no longer waits. With `may_stay`, a follower stays if it is the last call for which the
    /// handler runs.
    pub(super) fn leave(&mut self, is_me: impl Fn(&C) -> bool, may_stay: bool) -> Leaving {
        let Some(at) = self.followers.iter().position(&is_me) else {
            // Either it is about to take over, and whoever hands the flight over will see that it has left; or the
            // result is on its way to it.
            return match self.attempts {
                _ if !self.runs_in().is_some_and(is_me) => Leaving::ResultComing,
                0 => Leaving::Unstarted,
                attempts => Leaving::EndsWithFlight { attempts },
            };
        };
        if may_stay && self.followers.len() == 1 && matches!(self.stage, Stage::Detached(_)) {
            return Leaving::Stays;
        }
        let left = self.followers.remove(at);
        if self.attempts == 0 {
            return Leaving::Unstarted;
        }
        self.ended.extend(left);
        Leaving::EndsWithFlight { attempts: self.attempts }
    }

    /// Whether its handler runs and no call waits for the result any more.
    pub(super) fn is_deserted(&self) -> bool {
        matches!(self.stage, Stage::Detached(_)) && self.followers.is_empty()
    }

    /// Detaches the call that runs it. Returns `false` if no other call waits: then the flight ends with its call.
    pub(super) fn detach(&mut self) -> bool {
        if self.followers.is_empty() {
            return false;
        }
        self.stage = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Led(call) => Stage::Detached(call),
            other => other,
        };
        true
    }

    /// Whether something has run for it, in this life of the engine.
    pub(super) fn has_run(&self) -> bool {
        self.attempts > 0
    }

    /// Passes it from the call that ran it, and has ended, to its oldest follower. If that call waits for the rest of
    /// the flight, and something has run for it, it becomes quiescent with the flight.
    pub(super) fn pass_on(&mut self, is_me: impl Fn(&C) -> bool, waits: bool) -> PassedOn<C> {
        // A call that ends while it takes over is passed on twice, by its end and by whoever hands it the flight: the
        // first one counts.
        let Some(before) = self.runs_in().filter(|call| is_me(call)).cloned() else {
            return PassedOn::Already;
        };
        let Some(next) = self.followers.pop_front() else {
            self.stage = Stage::Over;
            return PassedOn::ToNobody;
        };
        if waits && self.has_run() {
            self.ended.push(before);
        }
        self.stage = Stage::Led(next.clone());
        PassedOn::To(next)
    }

    /// Puts a call back that was to take over and has not: it waits as before, first of all.
    pub(super) fn take_back(&mut self, call: C) {
        self.followers.push_front(call);
    }

    /// It has its result; returns the calls that wait for it.
    pub(super) fn land(&mut self) -> VecDeque<C> {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Led(call) | Stage::Detached(call) => Stage::Landed(call),
            other => other,
        };
        std::mem::take(&mut self.followers)
    }

    /// Is over with its result if nobody shares that: no call waits, and none has left before. Its own call is then as
    /// one without a flight. Returns `false` if it is to [land](Self::land).
    pub(super) fn ends_alone(&mut self) -> bool {
        let is_led = matches!(self.stage, Stage::Led(_)) && self.early.is_none();
        let alone = is_led && self.followers.is_empty() && self.ended.is_empty();
        if alone {
            self.stage = Stage::Over;
        }
        alone
    }

    /// Adds a call that has ended and becomes quiescent with it.
    pub(super) fn add_ended(&mut self, call: C) {
        self.ended.push(call);
    }

    /// All followers have the result. Returns the calls that reach with it what its handler has reached before, if
    /// anything, and what that is.
    pub(super) fn shared(&mut self) -> Option<(Vec<C>, Report)> {
        self.stage = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Over => Stage::Over,
            Stage::Led(call) | Stage::Detached(call) | Stage::Landed(call) | Stage::Shared(call) => {
                Stage::Shared(call)
            }
        };
        let early = self.early.take()?;
        Some((self.ended_for(early), early))
    }

    /// Its handler has reached this; returns the calls that reach it with the handler. Before all followers have the
    /// result this is deferred to [`shared`](Self::shared): the handler may become quiescent while its own end is
    /// still to be written.
    pub(super) fn reach(&mut self, report: Report) -> Vec<C> {
        if matches!(self.stage, Stage::Shared(_) | Stage::Over) {
            return self.ended_for(report);
        }
        // That it was listed has not been reported, so this is plain quiescence.
        self.early = Some(if report == Report::ListedQuiescent { Report::Quiescent } else { report });
        Vec::new()
    }

    /// It is over without a result; returns the calls that become quiescent with it.
    pub(super) fn abandon(&mut self) -> Vec<C> {
        self.ended_for(Report::Quiescent)
    }

    fn ended_for(&mut self, report: Report) -> Vec<C> {
        if report == Report::Listed {
            return self.ended.clone();
        }
        self.stage = Stage::Over;
        std::mem::take(&mut self.ended)
    }
}
