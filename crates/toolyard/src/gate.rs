//! Everything a call passes before it may ask for a permit (V1).
//!
//! ```text
//!   call ─► id ─► size ─► hook ─► lookup ─► capability ─► parse ─► policy ─► schema ─► paths ─► consent ─► Cleared
//!           └──────┴───────┴────────┴───────────┴───────────┴────────┴─────────┴─────────┴─────────┴─► CallError
//! ```
//!
//! Before all of this, the layers around its tool may give a call other arguments (`layers.rs`); the hook gets the call as
//! it came. Nothing here holds a permit. The order is fixed: an unknown tool with broken JSON is `not_found`, and a caller
//! that may not use a tool learns nothing of its schema. A refused call is routed `short_circuit`. Before consent, a
//! finished key or an open breaker may answer the call, which is then routed as if it ran (CL-2).

mod desk;

mod arguments;
mod capability_check;
mod cleared;
mod consent;
mod digests;
mod edit;
mod hooks;
mod layers;
mod lengthy;
mod preview;

pub use desk::{AnswerError, ApprovalDesk};

use arguments::Args;
pub(crate) use arguments::bound;
pub(crate) use capability_check::{declared_paths, lead_as_before, projected};
pub(crate) use cleared::Cleared;
use cleared::{Asked, More};
use consent::consent;
pub(crate) use consent::{ApprovalSubject, Consent, refused_by, request};
pub(crate) use digests::shared_digest;
use digests::{digest, lazy_digest, terms};
pub(crate) use edit::{CheckedEdit, Edit, changes, check_edit, shown as edit_shown};
pub(crate) use hooks::{Begun, before, ended, starting};
pub(crate) use layers::{Layered, through_layers};
pub(crate) use lengthy::{Unvalidated, validate_at_length, validations_end};

use crate::{
    agent::{Agent, Services},
    config::FORK_DEPTH_MAX,
    keys::{
        Fingerprint, Kept, KeyOf, Keys, Name, Peek, RetainedResult, already_executed_error, mismatch_error,
    },
    tool::{Allowed, Table, ToolEntry, VersionedPolicy},
};
use serde_json::Value;
use std::sync::Arc;
use tokio::time::Instant;
use toolyard_core::{
    Call, CallDigest, CallError, Confinement, ErrorKind, IdempotencyKey, PolicyIdentity, ToolClass, wording,
};

/// A call that does not run.
pub(crate) enum NotCleared {
    /// Refused, and routed past the pools.
    Refused(CallError),
    /// Refused at present, or because of its key. Routed as if it ran (CL-2).
    Answered(ToolClass, CallError),
    /// It ran before: the result kept under its key is replayed.
    Replayed(ToolClass, Arc<Kept<RetainedResult>>),
    /// Validating its arguments takes longer than others should wait; see [`validate_at_length`].
    Unvalidated(Unvalidated),
}

/// What is known of a call's arguments and its tool's schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Nothing yet.
    Unknown,
    /// They fit.
    Known,
}

/// What is known of a call's arguments before the gate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    /// Their size.
    pub(crate) bytes: usize,
    pub(crate) fit: Fit,
}

impl From<CallError> for NotCleared {
    fn from(error: CallError) -> Self {
        Self::Refused(error)
    }
}

/// The tools that the calls of a batch name. Neighbours are often calls of one tool, which is then looked up once.
pub(crate) struct Tools<'a> {
    all: &'a Table,
    last: Option<&'a Arc<ToolEntry>>,
}

impl<'a> Tools<'a> {
    pub(crate) fn of(all: &'a Table) -> Self {
        Self { all, last: None }
    }

    #[inline]
    fn get(&mut self, name: &Arc<str>) -> Option<&'a Arc<ToolEntry>> {
        if self.last.is_none_or(|last| last.name() != &**name) {
            self.last = self.all.get(name);
        }
        self.last
    }
}

/// All checks except the hook.
pub(crate) fn check<F: Clone>(
    call: &Call,
    tools: &mut Tools<'_>,
    rules: &VersionedPolicy,
    session: &Agent,
    keys: &Keys<F, RetainedResult>,
    seen: Seen,
) -> Result<Cleared<F>, NotCleared> {
    let (entry, parsed, Allowed { confinement, policy }) = allow(call, tools, rules, session, seen.fit)?;
    let args = parsed.of(call);
    let class = entry.class_for(args, session.engine.redactor.as_ref());
    let now = || session.engine.clock.now();
    let key = match key_of_call(call, entry, args, class) {
        None => None,
        Some(key) => Some(known(key_of(&key, entry, args), class, keys, now)?),
    };
    let sandbox = session.engine.registry.guards().sandboxes.of(confinement.sandbox);
    entry.guard().peek(entry.name(), sandbox, now).map_err(|error| NotCleared::Answered(class, *error))?;
    let (consent, paths) = consent(entry, args, session)?;
    let marked = consent.asks() || session.engine.bus.has_sinks();
    let digest = if marked {
        Some(lazy_digest(entry, args, seen.bytes, session, (rules, confinement.sandbox)))
    } else {
        None
    };
    let confinement = if confinement == Confinement::host() { None } else { Some(Box::new(confinement)) };
    let is_asked = consent.asks() || !paths.is_empty();
    let asked = if is_asked { Some(Box::new(Asked::about(paths))) } else { None };
    let more = More { args: parsed, key, confinement, digest, asked };
    Ok(Cleared::new(entry, (class, consent), policy, seen.bytes, more))
}

