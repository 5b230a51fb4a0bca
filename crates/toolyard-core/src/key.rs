//! Idempotency keys, under which a call runs once (ID-1, ID-2).

mod canonical;

pub use canonical::{canonical_json, write_canonical_json};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{borrow::Borrow, fmt, fmt::Write as _, str::FromStr, sync::Arc};

/// Why a text is not an idempotency key (ID-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The text is empty.
    #[error("an idempotency key must have at least one character")]
    Empty,
    /// The text has more than [`IdempotencyKey::LENGTH_MAX`] bytes.
    #[error("an idempotency key must have at most {max} characters, but this one has {0}", max = IdempotencyKey::LENGTH_MAX)]
    TooLong(usize),
    /// The text has a space, a control character or a character that is not ASCII.
    #[error("an idempotency key must be visible ASCII, but the character at byte {0} is not")]
    NotVisible(usize),
}

/// The caller's name for one piece of work: calls of one tool in one session tree with equal keys run once (ID-1).
///
/// 1 to 255 visible ASCII characters, so that it fits into an HTTP header unchanged. Cheap to clone.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::{IdempotencyKey, KeyError};
/// let key: IdempotencyKey = "order-17".parse()?;
/// assert_eq!(key.as_str(), "order-17");
/// assert_eq!(IdempotencyKey::new("order 17"), Err(KeyError::NotVisible(5)));
///
/// let derived = IdempotencyKey::derive("step-3", "pay", &json!({"amount": 5, "to": "Ada"}));
/// assert_eq!(derived, IdempotencyKey::derive("step-3", "pay", &json!({"to": "Ada", "amount": 5.0})));
/// # Ok::<(), KeyError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Arc<str>", into = "Arc<str>")]
pub struct IdempotencyKey(Arc<str>);

impl IdempotencyKey {
    /// The maximum number of characters in a key.
    pub const LENGTH_MAX: usize = 255;

    /// Makes a key from this text.
    ///
    /// # Errors
    /// [`KeyError`] if the text is empty, too long, or has a character that is not visible ASCII.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, KeyError> {
        let text = text.into();
        Self::check(&text)?;
        Ok(Self(text))
    }

    /// Checks that this text is a key.
    ///
    /// # Errors
    /// The same as for [`new`](Self::new).
    pub fn check(text: &str) -> Result<(), KeyError> {
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        if text.len() > Self::LENGTH_MAX {
            return Err(KeyError::TooLong(text.len()));
        }
        match text.bytes().position(|byte| !byte.is_ascii_graphic()) {
            Some(at) => Err(KeyError::NotVisible(at)),
            None => Ok(()),
        }
    }

    /// Derives a key for a caller that knows which step of its work a call is (ID-1). The key is equal for equal step,
    /// tool and arguments, and different otherwise. How the arguments are spelt does not matter; see
    /// [`canonical_json`].
    ///
    /// The key is `tk1_` and the SHA-256, in hexadecimal digits, of the lengths and texts of all three. It stays the
    /// same across versions, so a step that is repeated after a restart has the same key.
    pub fn derive(step: &str, tool: &str, args: &Value) -> Self {
        let mut hash = Sha256::new();
        for part in [step, tool, &canonical_json(args)] {
            // Each text is preceded by its length, so that no two triples hash the same bytes.
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let mut text = String::from("tk1_");
        for byte in hash.finalize() {
            let _infallible = write!(text, "{byte:02x}");
        }
        Self(text.into())
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for IdempotencyKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        Self::check(text)?;
        Ok(Self(text.into()))
    }
}

impl TryFrom<Arc<str>> for IdempotencyKey {
    type Error = KeyError;

    fn try_from(text: Arc<str>) -> Result<Self, KeyError> {
        Self::new(text)
    }
}

impl TryFrom<&str> for IdempotencyKey {
    type Error = KeyError;

    fn try_from(text: &str) -> Result<Self, KeyError> {
        text.parse()
    }
}

impl TryFrom<String> for IdempotencyKey {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        Self::new(text)
    }
}

impl From<IdempotencyKey> for Arc<str> {
    fn from(key: IdempotencyKey) -> Self {
        key.0
    }
}

impl AsRef<str> for IdempotencyKey {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for IdempotencyKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests;
