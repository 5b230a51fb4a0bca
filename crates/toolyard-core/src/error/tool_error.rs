//! The error that a handler returns instead of an output.

use super::{ErrorKind, ForModel};
use crate::{Content, PathEscape, ToolOutput, Usage, resilience};
use std::{
    backtrace::{Backtrace, BacktraceStatus},
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
    /// The remote answers "too many requests".
    RateLimited,
    /// The tool understood the call and reports a failure.
    Execution,
    /// The arguments match the schema but still make no sense.
    InvalidInput,
    /// The tool is not allowed to do that, for example to leave its workspace.
    PermissionDenied,
    /// The agent may not use a path that the call names.
    FsDenied,
    /// The output is not what the tool promises.
    OutputInvalid,
    /// The tool ran, and its output is larger than what is accepted of it.
    OutputTooLarge,
    /// The handler stopped because it was cancelled.
    Cancelled,
    /// The work exceeded a time limit of the handler's own. Its effects so far may stand.
    Timeout,
    /// An error that the handler did not classify. The model reads a fixed sentence instead of its text (V5).
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
            ToolErrorKind::FsDenied => Self::FsDenied,
            ToolErrorKind::OutputInvalid => Self::OutputInvalid,
            ToolErrorKind::OutputTooLarge => Self::OutputTooLarge,
            ToolErrorKind::Cancelled => Self::Cancelled,
            ToolErrorKind::Timeout => Self::Timeout,
        }
    }
}

/// The error of a handler.
///
/// A message that the handler wrote itself (`HTTP 500: connection refused`) reaches the model unchanged (V5). `?`
/// turns any `std::error::Error`, `anyhow::Error` or `eyre::Report` into an [`Unclassified`](ToolErrorKind::Unclassified) one: its text is logged and the
/// model reads a fixed sentence, because such texts may hold paths, addresses and secrets. The exceptions are
/// [`PathEscape`] and errors whose source chain ends in [`ForModel`]; the outermost error of an `anyhow::Error` or a
/// `Report` cannot be told from others. A bare text is hidden like an error: a message of the handler's own is an error of
/// [execution](Self::execution) or the like. [`ResultExt`](crate::ResultExt) says of an error what the model reads. Where `RUST_BACKTRACE` or `RUST_LIB_BACKTRACE`
/// asks for backtraces, an unclassified error has the one of its conversion, which is logged with it.
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
    /// Boxed, because most errors have none.
    output: Option<Box<ToolOutput>>,
    user_visible: Option<bool>,
    retry_after: Option<Duration>,
    no_side_effect: bool,
    outcome_unknown: bool,
    source: Option<Arc<dyn Error + Send + Sync>>,
    backtrace: Option<Arc<Backtrace>>,
}

