//! Arguments that the person who approves a call has changed (SM-5).
//!
//! ```text
//!   asked about ─► edited ─► bound, parse, marks, policy, schema, paths and hosts, class ─► CheckedEdit ─► it runs
//!                              └─────────┴───────┴───────┴──────────┴────────────────┴────► EditRefused ─► asked again
//! ```
//!
//! The checks are those of the gate. What does not change is how the call is routed, and what its key stands for.

use super::{
    Allowed, Cleared, Fit, NotCleared, allow_arguments, arguments,
    capability_check::{self, NamedPath},
    digest, terms,
};
use crate::{agent::Agent, config::Limits};
use serde_json::Value;
use std::sync::Arc;
use toolyard_core::{Arguments, Call, CallDigest, CallError, ErrorKind, ToolClass};
use toolyard_redact::{Marks, Redactor};

/// What runs instead of a call's own arguments.
pub(crate) struct Edit {
    pub(crate) args: Arc<Value>,
    /// The same without secrets, as the call's result has them.
    pub(crate) shown: Arc<Value>,
    /// The paths that it names, and where they lead.
    pub(super) paths: Vec<NamedPath>,
}

/// An edit that may run.
pub(crate) struct CheckedEdit {
    pub(crate) edit: Edit,
    pub(crate) allowed: Allowed,
    /// The digest of the call with it.
    pub(crate) digest: CallDigest,
}

/// Whether these arguments are others than those of the call, which an approver may have been shown without secrets.
/// What is too long for arguments is not compared: the check refuses it.
pub(crate) fn changes(edited: &Arguments, args: &Value, limits: &Limits) -> bool {
    edited.size() > limits.arguments_bytes_max || !edited.is(args)
}

/// Checks edited arguments of a call that is asked about, as the gate checks those of a call.
///
/// # Errors
/// As those of the gate, or `invalid_input` if the call would have to be routed more strictly.
pub(crate) fn check_edit<F>(
    edited: &Arguments,
    call: &Call,
    work: &Cleared<F>,
    session: &Agent,
    fit: Fit,
) -> Result<CheckedEdit, NotCleared> {
    let entry = &work.entry;
    arguments::bound(edited, session.engine.limits.arguments_bytes_max)?;
    let mut as_edited = call.clone();
    as_edited.arguments = edited.clone();
    let rules = session.engine.rules.current();
    let (parsed, allowed) = allow_arguments(&as_edited, entry, &rules.policy, session, fit)?;
    let args = parsed.of(&as_edited);
    arguments::without_marks(args, marks_shown(work.args(call), session))?;
    let class = entry.class_for(args, session.engine.redactor.as_ref());
    if strictness(class) > strictness(work.class) {
        return Err(rerouted(class, work.class).into());
    }
    let paths = capability_check::named_paths(entry, args, session)?;
    let identity = rules.policy.identity(session.engine.epoch);
    let digest = digest(entry, args, session, &terms(session, identity, allowed.confinement.sandbox));
    let edit = Edit { args: args.clone(), shown: shown(args, session), paths };
    Ok(CheckedEdit { edit, allowed, digest })
}

/// The marks that the person saw in place of secrets: they do not stand for these secrets in what the person gives.
fn marks_shown(args: &Arc<Value>, session: &Agent) -> Marks {
    let redactor = session.engine.redactor.as_ref().and_then(Redactor::registered);
    redactor.map_or_else(Marks::default, |redactor| redactor.arguments(&mut Arguments::Json(args.clone())))
}

/// The arguments as results show them. The model may not send the marks in them.
pub(crate) fn shown(args: &Arc<Value>, session: &Agent) -> Arc<Value> {
    let Some(redactor) = &session.engine.results_redactor else { return args.clone() };
    let mut shown = Arguments::Json(args.clone());
    session.given_marks().add(redactor.arguments(&mut shown));
    match shown {
        Arguments::Json(shown) => shown,
        Arguments::Text(text) => Arc::new(Value::String(text.as_ref().to_owned())),
    }
}

/// How much a class keeps apart from others.
const fn strictness(class: ToolClass) -> u8 {
    match class {
        ToolClass::Read => 0,
        ToolClass::Concurrent => 1,
        ToolClass::Serial => 2,
    }
}

#[cold]
fn rerouted(to: ToolClass, from: ToolClass) -> CallError {
    let message =
        format!("with these arguments the call is '{to}', and it was routed as '{from}': deny it instead");
    CallError::new(ErrorKind::InvalidInput, message)
}
