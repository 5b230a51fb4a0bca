//! What protects a tool from too many attempts: its breakers, its retry budget, its rate, and a count of its zombies.
//! All sessions and forks share it (CB-9, RT-5).
//!
//! ```text
//!   gate, start of the run ──► peek            open, or too many zombies: circuit_open
//!   permits ─────────────────► admit ─► Slots  the same checks, and one probe at a time
//!   end of the attempt ──────► record          counted by the breakers
//! ```
//!
//! A call passes up to three breakers: that of its tool, that of the tool's back-end, and that of the sandbox it was
//! granted. The last two belong to the engine; a guard is handed the sandbox's, because each call may have another.

mod rate_driver;
mod sandboxes;
mod verdicts;

pub(crate) use sandboxes::SandboxBreaker;
pub(crate) use verdicts::Verdicts;

use sandboxes::{SandboxSlot, Sandboxes};

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
    BreakerPolicy, CallError, ErrorKind, Rate, Reason, RetryPolicy, Sandbox, ToolSpec, wording,
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

/// An engine's policies and the breakers that tools share, from which each tool gets its [`Guard`].
#[derive(Debug)]
pub(crate) struct Guards {
    policies: Policies,
    epoch: Instant,
    /// The breakers of back-ends, by name. There are few, so none is ever removed.
    backends: DashMap<Arc<str>, Arc<SharedBreaker>, RandomState>,
    pub(crate) sandboxes: Sandboxes,
}

impl Default for Guards {
    fn default() -> Self {
        Self::new(Policies::default(), Instant::now())
    }
}

impl Guards {
    /// `policies` are for tools that set none.
    pub(crate) fn new(policies: Policies, epoch: Instant) -> Self {
        let sandboxes = Sandboxes::new(policies.breaker, epoch);
        Self { policies, epoch, backends: DashMap::default(), sandboxes }
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
        let retry = spec.settings.retry.unwrap_or(self.policies.retry);
        Guard {
            policy,
            retry,
            bucket: Bucket::new(retry.bucket()),
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

/// The right to one attempt, from each breaker that it passes.
#[derive(Debug)]
pub(crate) struct Slots {
    tool: Slot,
    backend: Option<Slot>,
    sandbox: Option<Box<SandboxSlot>>,
}

/// A transition of one of the breakers that an attempt passes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BreakerMove {
    pub(crate) transition: Transition,
    pub(crate) of: MoveOf,
}

/// Whose breaker has moved.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MoveOf {
    /// The tool's own.
    Tool,
    /// That of the tool's back-end.
    Backend,
    /// That of the sandbox.
    Sandbox(Sandbox),
}

impl MoveOf {
    fn moved(self, transition: Transition) -> BreakerMove {
        BreakerMove { transition, of: self }
    }
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

    /// How often its attempts may start; `None` if as often as they like.
    pub(crate) fn rate(&self) -> Option<Rate> {
        self.rate
    }

    /// Whether every call passes, as is almost always the case. Costs a few loads.
    #[inline]
    fn passes_all(&self, sandbox: Option<SandboxBreaker<'_>>) -> bool {
        self.zombies() < ZOMBIES_MAX
            && self.breaker.passes_all()
            && self.backend.as_ref().is_none_or(|backend| backend.breaker.passes_all())
            && sandbox.is_none_or(|sandbox| sandbox.breaker.passes_all())
    }

    /// Whether a call may proceed towards an attempt in this sandbox (CB-7).
    ///
    /// # Errors
    /// `circuit_open`, at once and with `retry_after` set (CB-8).
    #[inline]
    pub(crate) fn peek(
        &self,
        tool: &str,
        sandbox: Option<SandboxBreaker<'_>>,
        now: impl Fn() -> Instant,
    ) -> Result<(), Box<CallError>> {
        if self.passes_all(sandbox) {
            return Ok(());
        }
        self.look(tool, sandbox, now).map_err(Box::new)
    }

    #[cold]
    fn look(
        &self,
        tool: &str,
        sandbox: Option<SandboxBreaker<'_>>,
        now: impl Fn() -> Instant,
    ) -> Result<(), CallError> {
        self.check_zombies(tool)?;
        self.breaker.peek(&now).map_err(|open| circuit_open_error(tool, open))?;
        if let Some(backend) = &self.backend {
            backend.breaker.peek(&now).map_err(|open| circuit_open_error(&backend.name, open))?;
        }
        match sandbox {
            Some(of) => of.breaker.peek(&now).map_err(|open| sandbox_open_error(of.sandbox, open)),
            None => Ok(()),
        }
    }

