//! Everything a call passes before it may ask for a permit (V1).
//!
//! ```text
//!   call ─► id ─► size ─► hook ─► lookup ─► capability ─► parse ─► schema ─► policy ─► paths, hosts ─► consent ─► Cleared
//!              └──────────┴────────┴────────────┴──────────┴─────────┴─────────┴────────────┴───► CallError, short_circuit
//! ```
//!
//! Nothing here holds a permit. The order is fixed: an unknown tool with broken JSON is `not_found`, and who may not call
//! a tool learns nothing of its schema.

mod arguments;
mod consent;
mod hooks;
mod in_force;
mod preview;
mod reach;

pub(crate) use arguments::Args;
pub(crate) use consent::{About, Consent, user_denied};
pub(crate) use in_force::{Allowed, InForce, PolicyVersion, Versioned};

use crate::{
    batch::{KeptResult, KeyOf, already_executed, mismatch},
    config::Limits,
    keys::{Fingerprint, Peek},
    registry::{Table, ToolEntry, not_found},
    session::{FORK_DEPTH_MAX, SessionCore},
    tasks::Tasks,
};
use serde_json::Value;
use std::sync::{
    Arc,
    atomic::{AtomicU32, AtomicU64, Ordering},
};
use tokio::time::Instant;
use toolyard_core::{
    Approver, Call, CallDigest, CallError, Capabilities, Confirmations, ErrorKind, Grant, Hooks, ToolClass,
};

/// The checks, and what they consult.
pub(crate) struct Gate {
    pub(crate) rules: Arc<InForce>,
    /// What sessions may touch that say nothing themselves.
    pub(crate) capabilities: Option<Arc<Capabilities>>,
    pub(crate) confirmations: Confirmations,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    /// How many questions there were.
    pub(crate) requests: AtomicU64,
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
    pub(crate) limits: Limits,
    /// In which hooks run.
    pub(crate) tasks: Tasks,
}

/// A call that may run.
pub(crate) struct Cleared {
    pub(crate) entry: Arc<ToolEntry>,
    pub(crate) args: Args,
    pub(crate) class: ToolClass,
    pub(crate) consent: Consent,
    /// Which policy let it through, or has allowed it since.
    policy: AtomicU32,
    more: Option<Box<More>>,
}

/// What few calls have.
#[derive(Default)]
struct More {
    /// What it came with to be run once.
    key: Option<KeyOf>,
    /// Where and within what, unless it is on the host without limits.
    grant: Option<Grant>,
    /// The mark of what runs under this policy, where somebody keeps that.
    digest: Option<(PolicyVersion, CallDigest)>,
}

/// A call that does not go.
pub(crate) enum Turned {
    /// It may not: it is routed past the pools.
    Refused(CallError),
    /// Not at present, or not under its key. It is routed as if it went (CL-2).
    Answered(ToolClass, CallError),
    /// It has gone before: its key has the result.
    Replayed(ToolClass, Arc<KeptResult>),
}

impl From<CallError> for Turned {
    fn from(error: CallError) -> Self {
        Self::Refused(error)
    }
}

static HOST: Grant = Grant::host();

impl Cleared {
    /// Where the call was to execute, and within what, when the gate let it through. What counts later is
    /// [`BatchState::grant`](crate::batch::BatchState::grant).
    pub(crate) fn grant_at_gate(&self) -> &Grant {
        self.more.as_ref().and_then(|more| more.grant.as_ref()).unwrap_or(&HOST)
    }

    /// What the call came with to be run once.
    pub(crate) fn key(&self) -> Option<&KeyOf> {
        self.more.as_ref()?.key.as_ref()
    }

    /// The mark of what was to run when the gate let it through, and under which policy, where somebody keeps that.
    pub(crate) fn digest_at_gate(&self) -> Option<(PolicyVersion, CallDigest)> {
        self.more.as_ref()?.digest
    }

    /// Which policy it was last allowed by.
    pub(crate) fn policy(&self) -> PolicyVersion {
        self.policy.load(Ordering::Acquire)
    }

    /// It is allowed by this policy.
    pub(crate) fn allowed_by(&self, policy: PolicyVersion) {
        self.policy.store(policy, Ordering::Release);
    }
}

