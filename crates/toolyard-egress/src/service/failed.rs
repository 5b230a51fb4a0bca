//! How a call can fail.

use crate::not_sent::NotSent;
use toolyard_core::ToolError;

/// Why a call has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallFailed {
    /// Nothing has been sent.
    #[error(transparent)]
    NotSent(#[from] NotSent),
    /// The call's idempotency key cannot be sent, and without it nothing was.
    #[error("the idempotency key has characters that no HTTP header can hold")]
    Key,
    /// It has been sent, in part at least, and its answer was lost.
    #[error("{from} has not answered: {why}")]
    Lost {
        /// The origin.
        from: String,
        /// Why.
        why: String,
    },
}

impl CallFailed {
    /// Whether nothing has happened at the service.
    pub fn is_without_effect(&self) -> bool {
        !matches!(self, Self::Lost { .. })
    }

    /// The error of the tool (SB-2): what was not sent has changed nothing, and what was sent may have done anything.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::ToolErrorKind;
    /// use toolyard_egress::CallFailed;
    /// let lost = CallFailed::Lost { from: "http://a.example".into(), why: "connection reset".into() };
    /// let error = lost.tool_error();
    /// assert!(error.kind() == ToolErrorKind::Transient && error.has_unknown_outcome());
    /// ```
    pub fn tool_error(&self) -> ToolError {
        match self {
            Self::NotSent(not_sent) => not_sent.tool_error(),
            Self::Key => ToolError::execution(self.to_string()).no_side_effect(),
            Self::Lost { .. } => ToolError::transient(self.to_string()).outcome_unknown(),
        }
    }
}
