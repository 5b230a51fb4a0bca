//! Asking before a call runs (PO-3, PO-4).
//!
//! ```text
//!   Confirmations: ask about this tool? ── auto ─► runs        deny, nobody to ask ─► user_denied
//!        │ prompt, prompt_once
//!        ▼
//!   ApprovalRequest { what will run, its digest } ─► Approver ─► Answer ─► checked again, then it runs
//! ```

mod mode;
mod pattern;
mod request;
mod showing;

pub use mode::{ConfirmationMode, Confirmations};
pub use pattern::ApprovalPattern;
pub use request::{ApprovalParts, ApprovalRequest, Preview, RequestId};
pub use showing::Showing;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The answer to an [`ApprovalRequest`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The call may run.
    Allow,
    /// The call may run, and so may all others of its session with the same [pattern](ApprovalPattern), those that are
    /// asked about at the moment and those to come.
    Always,
    /// The call ends as `user_denied`.
    Deny,
}

/// Answers for the person whose machine this is.
///
/// Requests of one batch are asked at once and side by side; a request that is not answered in time ends
/// its call as `confirmation_timeout`. No permit is held meanwhile. An [`Answer`] is itself the approver
/// that always gives it.
#[async_trait]
pub trait Approver: Send + Sync {
    /// The answer. It is for what the request's [digest](ApprovalRequest::digest) stands for and nothing else: where that
    /// has changed meanwhile, as by a new policy, the engine asks anew.
    ///
    /// # Panics
    /// A panic ends the call as `internal`: what was not allowed does not run.
    ///
    /// # Cancel safety
    /// The future is dropped when the call is cancelled, the time is over, or another answer settles this request too:
    /// the request is withdrawn.
    async fn ask(&self, request: &ApprovalRequest) -> Answer;
}

#[async_trait]
impl Approver for Answer {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        *self
    }
}

#[async_trait]
impl<A: Approver + ?Sized> Approver for Arc<A> {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        (**self).ask(request).await
    }
}
