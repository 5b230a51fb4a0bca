//! What the engine keeps of a tool to spare it: its retries, shared by every session and fork.

use crate::retry::Bucket;
use toolyard_core::{RetryPolicy, ToolSpec};

/// The policies of tools that name none.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Policies {
    pub(crate) retry: RetryPolicy,
}

/// What the engine keeps of a tool.
#[derive(Debug)]
pub(crate) struct Guard {
    pub(crate) retry: RetryPolicy,
    pub(crate) bucket: Bucket,
}

impl Guard {
    pub(crate) fn new(spec: &ToolSpec, policies: &Policies) -> Self {
        Self { retry: spec.retry.unwrap_or(policies.retry), bucket: Bucket::new() }
    }

    /// Whether a tool that comes in the place of another is guarded in the same way: then what was seen of the one
    /// counts for the other.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.retry == other.retry
    }
}
