//! The digests of calls (PO-4, SM-7).

use crate::{
    agent::Agent,
    tool::{ToolEntry, VersionedPolicy},
};
use serde_json::Value;
use std::sync::Arc;
use toolyard_core::{CallDigest, LazyDigest, PolicyIdentity, Sandbox, Terms};

/// Up to how many bytes arguments are kept for a digest that somebody may ask for. The digest of longer ones is made at
/// once, because a queue of events must not hold megabytes: a parsed value takes up to sixteen times its text.
const KEPT_BYTES_MAX: usize = 512;

/// What a call of this agent runs under.
pub(super) fn terms(session: &Agent, policy: PolicyIdentity, sandbox: Sandbox) -> Terms {
    Terms { policy, agent: session.permissions.terms(&session.engine), sandbox }
}

/// The digest of a call as it would run under these terms.
pub(super) fn digest(entry: &ToolEntry, args: &Value, session: &Agent, terms: &Terms) -> CallDigest {
    CallDigest::of(entry.name(), &entry.spec().version, args, &session.id, terms)
}

/// The same, made when somebody asks for it, unless the arguments are longer than is kept for that. Out of line for calls
/// that nobody follows.
#[inline(never)]
pub(super) fn lazy_digest(
    entry: &ToolEntry,
    args: &Arc<Value>,
    bytes: usize,
    session: &Agent,
    (policy, sandbox): (&VersionedPolicy, Sandbox),
) -> LazyDigest {
    let terms = terms(session, policy.identity(session.engine.epoch), sandbox);
    if bytes > KEPT_BYTES_MAX {
        return digest(entry, args, session, &terms).into();
    }
    LazyDigest::of(session.digest_scope(entry, &terms), args.clone())
}

/// What calls that may share a question have in common: their digests but for the policy and its grant, which are the
/// same for all of them at any time.
pub(crate) fn shared_digest(entry: &ToolEntry, args: &Value, session: &Agent) -> CallDigest {
    digest(entry, args, session, &terms(session, PolicyIdentity::Content([0; 32]), Sandbox::Host))
}
