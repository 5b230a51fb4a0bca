//! Why a request to a server fails, beyond what rmcp has a name for.

use super::intake::Slow;
use rmcp::transport::streamable_http_client::StreamableHttpError;

/// Why a request fails.
pub(crate) type RequestError = StreamableHttpError<WebError>;

/// Why a request fails, where rmcp has no name for it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WebError {
    /// HTTP failed, for example because nobody is there.
    #[error(transparent)]
    Http(reqwest::Error),
    /// HTTP 403, and what the server says it wants instead.
    #[error("HTTP 403: {0}")]
    Forbidden(String),
    /// The body of an answer is not a message.
    #[error("its answer is not an MCP message: {0}")]
    NotMessage(String),
    /// The body of an answer takes too long.
    #[error(transparent)]
    Slow(#[from] Slow),
}

impl From<reqwest::Error> for WebError {
    /// The URL is left out, because it may contain a secret.
    fn from(error: reqwest::Error) -> Self {
        Self::Http(error.without_url())
    }
}

/// Why an event is not read to its end. What comes behind it is not asked for again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Cut {
    /// It has more than this many bytes.
    #[error("it sent an event that is too large: more than {0} bytes")]
    TooLarge(usize),
    /// It takes too long.
    #[error(transparent)]
    Slow(#[from] Slow),
}
