//! What a handler says when it cannot give an output.

use super::{ErrorKind, ForModel};
use crate::{Content, PathEscape, resilience};
use std::{
    error::Error,
    fmt, iter,
    sync::Arc,
    time::{Duration, SystemTime},
};

/// The kinds a handler may choose from; the engine's own codes are not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// A fault that may pass: a reset connection, a remote 5xx.
    Transient,
    /// The remote says "too many requests".
    RateLimited,
    /// The tool understood and says no.
    Execution,
    /// The arguments fit the schema and still make no sense.
    InvalidInput,
    /// The tool may not do that, such as leaving its workspace.
    PermissionDenied,
    /// The output is not what the tool promises.
    OutputInvalid,
    /// The handler stopped because it was told to.
    Cancelled,
    /// The work ran into a time limit of the handler's own. What it did before may stand.
    Timeout,
    /// An error the handler did not classify. The model reads a plain text instead of it (V5).
    Unclassified,
}

impl From<ToolErrorKind> for ErrorKind {
    fn from(kind: ToolErrorKind) -> Self {
        match kind {
            ToolErrorKind::Transient => Self::Transient,
            ToolErrorKind::RateLimited => Self::RateLimited,
            ToolErrorKind::Execution | ToolErrorKind::Unclassified => Self::ExecutionError,
            ToolErrorKind::InvalidInput => Self::InvalidInput,
            ToolErrorKind::PermissionDenied => Self::PermissionDenied,
            ToolErrorKind::OutputInvalid => Self::OutputInvalid,
            ToolErrorKind::Cancelled => Self::Cancelled,
            ToolErrorKind::Timeout => Self::Timeout,
        }
    }
}

/// The error of a handler.
///
/// What a handler says itself (`HTTP 500: connection refused`) reaches the model as it is (V5). Any
/// `std::error::Error` turns into an [`Unclassified`](ToolErrorKind::Unclassified) one with `?`: its text is
/// logged and the model reads a plain sentence, for such texts hold paths, addresses and secrets. The
/// exceptions are [`PathEscape`] and errors that end in [`ForModel`].
///
/// # Examples
/// ```
/// use toolyard_core::{ToolError, ToolErrorKind};
/// let error = ToolError::transient("HTTP 503: try again").no_side_effect();
/// assert_eq!(error.kind(), ToolErrorKind::Transient);
///
/// fn read() -> Result<(), ToolError> { Ok(std::fs::metadata("/no/such/file").map(drop)?) }
/// assert_eq!(read().unwrap_err().kind(), ToolErrorKind::Unclassified);
/// ```
#[derive(Clone)]
pub struct ToolError {
    kind: ToolErrorKind,
    message: String,
    content: Vec<Content>,
    retry_after: Option<Duration>,
    no_side_effect: bool,
    outcome_unknown: bool,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl ToolError {
    /// An error of this kind; `message` is what the model reads.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            content: Vec::new(),
            retry_after: None,
            no_side_effect: false,
            outcome_unknown: false,
            source: None,
        }
    }

    /// A fault that may pass.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Transient, message)
    }

    /// The remote says "too many requests", perhaps with a time to wait.
    pub fn rate_limited(message: impl Into<String>, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..Self::new(ToolErrorKind::RateLimited, message) }
    }

    /// The tool understood and says no.
    pub fn execution(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Execution, message)
    }

    /// The arguments make no sense.
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::InvalidInput, message)
    }

    /// The tool may not do that.
    pub fn permission_denied(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::PermissionDenied, message)
    }

    /// The handler stopped because it was told to.
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Cancelled, message)
    }

    /// The work ran into a time limit of the handler's own, shorter than that of the attempt.
    pub fn timed_out(limit: Duration) -> Self {
        Self::new(ToolErrorKind::Timeout, crate::wording::wall_time_limit(limit))
    }

    /// Declares that nothing was changed before the fault, so that even a tool which is not idempotent may
    /// be tried again (RT-1).
    #[must_use]
    pub fn no_side_effect(mut self) -> Self {
        self.no_side_effect = true;
        self
    }

    /// Declares that nobody knows what came of it, such as of a request whose answer was lost on the way: the outcome of
    /// the call is then `unknown`, unless its tool only looks (V5).
    #[must_use]
    pub fn outcome_unknown(mut self) -> Self {
        self.outcome_unknown = true;
        self
    }

    /// When to try again, as the remote says.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// When to try again, as the value of a `Retry-After` header says (RT-3); a value that says nothing changes
    /// nothing.
    ///
    /// # Examples
    /// ```
    /// use std::time::{Duration, SystemTime};
    /// use toolyard_core::ToolError;
    /// let error = ToolError::rate_limited("HTTP 429", None).retry_after_header("45", SystemTime::now());
    /// assert_eq!(error.retry_after_hint(), Some(Duration::from_secs(45)));
    /// ```
    #[must_use]
    pub fn retry_after_header(mut self, value: &str, now: SystemTime) -> Self {
        self.retry_after = resilience::retry_after(value, now).or(self.retry_after);
        self
    }

    /// The cause, for logs; it never reaches the model.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// What had come out before the fault.
    #[must_use]
    pub fn with_content(mut self, content: Vec<Content>) -> Self {
        self.content = content;
        self
    }

    /// The kind.
    pub fn kind(&self) -> ToolErrorKind {
        self.kind
    }

    /// What the model reads.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// When to try again, as the remote says.
    pub fn retry_after_hint(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether the handler declared that nothing was changed.
    pub fn has_no_side_effect(&self) -> bool {
        self.no_side_effect
    }

    /// Whether the handler declared that nobody knows what came of it.
    pub fn has_unknown_outcome(&self) -> bool {
        self.outcome_unknown
    }

    /// The cause.
    pub fn source(&self) -> Option<&Arc<dyn Error + Send + Sync>> {
        self.source.as_ref()
    }

    /// What had come out before the fault.
    pub fn content(&self) -> &[Content] {
        &self.content
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for ToolError {
    fn from(error: E) -> Self {
        match classified(&error) {
            Some((kind, text)) => Self::new(kind, text),
            None => Self::new(ToolErrorKind::Unclassified, crate::wording::INTERNAL_FAILURE),
        }
        .with_source(error)
    }
}

/// What the first link of the chain that knows its class has to say. An error that wraps such a one in a text
/// of its own does not hide it.
fn classified(error: &(dyn Error + 'static)) -> Option<(ToolErrorKind, String)> {
    iter::successors(Some(error), |link| (*link).source()).find_map(|link| {
        let escape = link.is::<PathEscape>().then_some(ToolErrorKind::PermissionDenied);
        let kind = escape.or_else(|| ForModel::of(link))?;
        Some((kind, link.to_string()))
    })
}

// Not `std::error::Error`: that would forbid the blanket conversion above, as in anyhow.
impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl fmt::Debug for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ToolError");
        debug.field("kind", &self.kind).field("message", &self.message);
        debug.field("source", &self.source).finish_non_exhaustive()
    }
}
