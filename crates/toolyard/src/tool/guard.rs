//! What protects a tool from too many attempts: its breakers, its retry budget, its rate, and a count of its zombies.
//! All sessions and forks share it (CB-9, RT-5).
//!
//! ```text
//!   gate, start of the run ──► peek            open, or too many zombies: circuit_open
//!   permits ─────────────────► admit ─► Slots  the same checks, and one probe at a time
//!   end of the attempt ──────► record          counted by the breakers
//! ```

mod rate_driver;

use super::{
    breaker::{OpenFor, SharedBreaker, Slot, Transition},
    rate::{self, RateQueue},
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

/// How many zombies a tool may have, handlers that were abandoned and still run, before it starts no more (SC-6).
pub(crate) const ZOMBIES_MAX: usize = 4;

/// `retry_after` for a tool with too many zombies. It is a guess: nothing tells when they will stop.
const ZOMBIES_RETRY: Duration = Duration::from_secs(30);

/// The policies for tools that set none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Policies {
    pub(crate) retry: RetryPolicy,
    pub(crate) breaker: BreakerPolicy,
}

/// An engine's policies and back-end breakers, from which each tool gets its [`Guard`].
#[derive(Debug)]
pub(crate) struct Guards {
    policies: Policies,
    epoch: Instant,
    /// The breakers of back-ends, by name. There are few, so none is ever removed.
    backends: DashMap<Arc<str>, Arc<SharedBreaker>, RandomState>,
}

impl Default for Guards {
    fn default() -> Self {
        Self::new(Policies::default(), Instant::now())
    }
}

impl Guards {
    /// `policies` are for tools that set none.
    pub(crate) fn new(policies: Policies, epoch: Instant) -> Self {
        Self { policies, epoch, backends: DashMap::default() }
    }

    /// Makes the guard of a tool.
    pub(crate) fn guard(&self, spec: &ToolSpec) -> Guard {
        let breaker = |policy| Arc::new(SharedBreaker::new(policy, self.epoch));
        let backend = |name: &Arc<str>| Backend {
            breaker: self.backend(name).unwrap_or_else(|| {
                let made = self.backends.entry(name.clone());
                made.or_insert_with(|| breaker(self.policies.breaker)).clone()
            }),
            name: name.clone(),
        };
        let policy = spec.settings.breaker.unwrap_or(self.policies.breaker);
        Guard {
            policy,
            retry: spec.settings.retry.unwrap_or(self.policies.retry),
            bucket: Bucket::new(),
            breaker: breaker(policy),
            backend: spec.settings.backend.as_ref().map(backend),
            queue: RateQueue::new(spec.settings.rate, rate::WAIT_MAX, self.epoch),
            rate: spec.settings.rate,
            is_driven: AtomicBool::new(false),
            changed: Notify::new(),
            zombies: AtomicUsize::new(0),
            released: Notify::new(),
        }
    }

    /// The breaker of a back-end, if any tool has named it.
    pub(crate) fn backend(&self, name: &str) -> Option<Arc<SharedBreaker>> {
        self.backends.get(name).map(|breaker| breaker.clone())
    }

    /// All back-ends that any tool has named, in order of name.
    pub(crate) fn backends(&self) -> Vec<(Arc<str>, Arc<SharedBreaker>)> {
        let mut all: Vec<_> =
            self.backends.iter().map(|one| (one.key().clone(), one.value().clone())).collect();
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

/// The back-end that a tool works through.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) name: Arc<str>,
    breaker: Arc<SharedBreaker>,
}

/// Guards one tool.
pub(crate) struct Guard {
    policy: BreakerPolicy,
    rate: Option<Rate>,
    pub(crate) retry: RetryPolicy,
    pub(crate) bucket: Bucket,
    pub(crate) breaker: Arc<SharedBreaker>,
    pub(crate) backend: Option<Backend>,
    /// The calls that wait for a rate token, or for the end of a pause.
    pub(crate) queue: RateQueue<rate::Place>,
    /// Whether a task drives the queue at present.
    is_driven: AtomicBool,
    /// Wakes that task when the queue has changed.
    changed: Notify,
    /// Handlers that were abandoned and still run.
    zombies: AtomicUsize,
    /// Notified when an operator releases what is held for them.
    released: Notify,
}

/// The right to one attempt, from each breaker of the tool.
#[derive(Debug)]
pub(crate) struct Slots {
    tool: Slot,
    backend: Option<Slot>,
}

/// A transition of one of a tool's breakers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BreakerMove {
    pub(crate) transition: Transition,
    /// Whether it is the back-end's breaker.
    pub(crate) of_backend: bool,
}

