//! Whether a call that the gate let through may still run: the policy may have changed meanwhile (V1).
//!
//! ```text
//!   same policy ───────────────────────────────────────► proceeds
//!   another ─► asked: no ──────────────────────────────► permission_denied
//!                     yes, and the call was approved ──► permission_denied: the answer was for the old policy,
//!                     │                                  unless the digest is still what was approved (SM-7)
//!                     yes ─────────────────────────────► proceeds, with what the new one grants
//! ```
//!
//! The paths of a call that needed approval also have to lead where they led then.

use crate::{
    call::{batch::BatchState, in_flight::InFlight, rare::Rare, refusals::Refusal, slot::Cleared},
    gate,
    tool::{Allowed, PolicyVersion, SandboxBreaker},
};
use toolyard_core::{CallDigest, CallError, Confinement, LazyDigest};

impl BatchState {
    /// Whether nothing has changed since the gate let a call through that decides whether it may run, as for almost
    /// every call.
    #[inline]
    pub(super) fn is_as_cleared(&self, work: &Cleared) -> bool {
        work.policy() == self.session.engine.rules.version()
            && work.paths().is_empty()
            && !work.entry.is_retired()
    }
}

impl<'a> InFlight<'a> {
    /// Checks whether a call may still run. Callers must hold no lock of the batch, because this may ask the policy.
    pub(crate) fn still_allowed(self) -> Result<(), Box<CallError>> {
        let is_current = self.policy_of() == self.engine().rules.version();
        if !is_current {
            self.recheck_policy().map_err(Box::new)?;
        }
        match self.cleared() {
            Some(work) if !work.paths().is_empty() => self.leads_as_before(work).map_err(Box::new),
            _ => Ok(()),
        }
    }

    /// Checks that the paths of a call that needed approval lead where they did when it was asked about (PO-4).
    #[cold]
    fn leads_as_before(self, work: &Cleared) -> Result<(), CallError> {
        gate::lead_as_before(work.paths(), &work.entry, self.args(), self.session())
    }

    #[cold]
    fn recheck_policy(self) -> Result<(), CallError> {
        let Some(work) = self.cleared() else { return Ok(()) };
        let anew = gate::recheck_policy(&work.entry, self.args(), self.session())?;
        let before = self.digest();
        let digest = before.as_ref().map(|_| anew.digest(&work.entry, self.args(), self.session()));
        if work.consent.asks() && digest.as_ref() != before.as_ref().map(LazyDigest::get) {
            return Err(Refusal::ChangedSinceApproval.error());
        }
        self.grant_anew(anew.allowed, digest)
    }

    /// Gives a call that an older policy had let through the grant of the policy in force, and its digest under that,
    /// if it has one.
    pub(crate) fn grant_anew(self, allowed: Allowed, digest: Option<CallDigest>) -> Result<(), CallError> {
        let Allowed { confinement, policy } = allowed;
        if confinement != *self.confinement() && !self.slot().make_rare().confine_anew(confinement) {
            return Err(Refusal::ChangedTwice.error());
        }
        if let Some(digest) = digest
            && self.digest().is_none_or(|before| *before.get() != digest)
        {
            self.slot().make_rare().mark_anew(digest);
        }
        self.work().allowed_by(policy);
        Ok(())
    }

    /// The version of the policy that last allowed a call.
    pub(crate) fn policy_of(self) -> PolicyVersion {
        // No policy has allowed a call that the gate did not let through.
        self.cleared().map_or(0, Cleared::policy)
    }

    /// Where a call executes, and within which limits.
    pub(crate) fn confinement(self) -> &'a Confinement {
        let since = self.slot().rare().and_then(|rare| rare.confinement());
        since.unwrap_or_else(|| self.work().confinement_at_gate())
    }

    /// The breaker of the sandbox it executes in; on the host there is none.
    #[inline(always)]
    pub(crate) fn sandbox_breaker(self) -> Option<SandboxBreaker<'a>> {
        let is_on_host = self.work().is_cleared_for_host() && self.slot().rare().is_none();
        if is_on_host { None } else { self.find_sandbox_breaker() }
    }

    #[cold]
    fn find_sandbox_breaker(self) -> Option<SandboxBreaker<'a>> {
        self.engine().registry.guards().sandboxes.of(self.confinement().sandbox)
    }

    /// The digest of what runs, under the policy that last allowed the call; `None` if digests are not kept.
    pub(crate) fn digest(self) -> Option<LazyDigest> {
        let at_gate = self.cleared()?.digest_at_gate()?;
        Some(self.slot().rare().and_then(Rare::digest_anew).unwrap_or_else(|| at_gate.clone()))
    }

    /// The digest of a call as it arrived, if a sink keeps it: of what would run, or of the call's text if it was
    /// refused.
    pub(crate) fn received_digest(self) -> Option<LazyDigest> {
        if !self.engine().bus.has_sinks() {
            return None;
        }
        let call = self.call();
        let of_text = || CallDigest::of_text(&call.name, &call.arguments.text(), &self.session().id).into();
        Some(self.digest().unwrap_or_else(of_text))
    }
}
