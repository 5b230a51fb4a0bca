//! Why nothing has been sent.

use crate::{address::NotPublic, origin::Destination};
use std::fmt;
use toolyard_core::ToolError;

/// Why nothing has been sent: nothing has happened there. Of addresses it tells what kind they are, not which.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotSent {
    /// The address may not be dialled.
    #[error("{to} is {why}, which may not be used")]
    Refused {
        /// The host and its port.
        to: String,
        /// What its address is.
        why: NotPublic,
    },
    /// There is no connection.
    #[error("{to} cannot be reached: {why}")]
    Unreachable {
        /// The host and its port.
        to: String,
        /// Why.
        why: String,
    },
    /// There is a connection, and whoever is at its end does not prove to be the one that was meant.
    #[error("{to} cannot be trusted: {why}")]
    Untrusted {
        /// The host and its port.
        to: String,
        /// Why.
        why: String,
    },
}

impl NotSent {
    pub(crate) fn refused(to: &Destination, why: NotPublic) -> Self {
        Self::Refused { to: to.to_string(), why }
    }

    pub(crate) fn unreachable(to: &Destination, why: &dyn fmt::Display) -> Self {
        Self::Unreachable { to: to.to_string(), why: why.to_string() }
    }

    /// The error of the tool (SB-2): nothing had changed.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::ToolErrorKind;
    /// use toolyard_egress::NotSent;
    /// let error = NotSent::Unreachable { to: "a.example:80".into(), why: "connection refused".into() }.tool_error();
    /// assert!(error.kind() == ToolErrorKind::Transient && error.has_no_side_effect());
    /// ```
    pub fn tool_error(&self) -> ToolError {
        let what = self.to_string();
        match self {
            Self::Refused { .. } => ToolError::permission_denied(what),
            Self::Unreachable { .. } => ToolError::transient(what),
            // It would prove no better in a while.
            Self::Untrusted { .. } => ToolError::execution(what),
        }
        .no_side_effect()
    }
}
