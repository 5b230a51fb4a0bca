//! How a service, or a call of it, can fail.

use crate::{not_sent::NotSent, origin::OriginError};
use toolyard_core::ToolError;

/// Why a service cannot be called, ever. It contains no value of a header and no query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// Its URL is none of an origin that can be spoken to.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// The path of its URL is none that HTTP can ask for.
    #[error("the path of the URL is not valid")]
    Path,
    /// Its address may not be dialled.
    #[error(transparent)]
    Address(#[from] NotSent),
    /// A header's name is not valid.
    #[error("'{}' is not a valid header name", .0.escape_debug())]
    HeaderName(String),
    /// A header's value is not valid.
    #[error("the value of the header '{0}' is not valid")]
    HeaderValue(String),
    /// A header that the contract or the connection sets.
    #[error("the header '{0}' cannot be set")]
    HeaderReserved(String),
}

impl ServiceError {
    /// The error of the tool (SB-2): nothing had changed.
    pub fn tool_error(&self) -> ToolError {
        match self {
            Self::Address(not_sent) => not_sent.tool_error(),
            other => ToolError::execution(other.to_string()).no_side_effect(),
        }
    }
}

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
