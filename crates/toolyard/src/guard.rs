//! What stands before a tool to spare it: its breakers, its retries, its handlers that do not stop. One for all sessions
//! and forks (CB-9, RT-5).
//!
//! ```text
//!   gate, begin of the run ──► peek            open, or too many zombies: circuit_open
//!   permits ─────────────────► admit ─► Slots  the same, and one probe at a time
//!   end of the attempt ──────► record          what the breakers count
//! ```

mod pace;

use crate::{
    breaker::{OpenFor, SharedBreaker, Slot, Transition},
    nesting::CallRef,
    rate::{self, RateLine},
    retry::Bucket,
};
use dashmap::DashMap;
use foldhash::fast::RandomState;
use smallvec::SmallVec;
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::{sync::Notify, time::Instant};
use toolyard_core::{
    BreakerPolicy, CallError, ErrorKind, Rate, Reason, RetryPolicy, ToolSpec, error::BreakerVerdict, wording,
};

/// How many handlers of a tool may run on after they were given up before the engine starts no more (SC-6).
pub(crate) const ZOMBIES_MAX: usize = 4;

/// When to look again for a tool whose handlers do not stop: nobody knows when they will.
const ZOMBIES_RETRY: Duration = Duration::from_secs(30);

/// The policies of tools that name none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Policies {
    pub(crate) retry: RetryPolicy,
    pub(crate) breaker: BreakerPolicy,
}

/// The guards of an engine.
#[derive(Debug)]
pub(crate) struct Guards {
    policies: Policies,
    epoch: Instant,
    /// Breakers of what tools work through, by name. They are never many, and are kept.
    backends: DashMap<Arc<str>, Arc<SharedBreaker>, RandomState>,
}

impl Default for Guards {
    fn default() -> Self {
        Self::new(Policies::default(), Instant::now())
    }
}

impl Guards {
    /// `policies` are those of tools that name none.
    pub(crate) fn new(policies: Policies, epoch: Instant) -> Self {
        Self { policies, epoch, backends: DashMap::default() }
    }

    /// The guard of a tool.
    pub(crate) fn guard(&self, spec: &ToolSpec) -> Guard {
        let breaker = |policy| Arc::new(SharedBreaker::new(policy, self.epoch));
        let backend = |name: &Arc<str>| Backend {
            breaker: self.backend(name).unwrap_or_else(|| {
                let made = self.backends.entry(name.clone());
                made.or_insert_with(|| breaker(self.policies.breaker)).clone()
            }),
            name: name.clone(),
        };
        let policy = spec.breaker.unwrap_or(self.policies.breaker);
        Guard {
            policy,
            retry: spec.retry.unwrap_or(self.policies.retry),
            bucket: Bucket::new(),
            breaker: breaker(policy),
            backend: spec.backend.as_ref().map(backend),
            line: RateLine::new(spec.rate, rate::WAIT_MAX, self.epoch),
            rate: spec.rate,
            pacing: AtomicBool::new(false),
            changed: Notify::new(),
            zombies: AtomicUsize::new(0),
            released: Notify::new(),
        }
    }

    /// The breaker of a back-end, if a tool has named it.
    pub(crate) fn backend(&self, name: &str) -> Option<Arc<SharedBreaker>> {
        self.backends.get(name).map(|breaker| breaker.clone())
    }

