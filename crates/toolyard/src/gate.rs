//! Everything a call passes before it may ask for a permit (V1).
//!
//! ```text
//!   call ─► id ─► size ─► hook ─► lookup ─► parse ─► schema ─► policy ─► workspace ─► confirmation ─► Cleared
//!              └──────────┴────────┴──────────┴────────┴─────────┴───────────┴───► CallError, short_circuit
//! ```
//!
//! Nothing here holds a permit. The order is fixed: an unknown tool with broken JSON is `not_found`.

mod arguments;
mod hooks;

use crate::{
    batch::{KeptResult, KeyOf, already_executed, mismatch},
    config::Limits,
    keys::{Fingerprint, Peek},
    registry::{Table, ToolEntry, not_found},
    session::{FORK_DEPTH_MAX, SessionCore},
    tasks::Tasks,
};
use serde_json::Value;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock},
};
use tokio::time::Instant;
use toolyard_core::{
    Approver, Call, CallError, Caller, ConfirmationMode, Confirmations, Denied, ErrorKind, Grant, Hooks,
    PathScope, RuntimePolicy, ToolClass, wording,
};

/// What a call is refused with when nobody can be asked (PO-3).
const NOBODY_TO_ASK: &str = "This operation needs approval and nobody is there to give it. Do not repeat this call; say what you need.";

/// The checks, and what they consult.
pub(crate) struct Gate {
    pub(crate) policy: Arc<dyn RuntimePolicy>,
    pub(crate) confirmations: Confirmations,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) hooks: Option<Arc<dyn Hooks>>,
    pub(crate) limits: Limits,
    /// In which hooks run.
    pub(crate) tasks: Tasks,
}

/// A call that may run.
pub(crate) struct Cleared {
    pub(crate) entry: Arc<ToolEntry>,
    pub(crate) args: Arc<Value>,
    pub(crate) class: ToolClass,
    /// What it came with to be run once.
    pub(crate) key: Option<Box<KeyOf>>,
    /// Where and within what, unless it is on the host without limits, as nearly always.
    grant: Option<Box<Grant>>,
    /// Whether the approver is to be asked first.
    pub(crate) ask: bool,
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

static HOST: LazyLock<Grant> = LazyLock::new(Grant::host);

impl Cleared {
    /// Where the call executes, and within what.
    pub(crate) fn grant(&self) -> &Grant {
        self.grant.as_deref().unwrap_or(&HOST)
    }
}

impl Gate {
    /// Everything but the hook.
    pub(crate) fn check(&self, call: &Call, table: &Table, session: &SessionCore) -> Result<Cleared, Turned> {
        let (entry, args, grant) = self.allow(call, table, session)?;
        let class = entry.class_for(&args);
        let now = || session.engine.clock.now();
        let key = match key_of(call, entry, &args) {
            None => None,
            Some(key) => Some(known(key, entry, class, session, now())?),
        };
        entry.guard().peek(entry.name(), now).map_err(|error| Turned::Answered(class, *error))?;
        let ask = self.must_ask(entry)?;
        let grant = (grant != *HOST).then(|| Box::new(grant));
        Ok(Cleared { entry: entry.clone(), args, class, key, grant, ask })
    }

    /// Whether the call may run at all.
    fn allow<'a>(
        &self,
        call: &Call,
        table: &'a Table,
        session: &SessionCore,
    ) -> Result<(&'a Arc<ToolEntry>, Arc<Value>, Grant), CallError> {
        let Some(entry) = table.get(&call.name).filter(|_| session.sees(&call.name)) else {
            return Err(CallError::new(ErrorKind::NotFound, not_found(&call.name, table, session)));
        };
        if entry.spec().recursive && session.depth >= FORK_DEPTH_MAX {
            let message = format!("'{}' spawns sub-agents, and none goes deeper than this one", entry.name());
            return Err(CallError::new(ErrorKind::DepthExceeded, message));
        }
        let args = arguments::parse(call, &self.limits)?;
        arguments::validate(entry, &args)?;
        let grant = self.ask_policy(entry, &args, &session.caller())?;
        check_scope(entry, &args, session.scope.as_deref())?;
        Ok((entry, args, grant))
    }

