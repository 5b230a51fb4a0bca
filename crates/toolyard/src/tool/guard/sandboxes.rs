//! The breakers of sandboxes: one for each that a call was to run in, none for the host (CB-9).

use super::super::breaker::{OpenFor, SharedBreaker, Slot, Transition};
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::Instant;
use toolyard_core::{BreakerPolicy, Sandbox, error::BreakerVerdict};

/// The breakers of an engine's sandboxes. Each is made when it is first asked for.
#[derive(Debug)]
pub(crate) struct Sandboxes {
    policy: BreakerPolicy,
    epoch: Instant,
    breakers: [OnceLock<Arc<SharedBreaker>>; Sandbox::ALL.len()],
}

/// A sandbox and its breaker.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SandboxBreaker<'a> {
    pub(crate) sandbox: Sandbox,
    pub(crate) breaker: &'a Arc<SharedBreaker>,
}

/// The right to one attempt in a sandbox.
#[derive(Debug)]
pub(crate) struct SandboxSlot {
    sandbox: Sandbox,
    breaker: Arc<SharedBreaker>,
    slot: Slot,
}

impl Sandboxes {
    pub(crate) fn new(policy: BreakerPolicy, epoch: Instant) -> Self {
        Self { policy, epoch, breakers: Default::default() }
    }

    /// The breaker of a sandbox; the host has none, because nothing of it could fail but this process.
    #[inline]
    pub(crate) fn of(&self, sandbox: Sandbox) -> Option<SandboxBreaker<'_>> {
        if sandbox == Sandbox::Host { None } else { Some(self.get_or_make(sandbox)) }
    }

    fn get_or_make(&self, sandbox: Sandbox) -> SandboxBreaker<'_> {
        let make = || Arc::new(SharedBreaker::new(self.policy, self.epoch));
        SandboxBreaker { sandbox, breaker: self.breakers[sandbox.index()].get_or_init(make) }
    }

    /// Those that were asked for, in the order of [`Sandbox::ALL`].
    pub(crate) fn all(&self) -> impl Iterator<Item = SandboxBreaker<'_>> {
        let all = Sandbox::ALL.into_iter().zip(&self.breakers);
        all.filter_map(|(sandbox, breaker)| Some(SandboxBreaker { sandbox, breaker: breaker.get()? }))
    }
}

impl SandboxBreaker<'_> {
    /// Admits an attempt if every call passes.
    pub(super) fn pass(self) -> Option<Box<SandboxSlot>> {
        Some(self.holds(self.breaker.pass()?))
    }

    /// Admits an attempt, or says for how long it will not.
    pub(super) fn admit(
        self,
        now: impl FnOnce() -> Instant,
        attempt_timeout: Duration,
    ) -> (Result<Box<SandboxSlot>, OpenFor>, Option<Transition>) {
        let (slot, transition) = self.breaker.admit(now, attempt_timeout);
        (slot.map(|slot| self.holds(slot)), transition)
    }

    /// Boxed, because few calls have one and an attempt is moved into its task.
    fn holds(self, slot: Slot) -> Box<SandboxSlot> {
        Box::new(SandboxSlot { sandbox: self.sandbox, breaker: self.breaker.clone(), slot })
    }
}

impl SandboxSlot {
    /// Counts how the attempt ended.
    pub(super) fn record(
        self,
        verdict: BreakerVerdict,
        now: impl FnOnce() -> Instant,
        chance: impl FnOnce() -> f64,
    ) -> Option<(Sandbox, Transition)> {
        let moved = self.breaker.record(self.slot, verdict, now, chance);
        moved.map(|transition| (self.sandbox, transition))
    }
}