    /// Every back-end that a tool has named.
    pub(crate) fn backends(&self) -> Vec<(Arc<str>, Arc<SharedBreaker>)> {
        let mut all: Vec<_> =
            self.backends.iter().map(|one| (one.key().clone(), one.value().clone())).collect();
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

/// What a tool works through.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) name: Arc<str>,
    breaker: Arc<SharedBreaker>,
}

/// What stands before one tool.
pub(crate) struct Guard {
    policy: BreakerPolicy,
    rate: Option<Rate>,
    pub(crate) retry: RetryPolicy,
    pub(crate) bucket: Bucket,
    pub(crate) breaker: Arc<SharedBreaker>,
    pub(crate) backend: Option<Backend>,
    /// Who waits for a token of its rate, or for the end of a pause.
    pub(crate) line: RateLine<CallRef>,
    /// Whether a task drives the line.
    pacing: AtomicBool,
    /// Tells it that the line has changed.
    changed: Notify,
    /// Handlers that were given up and still run.
    zombies: AtomicUsize,
    /// Tells them that an operator holds nothing for them any more.
    released: Notify,
}

/// The right to one attempt, from every breaker before the tool.
#[derive(Debug)]
pub(crate) struct Slots {
    tool: Slot,
    backend: Option<Slot>,
}

/// A move of one of the breakers before a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moved {
    pub(crate) transition: Transition,
    /// Whether it was that of the back-end.
    pub(crate) of_backend: bool,
}

/// Hardly ever any.
pub(crate) type Moves = SmallVec<[Moved; 1]>;