/// Almost always empty.
pub(crate) type BreakerMoves = SmallVec<[BreakerMove; 1]>;

impl Guard {
    /// Whether both guards have the same settings. If so, a tool that replaces another keeps the other's guard, with
    /// everything it has counted.
    pub(crate) fn has_same_settings(&self, other: &Self) -> bool {
        let backend = |guard: &Self| guard.backend.as_ref().map(|backend| backend.name.clone());
        let policies = |guard: &Self| (guard.retry, guard.policy, guard.rate);
        policies(self) == policies(other) && backend(self) == backend(other)
    }

    /// Whether every call passes, as is almost always the case. Costs a few loads.
    #[inline]
    fn passes_all(&self) -> bool {
        self.zombies() < ZOMBIES_MAX
            && self.breaker.passes_all()
            && self.backend.as_ref().is_none_or(|backend| backend.breaker.passes_all())
    }

    /// Whether a call may proceed towards an attempt (CB-7).
    ///
    /// # Errors
    /// `circuit_open`, at once and with `retry_after` set (CB-8).
    #[inline]
    pub(crate) fn peek(&self, tool: &str, now: impl Fn() -> Instant) -> Result<(), Box<CallError>> {
        if self.passes_all() {
            return Ok(());
        }
        self.look(tool, now).map_err(Box::new)
    }

    #[cold]
    fn look(&self, tool: &str, now: impl Fn() -> Instant) -> Result<(), CallError> {
        self.check_zombies(tool)?;
        self.breaker.peek(&now).map_err(|open| circuit_open_error(tool, open))?;
        match &self.backend {
            Some(backend) => {
                backend.breaker.peek(&now).map_err(|open| circuit_open_error(&backend.name, open))
            }
            None => Ok(()),
        }
    }

    /// The slots for an attempt, if every call passes.
    #[inline(always)]
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

    /// The slots for an attempt that holds its permits.
    ///
    /// # Errors
    /// Those of [`peek`](Self::peek).
    pub(crate) fn admit(
        &self,
        tool: &str,
        now: impl Fn() -> Instant,
        attempt_timeout: Duration,
    ) -> (Result<Slots, CallError>, BreakerMoves) {
        let mut moves = BreakerMoves::new();
        let slots =
            self.check_zombies(tool).and_then(|()| self.slots(tool, now, attempt_timeout, &mut moves));
        (slots, moves)
    }

    fn slots(
        &self,
        tool: &str,
        now: impl Fn() -> Instant,
        attempt_timeout: Duration,
        moves: &mut BreakerMoves,
    ) -> Result<Slots, CallError> {
        let mut admit = |breaker: &Arc<SharedBreaker>, of_backend| {
            let (slot, transition) = breaker.admit(&now, attempt_timeout);
            moves.extend(transition.map(|transition| BreakerMove { transition, of_backend }));
            slot
        };
        // The back-end's breaker first: if the tool's own then refuses, only a probe slot of the back-end has to be
        // released.
        let backend = match &self.backend {
            None => None,
            Some(backend) => {
                Some(admit(&backend.breaker, true).map_err(|open| circuit_open_error(&backend.name, open))?)
            }
        };
        let tool = admit(&self.breaker, false).map_err(|open| circuit_open_error(tool, open))?;
        Ok(Slots { tool, backend })
    }

