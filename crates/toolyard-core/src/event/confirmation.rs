//! The question about a call, and how it was settled, as events tell it. Both are large and rare, so events hold them in
//! boxes.

use crate::{CallDigest, Decision, ErrorKind, RequestId, SideEffects};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The fields of `tool.confirmation_requested`: the approver is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfirmationRequest {
    /// The tool's name.
    pub tool_name: Arc<str>,
    /// What the tool may do.
    pub side_effects: SideEffects,
    /// For how many milliseconds the question is open.
    pub expires_ms: u64,
    /// The question's id.
    pub request: RequestId,
    /// The digest of the call that is asked about.
    pub digest: CallDigest,
    /// The arguments, shortened.
    pub input_summary: String,
    /// The paths and resources that the call names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projected_modifications: Vec<String>,
    /// The question whose answer this one shares (ID-3); then nobody is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shares: Option<RequestId>,
}

/// The fields of `tool.confirmation_resolved`: the approver answered, or no answer will come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConfirmationResolution {
    /// Whether the call may run.
    pub approved: bool,
    /// What was decided, if somebody answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Who decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// Why, in the words of whoever decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The error with which the call ends, unless it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorKind>,
    /// How an answer came to settle this question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<SettledBy>,
    /// The digest of what was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<CallDigest>,
    /// The arguments that run, shortened, if whoever approved the call changed them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_summary: Option<String>,
    /// The paths and resources that the changed call names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projected_modifications: Vec<String>,
}

/// How a confirmation was settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SettledBy {
    /// The approver answered.
    Approver,
    /// An answer to another request covered this call's pattern too.
    Pattern,
    /// The answer to the question of a call with the same key and digest, which this call shared (ID-3).
    Shared,
}
