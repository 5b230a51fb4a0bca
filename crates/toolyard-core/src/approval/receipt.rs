//! What an approver is told of its answer.

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
    /// The engine has taken it: it counts.
    Taken,
    /// It is about something else than what would run now. If that may still run, the question is asked again.
    Outdated,
    /// It came too late: the call has ended, or an answer to another question has settled it.
    Withdrawn,
}
