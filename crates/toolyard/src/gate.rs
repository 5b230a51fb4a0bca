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
    config::Limits,
    registry::{Table, ToolEntry, not_found},
    session::{FORK_DEPTH_MAX, SessionCore},
    tasks::Tasks,
};
use serde_json::Value;
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, LazyLock},
};
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
    /// Where and within what, unless it is on the host without limits, as nearly always.
    grant: Option<Box<Grant>>,
    /// Whether the approver is to be asked first.
    pub(crate) ask: bool,
}

static HOST: LazyLock<Grant> = LazyLock::new(Grant::host);

impl Cleared {
    /// Where the call executes, and within what.
    pub(crate) fn grant(&self) -> &Grant {
        self.grant.as_deref().unwrap_or(&HOST)
    }
}

impl Gate {
    /// Everything but the hook. Pure but for what the policy looks at.
    pub(crate) fn check(
        &self,
        call: &Call,
        table: &Table,
        session: &SessionCore,
    ) -> Result<Cleared, CallError> {
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
        let ask = self.must_ask(entry)?;
        let class = entry.class_for(&args);
        let grant = (grant != *HOST).then(|| Box::new(grant));
        Ok(Cleared { entry: entry.clone(), args, class, grant, ask })
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
