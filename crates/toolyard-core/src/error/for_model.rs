//! How an error type of another crate declares that the model may read its text.

use super::ToolErrorKind;
use std::{error::Error, fmt};

/// Ends the [`source`](Error::source) chain of an error whose text is written for the model.
///
/// `?` turns an unknown error into an [`Unclassified`](ToolErrorKind::Unclassified) [`ToolError`](crate::ToolError)
/// and hides its text, because it may hold secrets. An error type whose text is meant for the model returns this as
/// its source: `?` then keeps the text and gives the error this kind.
///
/// # Examples
/// ```
/// use std::{error::Error, fmt};
/// use toolyard_core::{ToolError, ToolErrorKind, error::ForModel};
///
/// #[derive(Debug)]
/// struct NoSuchCity(String);
///
/// impl fmt::Display for NoSuchCity {
///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
///         write!(f, "no city is called '{}'", self.0)
///     }
/// }
///
/// impl Error for NoSuchCity {
///     fn source(&self) -> Option<&(dyn Error + 'static)> {
///         Some(&ForModel(ToolErrorKind::Execution))
///     }
/// }
///
/// fn look_up() -> Result<(), ToolError> { Ok(Err(NoSuchCity("Lodnon".into()))?) }
/// let error = look_up().unwrap_err();
/// assert_eq!(error.kind(), ToolErrorKind::Execution);
/// assert_eq!(error.message(), "no city is called 'Lodnon'");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForModel(pub ToolErrorKind);

impl ForModel {
    /// The kind that `error` declares, if its text is meant for the model.
    pub(super) fn of(error: &dyn Error) -> Option<ToolErrorKind> {
        let Self(kind) = error.source()?.downcast_ref()?;
        Some(*kind)
    }
}

impl fmt::Display for ForModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the message is meant for the model")
    }
}

impl Error for ForModel {}
