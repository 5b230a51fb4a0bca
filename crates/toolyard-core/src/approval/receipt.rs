//! What an approver is told of its answer.

use crate::{CallError, ErrorKind};
use std::sync::Arc;

/// What became of an answer (SM-6).
///
/// # Examples
/// ```
/// use toolyard_core::{Answer, ApprovalRequest, Approver, Receipt};
/// /// Tells the person who answered whether that was in time.
/// struct Window;
/// #[async_trait::async_trait]
/// impl Approver for Window {
///     async fn ask(&self, _: &ApprovalRequest) -> Answer {
///         Answer::deny("ada")
///     }
///
///     fn receipt(&self, request: &ApprovalRequest, receipt: Receipt) {
///         if receipt != Receipt::Taken {
///             println!("your answer to question {} does not count", request.id());
///         }
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Receipt {
    /// The engine has taken it: it counts. If a drain has suspended its call meanwhile (SM-10), it counts when that is
    /// taken up.
    Taken,
    /// It is about something else than what would run now. If that may still run, the question is asked again.
    Outdated,
    /// It came too late: the call has ended, or an answer to another question has settled it.
    Withdrawn,
    /// The arguments that it [gave](super::Answer::edit) may not run. The question is asked again.
    Refused(EditRefused),
}

/// Why changed arguments may not run (SM-5). It is for whoever changed them, and not for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
#[non_exhaustive]
pub struct EditRefused {
    /// The code that a call with these arguments would have ended with.
    pub kind: ErrorKind,
    /// Why, in a sentence.
    pub why: Arc<str>,
}

impl EditRefused {
    /// For this reason.
    pub fn new(kind: ErrorKind, why: impl Into<Arc<str>>) -> Self {
        Self { kind, why: why.into() }
    }
}

impl From<&CallError> for EditRefused {
    fn from(error: &CallError) -> Self {
        Self::new(error.kind, &*error.message)
    }
}
