//! Approval: asking a person before a call runs (PO-3, PO-4).
//!
//! ```text
//!   Confirmations: ask about this tool? ── auto ─► runs        deny, nobody to ask ─► user_denied
//!        │ prompt, prompt_once
//!        ▼
//!   ApprovalRequest { what will run, its digest } ─► Approver ─► Answer ─► checked again, then it runs
//!                                                      ▲                    │ with its own arguments, or edited ones
//!                                                      └───── Receipt ──────┘ whether the answer counts
//! ```

mod answer;
mod mode;
mod pattern;
mod receipt;
mod request;
mod request_id;
mod showing;

pub use answer::{Answer, Decision};
pub use mode::{ConfirmationMode, Confirmations};
pub use pattern::ApprovalPattern;
pub use receipt::{EditRefused, Receipt};
pub use request::{ApprovalParts, ApprovalRequest, LinkedPath, Preview};
pub use request_id::{RequestId, RequestIdError};
pub use showing::Showing;

use async_trait::async_trait;
use std::sync::Arc;

/// Answers approval requests on behalf of the user.
///
/// The requests of one batch are asked side by side. A request that is not answered in time ends its call as
/// `confirmation_timeout`. The call holds no permit meanwhile. An [`Answer`] is itself an approver, which always gives
/// that answer.
#[async_trait]
pub trait Approver: Send + Sync {
    /// Answers one request. The answer is valid only for what the request's [digest](ApprovalRequest::digest) covers:
    /// if that changes in the meantime, for instance because of a new policy, the engine asks again.
    ///
    /// # Panics
    /// A panic ends the call as `internal`: a call that was not allowed does not run.
    ///
    /// # Cancel safety
    /// The future is dropped, and the request withdrawn, when the call is cancelled, when the request expires, or when
    /// the answer to another request settles this one too.
    async fn ask(&self, request: &ApprovalRequest) -> Answer;

    /// Tells what became of an answer that [`ask`](Self::ask) gave: an answer counts when the engine has taken it, and
    /// not before (SM-6). It is told once for every answer, and holds up the call meanwhile. Does nothing by default.
    ///
    /// # Panics
    /// A panic is logged and goes no further.
    fn receipt(&self, request: &ApprovalRequest, receipt: Receipt) {
        let _ = (request, receipt);
    }

    /// The engine has shut down or is gone, and asks nothing more: whoever waits for a question has waited enough. It
    /// may be called more than once. Does nothing by default.
    ///
    /// # Panics
    /// A panic is logged and goes no further.
    fn no_more_questions(&self) {}
}

#[async_trait]
impl<A: Approver + ?Sized> Approver for Arc<A> {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        (**self).ask(request).await
    }

    fn receipt(&self, request: &ApprovalRequest, receipt: Receipt) {
        (**self).receipt(request, receipt);
    }

    fn no_more_questions(&self) {
        (**self).no_more_questions();
    }
}