    /// Counts a success that causes no transition, as almost every one does. Returns the slots if one of them is a
    /// probe.
    #[inline(always)]
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

    /// Counts how an attempt ended: successfully, or with an error of this kind (V4, CB-3).
    pub(crate) fn record(
        &self,
        slots: Slots,
        error: Option<ErrorKind>,
        now: impl Fn() -> Instant,
        chance: impl Fn() -> f64,
    ) -> BreakerMoves {
        let verdict = error.map_or(BreakerVerdict::Success, ErrorKind::breaker);
        self.record_as(slots, verdict, of_transport(error), now, chance)
    }

    /// Gives the slots of an attempt back that says nothing of the tool.
    pub(crate) fn ignore(
        &self,
        slots: Slots,
        now: impl Fn() -> Instant,
        chance: impl Fn() -> f64,
    ) -> BreakerMoves {
        self.record_as(slots, BreakerVerdict::Ignored, BreakerVerdict::Ignored, now, chance)
    }

    fn record_as(
        &self,
        slots: Slots,
        verdict: BreakerVerdict,
        of_transport: BreakerVerdict,
        now: impl Fn() -> Instant,
        chance: impl Fn() -> f64,
    ) -> BreakerMoves {
        let moved = self.breaker.record(slots.tool, verdict, &now, &chance);
        let mut moves: BreakerMoves =
            moved.into_iter().map(|transition| BreakerMove { transition, of_backend: false }).collect();
        if let (Some(backend), Some(slot)) = (&self.backend, slots.backend) {
            let moved = backend.breaker.record(slot, of_transport, &now, &chance);
            moves.extend(moved.map(|transition| BreakerMove { transition, of_backend: true }));
        }
        moves
    }

    fn check_zombies(&self, tool: &str) -> Result<(), CallError> {
        if self.zombies() < ZOMBIES_MAX {
            return Ok(());
        }
        let message = format!("{} abandoned handlers of '{tool}' are still running", self.zombies());
        let mut error = CallError::new(ErrorKind::CircuitOpen, message).with_reason(Reason::Zombie);
        error.retry_after = Some(ZOMBIES_RETRY);
        Err(error)
    }

    /// How many handlers were abandoned and still run.
    pub(crate) fn zombies(&self) -> usize {
        self.zombies.load(Ordering::Relaxed)
    }

    /// A handler was abandoned and still runs.
    pub(crate) fn zombie_began(&self) {
        self.zombies.fetch_add(1, Ordering::Relaxed);
    }

    /// It has stopped, or an operator has released what was held for it.
    pub(crate) fn zombie_ended(&self) {
        self.zombies.fetch_sub(1, Ordering::Relaxed);
    }

    /// Releases what is held for the zombies, which run on. Returns how many there are.
    pub(crate) fn release_zombies(&self) -> usize {
        let zombies = self.zombies();
        self.released.notify_waiters();
        zombies
    }

    /// Waits until an operator releases what is held for the zombies.
    pub(crate) async fn zombies_released(&self) {
        self.released.notified().await;
    }
}

/// The back-end's verdict counts only transport failures; a tool's use of the answer is the tool's own (CB-9).
fn of_transport(error: Option<ErrorKind>) -> BreakerVerdict {
    match error.map_or(BreakerVerdict::Success, ErrorKind::breaker) {
        BreakerVerdict::Failure if error != Some(ErrorKind::Transient) => BreakerVerdict::Ignored,
        verdict => verdict,
    }
}

fn circuit_open_error(what: &str, open: OpenFor) -> CallError {
    let OpenFor { state, retry_after } = open;
    let span = wording::Span(retry_after);
    let message = format!("'{what}' is failing often; its circuit is {}, retry in {span}", state.as_str());
    let mut error = CallError::new(ErrorKind::CircuitOpen, message);
    error.retry_after = Some(retry_after);
    error
}
