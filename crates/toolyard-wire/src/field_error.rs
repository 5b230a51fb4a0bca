//! The error for a field that says something wrong.

use toolyard_core::KeyError;

/// What is wrong with a field of a call's meta, of a result's meta, or of an outcome. One line that names the field as
/// it was written, with the objects it is in: `toolyard/timeout_ms`, `error.code`.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_wire::CallMeta;
/// let error = CallMeta::read(&json!({"timeout_ms": "1s"})).unwrap_err();
/// assert_eq!(error.field(), "timeout_ms");
/// assert_eq!(
///     error.to_string(),
///     "'timeout_ms' must be a whole number of milliseconds, at least 1, and is \"1s\""
/// );
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FieldError {
    /// No field has this name.
    #[error("'{field}' is unknown; there are {known}")]
    Unknown {
        /// The field.
        field: String,
        /// The names that there are.
        known: String,
    },
    /// The field has to be there.
    #[error("'{field}' is missing")]
    Missing {
        /// The field.
        field: String,
    },
    /// The value is of another kind, too large, or not one of those that there are.
    #[error("'{field}' must be {expected}, and is {found}")]
    Wrong {
        /// The field.
        field: String,
        /// What it may be.
        expected: String,
        /// What it is: the value if it is short, otherwise what kind of value it is.
        found: String,
    },
    /// The value is not an idempotency key (ID-2).
    #[error("'{field}': {source}")]
    Key {
        /// The field.
        field: String,
        /// Why not.
        source: KeyError,
    },
    /// The value does not go with that of another field.
    #[error("'{field}' {why}")]
    Conflict {
        /// The field.
        field: String,
        /// What it does not go with.
        why: &'static str,
    },
}

impl FieldError {
    /// The field, as it was written.
    pub fn field(&self) -> &str {
        match self {
            Self::Unknown { field, .. }
            | Self::Missing { field }
            | Self::Wrong { field, .. }
            | Self::Key { field, .. }
            | Self::Conflict { field, .. } => field,
        }
    }
}