/// The checks of whether the call may run at all: from lookup to paths and hosts.
#[inline(always)]
fn allow<'a>(
    call: &Call,
    tools: &mut Tools<'a>,
    policy: &VersionedPolicy,
    session: &Agent,
    fit: Fit,
) -> Result<(&'a Arc<ToolEntry>, Args, Allowed), NotCleared> {
    let Some(entry) = tools.get(&call.name).filter(|entry| session.sees(entry)) else {
        return Err(CallError::new(ErrorKind::NotFound, not_found(&call.name, tools.all, session)).into());
    };
    if !session.permissions.calls(entry) {
        let message = format!("Permission denied: this agent may not call tool '{}'", entry.name());
        return Err(CallError::new(ErrorKind::PermissionDenied, message).into());
    }
    if entry.spec().recursive && session.depth >= FORK_DEPTH_MAX {
        let message =
            format!("Tool '{}' spawns sub-agents, but this agent is at the maximum depth", entry.name());
        return Err(CallError::new(ErrorKind::DepthExceeded, message).into());
    }
    let (parsed, allowed) = allow_arguments(call, entry, policy, session, fit)?;
    Ok((entry, parsed, allowed))
}

/// The checks of a call's arguments: of those that came with it, and of those that the person who approves it gives.
#[inline(always)]
fn allow_arguments(
    call: &Call,
    entry: &Arc<ToolEntry>,
    policy: &VersionedPolicy,
    session: &Agent,
    fit: Fit,
) -> Result<(Args, Allowed), NotCleared> {
    let parsed = arguments::parse(call, &session.engine.limits)?;
    let args = parsed.of(call);
    arguments::without_marks(args, session.given_marks().get())?;
    let allowed = policy.ask(entry, args, &session.caller(), session.engine.redactor.as_ref())?;
    if fit == Fit::Unknown {
        arguments::validate(entry, args)?;
    }
    capability_check::check(entry, args, session)?;
    Ok((parsed, allowed))
}

/// What the policy in force grants to a call that an older one allowed.
pub(crate) struct AllowedAnew {
    pub(crate) allowed: Allowed,
    identity: PolicyIdentity,
}

impl AllowedAnew {
    /// The digest of the call under this grant.
    pub(crate) fn digest(&self, entry: &ToolEntry, args: &Value, session: &Agent) -> CallDigest {
        let terms = terms(session, self.identity, self.allowed.confinement.sandbox);
        digest(entry, args, session, &terms)
    }
}

/// Asks the policy in force again about a call that an older one allowed (V1).
pub(crate) fn recheck_policy(
    entry: &ToolEntry,
    args: &Value,
    session: &Agent,
) -> Result<AllowedAnew, CallError> {
    let rules = session.engine.rules.current();
    let redactor = session.engine.redactor.as_ref();
    let allowed = rules.policy.ask(entry, args, &session.caller(), redactor)?;
    Ok(AllowedAnew { allowed, identity: rules.policy.identity(session.engine.epoch) })
}

/// The message for a name that this session does not know (V5, PO-1b). It names what may be called.
pub(crate) fn not_found(name: &str, table: &Table, session: &Agent) -> String {
    let may_call = |entry: &&Arc<ToolEntry>| session.sees(entry) && session.permissions.calls(entry);
    wording::tool_not_found(name, table.values().filter(may_call).map(|entry| entry.name()).collect())
}

/// The call's own idempotency key, or the one that its tool derives (ID-1, KT-16).
#[inline(always)]
fn key_of_call(call: &Call, entry: &ToolEntry, args: &Value, class: ToolClass) -> Option<Arc<str>> {
    match &call.idempotency_key {
        Some(key) => Some(key.clone()),
        // A call that only reads has none, by whatever tool: a later one would read what was true before.
        None if entry.spec().derives_key() && class != ToolClass::Read => Some(derived_key(entry, args)),
        None => None,
    }
}

/// Whether a call would have a key that its tool derives, by its arguments as they came.
#[cold]
pub(crate) fn derives_key(call: &Call, entry: &ToolEntry, services: &Services) -> bool {
    let derives = call.idempotency_key.is_none() && entry.spec().derives_key();
    derives
        && arguments::parse(call, &services.limits)
            .is_ok_and(|args| entry.class_for(args.of(call), services.redactor.as_ref()) != ToolClass::Read)
}

/// One key for all equal calls of a session tree: they are one step.
#[inline(never)]
fn derived_key(entry: &ToolEntry, args: &Value) -> Arc<str> {
    IdempotencyKey::derive("", entry.name(), args).as_str().into()
}

/// The call's idempotency key with the fingerprint of its arguments.
#[inline(never)]
fn key_of<F>(key: &Arc<str>, entry: &ToolEntry, args: &Value) -> KeyOf<F> {
    let name = Name::new(entry.shared_name(), key.clone());
    KeyOf::new(name, Fingerprint::of(args, &entry.spec().version))
}

/// Looks up a call's key. The result of an earlier call, or a mismatch with it, answers the call. A key in flight is
/// joined later, when the call's run starts (ID-3).
#[inline(never)]
fn known<F: Clone>(
    key: KeyOf<F>,
    class: ToolClass,
    keys: &Keys<F, RetainedResult>,
    now: impl FnOnce() -> Instant,
) -> Result<KeyOf<F>, NotCleared> {
    match keys.peek(&key.name, key.fingerprint, now) {
        Peek::Unknown | Peek::InFlight => Ok(key),
        Peek::Replay(retained) => Err(NotCleared::Replayed(class, retained)),
        Peek::AlreadyExecuted => Err(NotCleared::Answered(class, already_executed_error())),
        Peek::Mismatch => Err(NotCleared::Answered(class, mismatch_error())),
    }
}
