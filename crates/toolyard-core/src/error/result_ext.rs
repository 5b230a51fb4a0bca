//! What a handler says of an error that is not its own.

use super::{ToolError, ToolErrorKind};

/// What a handler adds to an error that `?` would hide from the model: what the model reads, whether to try again, and
/// whether anything has changed (KT-3).
///
/// For a `Result` of whatever `?` converts: errors of the standard library and of other crates, `anyhow::Error`,
/// `eyre::Report`, `Box<dyn Error>`, and a [`ToolError`] itself. [`for_model`](Self::for_model) is there for an `Option`
/// too.
///
/// # Examples
/// ```
/// use toolyard_core::{ResultExt, ToolError, ToolErrorKind};
///
/// fn size(path: &str) -> Result<u64, ToolError> {
///     let meta = std::fs::metadata(path).for_model("there is no such file: list the directory first")?;
///     Ok(meta.len())
/// }
/// let error = size("/no/such/file").unwrap_err();
/// assert_eq!((error.kind(), error.message()), (ToolErrorKind::Execution, "there is no such file: list the directory first"));
/// assert!(error.source().is_some()); // which is logged
///
/// let port = |text: &str| text.parse::<u16>().transient().no_side_effect();
/// let error = port("x").unwrap_err();
/// assert_eq!((error.kind(), error.has_no_side_effect()), (ToolErrorKind::Transient, true));
///
/// let first = |list: &[u32]| list.first().copied().for_model("the list is empty");
/// assert_eq!(first(&[]).unwrap_err().message(), "the list is empty");
/// ```
pub trait ResultExt<T>: Sized {
    /// Sets what the model reads. An error that nobody has classified is then one of
    /// [execution](ToolErrorKind::Execution); others keep their kind.
    ///
    /// # Errors
    /// The error, with this text.
    fn for_model(self, text: impl Into<String>) -> Result<T, ToolError>;

    /// Declares the fault one that may pass, so that the call is tried again if that is allowed (RT-1).
    ///
    /// # Errors
    /// The error, as [transient](ToolErrorKind::Transient).
    fn transient(self) -> Result<T, ToolError>;

    /// Declares that nothing had changed before the fault, so that even a tool that is not idempotent may be tried again
    /// (RT-1).
    ///
    /// # Errors
    /// The error, with that said.
    fn no_side_effect(self) -> Result<T, ToolError>;
}

impl<T, E: Into<ToolError>> ResultExt<T> for Result<T, E> {
    fn for_model(self, text: impl Into<String>) -> Result<T, ToolError> {
        self.map_err(|error| error.into().with_message(text))
    }

    fn transient(self) -> Result<T, ToolError> {
        self.map_err(|error| error.into().with_kind(ToolErrorKind::Transient))
    }

    fn no_side_effect(self) -> Result<T, ToolError> {
        self.map_err(|error| error.into().no_side_effect())
    }
}

impl<T> ResultExt<T> for Option<T> {
    fn for_model(self, text: impl Into<String>) -> Result<T, ToolError> {
        self.ok_or_else(|| ToolError::execution(text))
    }

    fn transient(self) -> Result<T, ToolError> {
        self.ok_or_else(|| ToolError::transient("there is nothing yet"))
    }

    fn no_side_effect(self) -> Result<T, ToolError> {
        self.ok_or_else(|| ToolError::execution("there is nothing").no_side_effect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PathEscape;
    use std::{error::Error, io};

    fn converted(error: impl Into<ToolError>) -> ToolError {
        error.into()
    }

    /// KT-3: `?` takes errors of the standard library, of other crates and boxed ones; none shows its text, unless its
    /// class says so, also behind others.
    #[test]
    fn any_error_becomes_a_tool_error() {
        let boxed: Box<dyn Error + Send + Sync> = io::Error::other("/secret").into();
        let errors = [
            converted(io::Error::other("/secret")),
            converted(boxed),
            converted(anyhow::anyhow!("/secret").context("/secret too")),
            converted(eyre::eyre!("/secret")),
            converted("/secret".to_owned()),
        ];
        for error in errors {
            assert_eq!(error.kind(), ToolErrorKind::Unclassified);
            assert!(!error.message().contains("secret") && error.source().is_some(), "{error:?}");
        }
        let escape = || PathEscape::new("..");
        assert_eq!(converted(escape()).kind(), ToolErrorKind::PermissionDenied);
        assert_eq!(
            converted(anyhow::Error::new(escape()).context("saving")).kind(),
            ToolErrorKind::PermissionDenied
        );
    }

    /// KT-3: what is said of an error keeps what was known of it.
    #[test]
    fn what_is_said_is_added() {
        let refused: Result<(), _> = Err(ToolError::rate_limited("slow down", None).no_side_effect());
        let error = refused.for_model("the service is busy").unwrap_err();
        assert_eq!((error.kind(), error.message()), (ToolErrorKind::RateLimited, "the service is busy"));
        assert!(error.has_no_side_effect());
        let error = Err::<(), _>(io::Error::other("reset")).transient().unwrap_err();
        assert_eq!(error.kind(), ToolErrorKind::Transient);
        assert!(!error.message().contains("reset"));
    }
}
