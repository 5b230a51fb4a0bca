//! Keys under which a call runs once (ID-1, ID-2).

mod canonical;

pub use canonical::canonical_json;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::{borrow::Borrow, fmt, fmt::Write as _, str::FromStr, sync::Arc};

/// Why a text is no idempotency key (ID-2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// No character at all.
    #[error("an idempotency key must have at least one character")]
    Empty,
    /// More than [`IdempotencyKey::LENGTH_MAX`] bytes.
    #[error("an idempotency key has at most {max} characters, this one has {0}", max = IdempotencyKey::LENGTH_MAX)]
    TooLong(usize),
    /// A space, a control character or one that is not ASCII.
    #[error("an idempotency key is visible ASCII, this one has another character at byte {0}")]
    NotVisible(usize),
}

/// The caller's name for one piece of work: calls of one session tree with one tool and equal keys run once
/// (ID-1).
///
/// 1 to 255 visible ASCII characters, so that it goes unchanged into a header of HTTP. Cheap to clone.
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
    /// The most characters of a key.
    pub const LENGTH_MAX: usize = 255;

    /// The key that this text is.
    ///
    /// # Errors
    /// A [`KeyError`] where it is empty, too long, or has a character that is not visible ASCII.
    pub fn new(text: impl Into<Arc<str>>) -> Result<Self, KeyError> {
        let text = text.into();
        Self::check(&text)?;
        Ok(Self(text))
    }

    /// Whether this text is a key.
    ///
    /// # Errors
    /// As [`new`](Self::new).
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

    /// A key for a caller who knows which step of its work a call is: equal for equal step, tool and arguments,
    /// different otherwise (ID-1). How the arguments are spelt does not matter, see [`canonical_json`].
    ///
    /// It is `tk1_` and the SHA-256, in hexadecimal digits, of the lengths and texts of all three; it stays the
    /// same from version to version, so a step that is taken again after a restart has the key it had.
    pub fn derive(step: &str, tool: &str, args: &Value) -> Self {
        let mut hash = Sha256::new();
        for part in [step, tool, &canonical_json(args)] {
            // With its length before each text, no two triples run together into the same bytes.
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
