//! Why something cannot be used as it is configured.

use crate::{not_sent::NotSent, origin::OriginError};
use toolyard_core::ToolError;

/// Why a service cannot be called, or an upstream not be had, ever. It contains no value of a header and no query.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// Its URL is none of an origin that can be spoken to.
    #[error(transparent)]
    Origin(#[from] OriginError),
    /// The path of its URL is none that HTTP can ask for.
    #[error("the path of the URL is not valid")]
    Path,
    /// Its name is none that a path can begin with.
    #[error("'{}' is not the name of an upstream: that has letters, digits, '-', '_' and '.'", .0.escape_debug())]
    Name(String),
    /// Its address may not be dialled.
    #[error(transparent)]
    Address(#[from] NotSent),
    /// A header's name is not valid.
    #[error("'{}' is not a valid header name", .0.escape_debug())]
    HeaderName(String),
    /// A header's value is not valid.
    #[error("the value of the header '{0}' is not valid, or longer than 16 KiB")]
    HeaderValue(String),
    /// There are too many headers.
    #[error("there are more than {most} headers")]
    HeaderCount {
        /// How many there may be.
        most: usize,
    },
    /// A header that the contract or the connection sets.
    #[error("the header '{0}' cannot be set")]
    HeaderReserved(String),
}

impl SetupError {
    /// The error of the tool (SB-2): nothing had changed.
    pub fn tool_error(&self) -> ToolError {
        match self {
            Self::Address(not_sent) => not_sent.tool_error(),
            other => ToolError::execution(other.to_string()).no_side_effect(),
        }
    }
}