impl ToolError {
    /// An error of this kind; `message` is what the model reads.
    pub fn new(kind: ToolErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            output: None,
            user_visible: None,
            retry_after: None,
            no_side_effect: false,
            outcome_unknown: false,
            source: None,
            backtrace: None,
        }
    }

    /// A fault that may pass.
    pub fn transient(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Transient, message)
    }

    /// The remote answers "too many requests", perhaps with a time to wait.
    pub fn rate_limited(message: impl Into<String>, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..Self::new(ToolErrorKind::RateLimited, message) }
    }

    /// The tool understood the call and reports a failure.
    pub fn execution(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Execution, message)
    }

    /// The arguments make no sense.
    pub fn invalid_input(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::InvalidInput, message)
    }

    /// The tool is not allowed to do that.
    pub fn permission_denied(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::PermissionDenied, message)
    }

    /// The handler stopped because it was cancelled.
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self::new(ToolErrorKind::Cancelled, message)
    }

    /// The work exceeded a time limit of the handler's own, shorter than that of the attempt.
    pub fn timed_out(limit: Duration) -> Self {
        Self::new(ToolErrorKind::Timeout, crate::wording::wall_time_limit(limit))
    }

    /// Declares that nothing had changed before the fault, so that even a tool that is not idempotent may be retried
    /// (RT-1).
    #[must_use]
    pub fn no_side_effect(mut self) -> Self {
        self.no_side_effect = true;
        self
    }

    /// Declares that the effect is unknown, for example because the answer to a request was lost. The outcome of the
    /// call is then `unknown`, unless its tool only reads (V5).
    #[must_use]
    pub fn outcome_unknown(mut self) -> Self {
        self.outcome_unknown = true;
        self
    }

    /// Sets when to try again, as the remote asked.
    #[must_use]
    pub fn retry_after(mut self, after: Duration) -> Self {
        self.retry_after = Some(after);
        self
    }

    /// Sets when to try again from the value of a `Retry-After` header (RT-3). An invalid value changes nothing.
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

    /// Sets the message that the model reads. An error that nobody has classified is then one of
    /// [execution](ToolErrorKind::Execution).
    #[must_use]
    pub fn with_message(mut self, message: impl Into<String>) -> Self {
        if self.kind == ToolErrorKind::Unclassified {
            self.kind = ToolErrorKind::Execution;
        }
        self.message = message.into();
        self
    }

    /// Sets the kind.
    #[must_use]
    pub fn with_kind(mut self, kind: ToolErrorKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the cause, for logs; it never reaches the model.
    #[must_use]
    pub fn with_source(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Sets the content produced before the fault.
    #[must_use]
    pub fn with_content(self, content: Vec<Content>) -> Self {
        self.with_output(ToolOutput::parts(content))
    }

    /// Sets the output produced before the fault, with all that is known of the call: what it changed, what it ran.
    #[must_use]
    pub fn with_output(mut self, output: ToolOutput) -> Self {
        self.output = Some(Box::new(output));
        self
    }

    /// Sets what the program of the call used, beside the output so far (SB-9).
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        let output = self.output.take().map_or_else(|| ToolOutput::parts(Vec::new()), |output| *output);
        self.output = Some(Box::new(output.with_usage(usage)));
        self
    }

    /// Sets whether the message is meant for the user as well as for the model. Without it, the code decides.
    #[must_use]
    pub fn user_visible(mut self, visible: bool) -> Self {
        self.user_visible = Some(visible);
        self
    }

    /// The kind.
    pub fn kind(&self) -> ToolErrorKind {
        self.kind
    }

    /// The message that the model reads.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// When to try again, as the remote asked.
    pub fn retry_after_hint(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether the handler declared that nothing had changed.
    pub fn has_no_side_effect(&self) -> bool {
        self.no_side_effect
    }

    /// Whether the handler declared that the effect is unknown.
    pub fn has_unknown_outcome(&self) -> bool {
        self.outcome_unknown
    }

    /// The cause.
    pub fn source(&self) -> Option<&Arc<dyn Error + Send + Sync>> {
        self.source.as_ref()
    }

    /// The stack on which an error was converted into this unclassified one, for logs; `None` unless the standard
    /// library's variables ask for backtraces.
    pub fn backtrace(&self) -> Option<&Backtrace> {
        self.backtrace.as_deref()
    }

    /// The content produced before the fault.
    pub fn content(&self) -> &[Content] {
        self.output().map_or(&[], |output| &output.content)
    }

    /// The output produced before the fault.
    pub fn output(&self) -> Option<&ToolOutput> {
        self.output.as_deref()
    }

    /// Whether the handler said that the message is, or is not, meant for the user.
    pub fn is_user_visible(&self) -> Option<bool> {
        self.user_visible
    }
}

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for ToolError {
    fn from(error: E) -> Self {
        let error = error.into();
        let classified = classified(&*error);
        let mut converted = match classified {
            Some((kind, text)) => Self::new(kind, text),
            None => Self {
                backtrace: captured(),
                ..Self::new(ToolErrorKind::Unclassified, crate::wording::INTERNAL_FAILURE)
            },
        };
        converted.source = Some(error.into());
        converted
    }
}

/// The stack, if it is wanted; whether it is, the standard library looks up once.
fn captured() -> Option<Arc<Backtrace>> {
    let backtrace = Backtrace::capture();
    (backtrace.status() == BacktraceStatus::Captured).then(|| Arc::new(backtrace))
}

/// The kind and text of the first error in the source chain that has a class. Wrapping such an error in another text
/// does not hide it.
fn classified(error: &(dyn Error + 'static)) -> Option<(ToolErrorKind, String)> {
    iter::successors(Some(error), |link| (*link).source()).find_map(|link| {
        let escape = link.is::<PathEscape>().then_some(ToolErrorKind::PermissionDenied);
        let kind = escape.or_else(|| ForModel::of(link))?;
        Some((kind, link.to_string()))
    })
}

// `std::error::Error` is not implemented: it would rule out the blanket conversion above, as in anyhow.
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