    fn ask_policy(&self, entry: &ToolEntry, args: &Value, caller: &Caller<'_>) -> Result<Grant, CallError> {
        let answer = catch_unwind(AssertUnwindSafe(|| self.policy.check(entry.spec(), args, caller)));
        match answer {
            Ok(Ok(grant)) => Ok(grant),
            Ok(Err(Denied::Disabled)) => {
                Err(CallError::new(ErrorKind::PermissionDenied, wording::disabled_by_policy(entry.name())))
            }
            Ok(Err(Denied::Because(why))) => Err(CallError::new(ErrorKind::PermissionDenied, why)),
            Err(_) => {
                tracing::error!(tool = entry.name(), "the policy panicked; the call is refused");
                let error = CallError::new(ErrorKind::Internal, "the policy could not be asked");
                Err(error.not_started())
            }
        }
    }

    /// Whether the approver is to be asked, or the refusal where there is none or none is wanted.
    fn must_ask(&self, entry: &ToolEntry) -> Result<bool, CallError> {
        let mode = self.confirmations.mode(entry.name(), entry.spec().side_effects);
        let refused = || CallError::new(ErrorKind::UserDenied, wording::USER_DENIED);
        match (mode, &self.approver) {
            (ConfirmationMode::Auto, _) => Ok(false),
            (ConfirmationMode::Prompt, Some(_)) => Ok(true),
            (ConfirmationMode::Prompt, None) => Err(refused().with_advice(NOBODY_TO_ASK)),
            (ConfirmationMode::Deny, _) => Err(refused()),
        }
    }
}

/// What the call came with to be run once.
fn key_of(call: &Call, entry: &ToolEntry, args: &Value) -> Option<Box<KeyOf>> {
    let key = call.idempotency_key.clone()?;
    Some(Box::new(KeyOf { key, fingerprint: Fingerprint::of(args, &entry.spec().version) }))
}

/// Whether a call of this key is to go; what is in the air is asked for when its run begins (ID-3).
fn known(
    key: Box<KeyOf>,
    entry: &ToolEntry,
    class: ToolClass,
    session: &SessionCore,
    now: Instant,
) -> Result<Box<KeyOf>, Turned> {
    match session.keys().peek(&entry.shared_name(), &key.key, key.fingerprint, now) {
        Peek::Unknown | Peek::InFlight => Ok(key),
        Peek::Replay(kept) => Err(Turned::Replayed(class, kept)),
        Peek::AlreadyExecuted => Err(Turned::Answered(class, already_executed())),
        Peek::Mismatch => Err(Turned::Answered(class, mismatch())),
    }
}

/// Every argument that the tool declares as a path stays in the workspace, by its name (PO-1b).
fn check_scope(entry: &ToolEntry, args: &Value, scope: Option<&dyn PathScope>) -> Result<(), CallError> {
    let denied = |message: String| Err(CallError::new(ErrorKind::PermissionDenied, message));
    let Some(scope) = scope else {
        return if entry.spec().requires_workspace {
            denied(format!("Tool '{}' needs a workspace and this session has none", entry.name()))
        } else {
            Ok(())
        };
    };
    for requirement in &entry.spec().requires_fs {
        let Some(path) = args.get(&requirement.argument).and_then(Value::as_str) else { continue };
        match catch_unwind(AssertUnwindSafe(|| scope.check(path))) {
            Ok(Ok(())) => {}
            Ok(Err(escape)) => return denied(escape.to_string()),
            Err(_) => {
                tracing::error!(tool = entry.name(), "the workspace's check panicked; the call is refused");
                let error = CallError::new(ErrorKind::Internal, "the workspace could not be asked");
                return Err(error.not_started());
            }
        }
    }
    Ok(())
}