    /// The slots for an attempt in this sandbox, if every call passes.
    #[inline(always)]
    pub(crate) fn pass(&self, sandbox: Option<SandboxBreaker<'_>>) -> Option<Slots> {
        if self.zombies() >= ZOMBIES_MAX {
            return None;
        }
        let sandbox = match sandbox {
            None => None,
            Some(sandbox) => Some(sandbox.pass()?),
        };
        let backend = match &self.backend {
            None => None,
            Some(backend) => Some(backend.breaker.pass()?),
        };
        Some(Slots { tool: self.breaker.pass()?, backend, sandbox })
    }

    /// The slots for an attempt that holds its permits.
    ///
    /// # Errors
    /// Those of [`peek`](Self::peek).
    pub(crate) fn admit(
        &self,
        tool: &str,
        sandbox: Option<SandboxBreaker<'_>>,
        now: impl Fn() -> Instant,
        attempt_timeout: Duration,
    ) -> (Result<Slots, CallError>, BreakerMoves) {
        let mut moves = BreakerMoves::new();
        let slots = self
            .check_zombies(tool)
            .and_then(|()| self.slots(tool, sandbox, now, attempt_timeout, &mut moves));
        (slots, moves)
    }

    fn slots(
        &self,
        tool: &str,
        sandbox: Option<SandboxBreaker<'_>>,
        now: impl Fn() -> Instant,
        attempt_timeout: Duration,
        moves: &mut BreakerMoves,
    ) -> Result<Slots, CallError> {
        // The tool's own breaker last: if one of them refuses, only probe slots of those before it go back.
        let sandbox = match sandbox {
            None => None,
            Some(of) => {
                let (slot, transition) = of.admit(&now, attempt_timeout);
                moves.extend(transition.map(|transition| MoveOf::Sandbox(of.sandbox).moved(transition)));
                Some(slot.map_err(|open| sandbox_open_error(of.sandbox, open))?)
            }
        };
        let mut admit = |breaker: &Arc<SharedBreaker>, of: MoveOf| {
            let (slot, transition) = breaker.admit(&now, attempt_timeout);
            moves.extend(transition.map(|transition| of.moved(transition)));
            slot
        };
        let backend = match &self.backend {
            None => None,
            Some(Backend { name, breaker }) => {
                Some(admit(breaker, MoveOf::Backend).map_err(|open| circuit_open_error(name, open))?)
            }
        };
        let tool = admit(&self.breaker, MoveOf::Tool).map_err(|open| circuit_open_error(tool, open))?;
        Ok(Slots { tool, backend, sandbox })
    }

    /// Counts a success that causes no transition, as almost every one does. Returns the slots if one of them is a
    /// probe, or a sandbox has its part in it.
    #[inline(always)]
    pub(crate) fn succeeded(&self, slots: Slots, now: Instant) -> Option<Slots> {
        let is_probe = |slot: &Slot| slot.is_probe();
        if is_probe(&slots.tool) || slots.backend.as_ref().is_some_and(is_probe) || slots.sandbox.is_some() {
            return Some(slots);
        }
        self.breaker.succeeded(slots.tool, now);
        if let (Some(backend), Some(slot)) = (&self.backend, slots.backend) {
            backend.breaker.succeeded(slot, now);
        }
        None
    }

    /// Counts how an attempt ended (V4, CB-3).
    pub(crate) fn record(
        &self,
        slots: Slots,
        verdicts: Verdicts,
        now: impl Fn() -> Instant,
        chance: impl Fn() -> f64,
    ) -> BreakerMoves {
        let Slots { tool, backend, sandbox } = slots;
        let mut moves = BreakerMoves::new();
        let moved = self.breaker.record(tool, verdicts.tool, &now, &chance);
        moves.extend(moved.map(|transition| MoveOf::Tool.moved(transition)));
        if let (Some(backend), Some(slot)) = (&self.backend, backend) {
            let moved = backend.breaker.record(slot, verdicts.backend, &now, &chance);
            moves.extend(moved.map(|transition| MoveOf::Backend.moved(transition)));
        }
        if let Some(slot) = sandbox {
            let moved = slot.record(verdicts.sandbox, &now, &chance);
            moves.extend(moved.map(|(sandbox, transition)| MoveOf::Sandbox(sandbox).moved(transition)));
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

fn circuit_open_error(what: &str, open: OpenFor) -> CallError {
    let OpenFor { state, retry_after } = open;
    let span = wording::Span(retry_after);
    let message = format!("'{what}' is failing often; its circuit is {}, retry in {span}", state.as_str());
    let mut error = CallError::new(ErrorKind::CircuitOpen, message);
    error.retry_after = Some(retry_after);
    error
}

fn sandbox_open_error(sandbox: Sandbox, open: OpenFor) -> CallError {
    let mut error = circuit_open_error(sandbox.as_str(), open);
    error.message.insert_str(0, "sandbox ");
    error
}