impl Gate {
    /// Everything but the hook.
    pub(crate) fn check(
        &self,
        call: &Call,
        tools: &Table,
        policy: &Versioned,
        session: &SessionCore,
    ) -> Result<Cleared, Turned> {
        let (entry, parsed, Allowed { grant, policy }) = self.allow(call, tools, policy, session)?;
        let args = parsed.of(call);
        let class = entry.class_for(args);
        let now = || session.engine.clock.now();
        let key = match key_of(call, entry, args) {
            None => None,
            Some(key) => Some(known(key, entry, class, session, now())?),
        };
        entry.guard().peek(entry.name(), now).map_err(|error| Turned::Answered(class, *error))?;
        let consent = self.consent(entry, args, session)?;
        let marked = consent.asks() || session.engine.bus.is_kept();
        let digest = marked.then(|| (policy, digest(entry, args, session, policy)));
        let grant = (grant != HOST).then_some(grant);
        let has_more = key.is_some() || grant.is_some() || digest.is_some();
        let more = has_more.then(|| Box::new(More { key, grant, digest }));
        Ok(Cleared { entry: entry.clone(), args: parsed, class, consent, policy: policy.into(), more })
    }

    /// Whether the call may run at all.
    fn allow<'a>(
        &self,
        call: &Call,
        tools: &'a Table,
        policy: &Versioned,
        session: &SessionCore,
    ) -> Result<(&'a Arc<ToolEntry>, Args, Allowed), CallError> {
        let Some(entry) = tools.get(&call.name).filter(|entry| session.sees(entry)) else {
            return Err(CallError::new(ErrorKind::NotFound, not_found(&call.name, tools, session)));
        };
        if !session.may.calls(entry) {
            let message = format!("Permission denied: this agent may not call tool '{}'", entry.name());
            return Err(CallError::new(ErrorKind::PermissionDenied, message));
        }
        if entry.spec().recursive && session.depth >= FORK_DEPTH_MAX {
            let message = format!("'{}' spawns sub-agents, and none goes deeper than this one", entry.name());
            return Err(CallError::new(ErrorKind::DepthExceeded, message));
        }
        let parsed = arguments::parse(call, &self.limits)?;
        let args = parsed.of(call);
        arguments::validate(entry, args)?;
        let granted = policy.ask(entry.spec(), args, &session.caller())?;
        reach::check(entry, args, session)?;
        Ok((entry, parsed, granted))
    }

    /// Asks again about a call that an older policy let through: what the one in force grants (V1).
    pub(crate) fn allow_again(
        &self,
        entry: &ToolEntry,
        args: &Value,
        session: &SessionCore,
    ) -> Result<Allowed, CallError> {
        self.rules.current().policy.ask(entry.spec(), args, &session.caller())
    }
}

/// The mark of what runs if a call is let go on by this policy.
pub(crate) fn digest(
    entry: &ToolEntry,
    args: &Value,
    session: &SessionCore,
    policy: PolicyVersion,
) -> CallDigest {
    CallDigest::of(entry.name(), &entry.spec().version, args, &session.id, policy.into())
}

/// What the call came with to be run once.
fn key_of(call: &Call, entry: &ToolEntry, args: &Value) -> Option<KeyOf> {
    let key = call.idempotency_key.clone()?;
    Some(KeyOf { key, fingerprint: Fingerprint::of(args, &entry.spec().version) })
}

/// Whether a call of this key is to go; what is in the air is asked for when its run begins (ID-3).
fn known(
    key: KeyOf,
    entry: &ToolEntry,
    class: ToolClass,
    session: &SessionCore,
    now: Instant,
) -> Result<KeyOf, Turned> {
    match session.keys().peek(&entry.shared_name(), &key.key, key.fingerprint, now) {
        Peek::Unknown | Peek::InFlight => Ok(key),
        Peek::Replay(kept) => Err(Turned::Replayed(class, kept)),
        Peek::AlreadyExecuted => Err(Turned::Answered(class, already_executed())),
        Peek::Mismatch => Err(Turned::Answered(class, mismatch())),
    }
}
