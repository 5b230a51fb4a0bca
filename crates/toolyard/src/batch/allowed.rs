//! Whether a call that the gate let through may still run: the policy may have changed meanwhile (V1).
//!
//! ```text
//!   same policy ───────────────────────────────────────────► goes on
//!   another ─► asked: no ──────────────────────────────────► permission_denied
//!                     yes, and somebody approved the call ─► permission_denied: the answer was for the old policy
//!                     yes ─────────────────────────────────► goes on, with what the new one grants
//! ```

use super::state::BatchState;
use crate::gate::{self, Allowed, Consent, PolicyVersion};
use toolyard_core::{CallDigest, CallError, ErrorKind, Grant};

impl BatchState {
    /// Whether a call may still run. Holds no lock of the batch: it may ask the policy.
    pub(super) fn still_allowed(&self, index: u32) -> Result<(), Box<CallError>> {
        let is_current = self.policy_of(index) == self.session.engine.gate.rules.version();
        if is_current || faulty!(ApprovalNotRechecked) {
            return Ok(());
        }
        self.allow_again(index).map_err(Box::new)
    }

    #[cold]
    fn allow_again(&self, index: u32) -> Result<(), CallError> {
        let Some(work) = self.cleared(index) else { return Ok(()) };
        let allowed = self.session.engine.gate.allow_again(&work.entry, self.args(index), &self.session)?;
        if matches!(work.consent, Consent::Ask { .. }) {
            return Err(changed("The policy changed after this call was approved."));
        }
        self.grant_anew(index, allowed)
    }

    /// The policy in force grants this for a call that an older one had let through.
    pub(super) fn grant_anew(&self, index: u32, allowed: Allowed) -> Result<(), CallError> {
        let Allowed { grant, policy } = allowed;
        if grant != *self.grant(index) && !self.slots[index as usize].make_aside().regrant(grant) {
            return Err(changed("The policy changed twice while this call waited."));
        }
        self.slots[index as usize].allowed_by(policy);
        Ok(())
    }

    /// Which policy a call was last allowed by.
    pub(crate) fn policy_of(&self, index: u32) -> PolicyVersion {
        self.slots[index as usize].policy()
    }

    /// Where a call executes, and within what.
    pub(crate) fn grant(&self, index: u32) -> &Grant {
        let (slot, work) = (&self.slots[index as usize], self.work(index));
        if slot.policy() == work.policy {
            return work.grant_at_gate();
        }
        slot.aside().and_then(|aside| aside.grant()).unwrap_or_else(|| work.grant_at_gate())
    }

    /// The mark of what runs under the policy that allowed the call last, where somebody keeps that.
    pub(crate) fn digest(&self, index: u32) -> Option<CallDigest> {
        let (work, policy) = (self.cleared(index)?, self.policy_of(index));
        let digest = work.digest()?;
        Some(match policy == work.policy {
            true => digest,
            false => gate::digest(&work.entry, self.args(index), &self.session, policy),
        })
    }

    /// The mark of a call as it came in, where a sink keeps it: of what would run, or of its text if it was refused.
    pub(super) fn received_digest(&self, index: u32) -> Option<CallDigest> {
        if !self.session.engine.bus.is_kept() {
            return None;
        }
        let call = self.call(index);
        let of_text = || CallDigest::of_text(&call.name, &call.arguments.text(), &self.session.id);
        Some(self.digest(index).unwrap_or_else(of_text))
    }
}

fn changed(message: &str) -> CallError {
    let mut error = CallError::new(ErrorKind::PermissionDenied, message);
    error.retryable = true;
    error.with_advice("Nothing was done. Send the call again if it is still needed.")
}
