//! Whether a call needs approval, and what the approval request says (PO-3, PO-4).

use super::{
    capability_check::{self, NamedPath},
    preview::PreviewOf,
};
use crate::{agent::Agent, tool::ToolEntry};
use serde_json::Value;
use std::{borrow::Cow, sync::Arc};
use toolyard_core::{
    Answer, ApprovalParts, ApprovalPattern, ApprovalRequest, CallDigest, CallError, CallId, ConfirmationMode,
    Decision, ErrorKind, LinkedPath, RequestId, event::Approval, wording,
};
use toolyard_redact::Redactor;

/// The advice to a call that nobody can be asked about (PO-3).
const NO_APPROVER: &str = "Do not repeat this call; say what you need.";

/// The advice to a call that is too long to be asked about (PO-4).
const IN_PARTS: &str = "Nothing was done. Do it in several calls with shorter arguments.";

/// Whether a call needs an approver's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Consent {
    /// It needs none.
    Needless,
    /// An earlier answer covers it.
    Remembered,
    /// The approver is asked; with `once`, the answer covers all calls of the pattern.
    Ask { once: bool },
}

impl Consent {
    /// Whether the approver is asked.
    pub(crate) const fn asks(self) -> bool {
        matches!(self, Self::Ask { .. })
    }

    /// How events report it.
    pub(crate) const fn approval(self) -> Option<Approval> {
        match self {
            Self::Needless => None,
            Self::Remembered => Some(Approval::Remembered),
            Self::Ask { .. } => Some(Approval::Asked),
        }
    }
}

/// The call that an approval request is about.
pub(crate) struct ApprovalSubject<'a> {
    pub(crate) session: &'a Agent,
    pub(crate) entry: &'a Arc<ToolEntry>,
    pub(crate) args: &'a Arc<Value>,
    pub(crate) turn: u64,
    pub(crate) call_id: &'a CallId,
    pub(crate) digest: CallDigest,
    pub(crate) paths: &'a [NamedPath],
}

/// Decides whether the approver is asked. Refuses the call if its mode is deny or there is no approver. The paths
/// of a call that needs approval have to lead where they do now when it runs.
#[inline(always)]
pub(super) fn consent(
    entry: &ToolEntry,
    args: &Value,
    session: &Agent,
) -> Result<(Consent, Vec<NamedPath>), CallError> {
    let confirmations = session.permissions.confirmations(&session.engine);
    match confirmations.mode(entry.name(), entry.spec().asked_as()) {
        ConfirmationMode::Auto => Ok((Consent::Needless, Vec::new())),
        mode => confirmed(mode, entry, args, session),
    }
}

/// The same for a call that needs approval, or is refused.
#[inline(never)]
fn confirmed(
    mode: ConfirmationMode,
    entry: &ToolEntry,
    args: &Value,
    session: &Agent,
) -> Result<(Consent, Vec<NamedPath>), CallError> {
    let once = match mode {
        ConfirmationMode::Auto => return Ok((Consent::Needless, Vec::new())),
        ConfirmationMode::Deny => return Err(user_denied(None)),
        ConfirmationMode::Prompt => false,
        ConfirmationMode::PromptOnce => true,
    };
    let paths = capability_check::named_paths(entry, args, session)?;
    let pattern = || ApprovalPattern::of(entry.spec(), args, &session.id).leading(&links(&paths)).key();
    match session.approvals().remembered(pattern) {
        Some(answer) if answer.allows() => return Ok((Consent::Remembered, paths)),
        Some(answer) => return Err(user_denied(answer.reason())),
        None => {}
    }
    match session.engine.approver {
        Some(_) => Ok((Consent::Ask { once }, paths)),
        None => Err(nobody_to_ask()),
    }
}

/// Makes an approval request: a new one, or that of an earlier life of the engine, asked again (JR-9).
pub(crate) fn request(subject: &ApprovalSubject<'_>, before: Option<RequestId>) -> ApprovalRequest {
    let ApprovalSubject { session, entry, args, turn, call_id, digest, paths } = *subject;
    let redactor = session.engine.redactor.as_ref().and_then(Redactor::registered);
    let shown = |args: &Value| {
        redactor.as_ref().and_then(|redactor| match redactor.value(args) {
            Cow::Borrowed(_) => None,
            Cow::Owned(shown) => Some(shown),
        })
    };
    let mut links = links(paths);
    let pattern = ApprovalPattern::of(entry.spec(), args, &session.id)
        .leading(&links)
        .shown(|pinned| shown(&pinned).unwrap_or(pinned));
    if let Some(redactor) = &redactor {
        for link in &mut links {
            link.path = redactor.text(&link.path).into_owned();
            link.leads_to = redactor.text(&link.leads_to.to_string_lossy()).into_owned().into();
        }
    }
    let parts = ApprovalParts {
        links,
        id: before.unwrap_or_else(|| session.engine.requests.next(&session.engine.chance)),
        session: session.id.clone(),
        agent: session.path.clone(),
        turn,
        call_id: call_id.clone(),
        tool: entry.shared_name(),
        arguments: shown(args).map_or_else(|| args.clone(), Arc::new),
        side_effects: entry.spec().asked_as(),
        pattern,
        digest,
        expires_in: session.permissions.confirmations(&session.engine).answer_within(),
    };
    let preview = PreviewOf {
        entry: entry.clone(),
        args: args.clone(),
        resources: session.resources.clone(),
        tasks: session.engine.tasks.clone(),
        blocking: session.engine.blocking.clone(),
        redactor: redactor.clone(),
    };
    ApprovalRequest::new(parts, Some(Arc::new(preview)))
}

fn links(paths: &[NamedPath]) -> Vec<LinkedPath> {
    paths.iter().filter_map(NamedPath::link).collect()
}

/// The refusal of a call that nobody can be asked about.
fn nobody_to_ask() -> CallError {
    CallError::new(ErrorKind::UserDenied, wording::NOBODY_TO_ASK).with_advice(NO_APPROVER)
}

/// The refusal of a call that is too long to be shown whole.
fn too_long_to_ask() -> CallError {
    CallError::new(ErrorKind::UserDenied, wording::TOO_LONG_TO_ASK).with_advice(IN_PARTS)
}

/// The refusal of a call that a person said no to, for this reason if there is one.
fn user_denied(reason: Option<&str>) -> CallError {
    CallError::new(ErrorKind::UserDenied, wording::user_denied(reason))
}

/// The error of a call that this answer refuses.
pub(crate) fn refused_by(answer: &Answer) -> CallError {
    match answer.decision() {
        Decision::Nobody => nobody_to_ask(),
        Decision::TooLong => too_long_to_ask(),
        Decision::Allow | Decision::Always | Decision::Deny | Decision::Never => user_denied(answer.reason()),
    }
}