impl Guard {
    /// Whether a tool that comes in the place of another is guarded in the same way: then what was seen of the one
    /// counts for the other.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let backend = |guard: &Self| guard.backend.as_ref().map(|backend| backend.name.clone());
        let policies = |guard: &Self| (guard.retry, guard.policy, guard.rate);
        policies(self) == policies(other) && backend(self) == backend(other)
    }

    /// Whether every call passes, as nearly always: a few loads.
    #[inline]
    fn is_open_to_all(&self) -> bool {
        self.zombies() < ZOMBIES_MAX
            && self.breaker.is_open_to_all()
            && self.backend.as_ref().is_none_or(|backend| backend.breaker.is_open_to_all())
    }

    /// Whether a call may go on towards an attempt (CB-7).
    ///
    /// # Errors
    /// `circuit_open`, at once and with when to ask again (CB-8).
    #[inline]
    pub(crate) fn peek(&self, tool: &str, now: impl Fn() -> Instant) -> Result<(), Box<CallError>> {
        if self.is_open_to_all() {
            return Ok(());
        }
        self.look(tool, now).map_err(Box::new)
    }

    #[cold]
    fn look(&self, tool: &str, now: impl Fn() -> Instant) -> Result<(), CallError> {
        self.check_zombies(tool)?;
        self.breaker.peek(&now).map_err(|open| is_open(tool, open))?;
        match &self.backend {
            Some(backend) => backend.breaker.peek(&now).map_err(|open| is_open(&backend.name, open)),
            None => Ok(()),
        }
    }

    /// The right to an attempt, if every call passes.
    #[inline]
    pub(crate) fn pass(&self) -> Option<Slots> {
        if self.zombies() >= ZOMBIES_MAX {
            return None;
        }
        let backend = match &self.backend {
            None => None,
            Some(backend) => Some(backend.breaker.pass()?),
        };
        Some(Slots { tool: self.breaker.pass()?, backend })
    }

    /// The right to an attempt that has its permits.
    ///
    /// # Errors
    /// As [`peek`](Self::peek).
    pub(crate) fn admit(
        &self,
        tool: &str,
        now: impl Fn() -> Instant,
        attempt_timeout: Duration,
    ) -> (Result<Slots, CallError>, Moves) {
        let mut moves = Moves::new();
        let slots =
            self.check_zombies(tool).and_then(|()| self.slots(tool, now, attempt_timeout, &mut moves));
        (slots, moves)
    }

    fn slots(
        &self,
        tool: &str,
        now: impl Fn() -> Instant,
        attempt_timeout: Duration,
        moves: &mut Moves,
    ) -> Result<Slots, CallError> {
        let mut admit = |breaker: &Arc<SharedBreaker>, of_backend| {
            let (slot, transition) = breaker.admit(&now, attempt_timeout);
            moves.extend(transition.map(|transition| Moved { transition, of_backend }));
            slot
        };
        // The back-end's first: should the tool's own refuse, its probe is given back and not the other way.
        let backend = match &self.backend {
            None => None,
            Some(backend) => {
                Some(admit(&backend.breaker, true).map_err(|open| is_open(&backend.name, open))?)
            }
        };
        let tool = admit(&self.breaker, false).map_err(|open| is_open(tool, open))?;
        Ok(Slots { tool, backend })
    }

    /// Counts a success that moves nothing, as nearly every attempt is; gives back the right to one that may.
    #[inline]
    pub(crate) fn succeeded(&self, slots: Slots, now: Instant) -> Option<Slots> {
        if slots.tool.is_probe() || slots.backend.as_ref().is_some_and(|slot| slot.is_probe()) {
            return Some(slots);
        }
        self.breaker.succeeded(slots.tool, now);
        if let (Some(backend), Some(slot)) = (&self.backend, slots.backend) {
            backend.breaker.succeeded(slot, now);
        }
        None
    }

    /// Counts how an attempt ended: without an error, or with one of this kind (V4, CB-3).
    pub(crate) fn record(
        &self,
        slots: Slots,
        error: Option<ErrorKind>,
        now: impl Fn() -> Instant,
        chance: impl Fn() -> f64,
    ) -> Moves {
        let verdict = error.map_or(BreakerVerdict::Success, ErrorKind::breaker);
        let moved = self.breaker.record(slots.tool, verdict, &now, &chance);
        let mut moves: Moves =
            moved.into_iter().map(|transition| Moved { transition, of_backend: false }).collect();
        if let (Some(backend), Some(slot)) = (&self.backend, slots.backend) {
            let moved = backend.breaker.record(slot, of_transport(error), &now, &chance);
            moves.extend(moved.map(|transition| Moved { transition, of_backend: true }));
        }
        moves
    }

    fn check_zombies(&self, tool: &str) -> Result<(), CallError> {
        if self.zombies() < ZOMBIES_MAX {
            return Ok(());
        }
        let message = format!("{} handlers of '{tool}' were given up and still run", self.zombies());
        let mut error = CallError::new(ErrorKind::CircuitOpen, message).with_reason(Reason::Zombie);
        error.retry_after = Some(ZOMBIES_RETRY);
        Err(error)
    }

    /// How many handlers were given up and still run.
    pub(crate) fn zombies(&self) -> usize {
        self.zombies.load(Ordering::Relaxed)
    }

    /// A handler was given up and still runs.
    pub(crate) fn zombie_began(&self) {
        self.zombies.fetch_add(1, Ordering::Relaxed);
    }

    /// It has stopped, or is not held anything for any more.
    pub(crate) fn zombie_ended(&self) {
        self.zombies.fetch_sub(1, Ordering::Relaxed);
    }

    /// Gives up what is held for them; they run on. Says how many there are.
    pub(crate) fn release_zombies(&self) -> usize {
        let zombies = self.zombies();
        self.released.notify_waiters();
        zombies
    }

    /// Waits until an operator gives up what is held for them.
    pub(crate) async fn zombies_released(&self) {
        self.released.notified().await;
    }
}

/// A back-end counts what never reached it or came back broken; what a tool made of its answer is the tool's (CB-9).
fn of_transport(error: Option<ErrorKind>) -> BreakerVerdict {
    match error.map_or(BreakerVerdict::Success, ErrorKind::breaker) {
        BreakerVerdict::Failure if error != Some(ErrorKind::Transient) => BreakerVerdict::Ignored,
        verdict => verdict,
    }
}

fn is_open(what: &str, open: OpenFor) -> CallError {
    let OpenFor { state, retry_after } = open;
    let span = wording::Span(retry_after);
    let message =
        format!("'{what}' fails often at present; its circuit is {}, ask again in {span}", state.as_str());
    let mut error = CallError::new(ErrorKind::CircuitOpen, message);
    error.retry_after = Some(retry_after);
    error
}
