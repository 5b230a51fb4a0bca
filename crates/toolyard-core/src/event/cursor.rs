//! Where a reader of an engine's events is.

use super::Epoch;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, str::FromStr};

/// How far somebody has read the events of an engine: up to this position, in this life of it (SM-9). Written as
/// `<epoch>.<position>`; everybody who resumes a stream of events resumes by that.
///
/// A reader whose cursor has another epoch has to begin anew: positions of different lives have nothing to do with each
/// other.
///
/// # Examples
/// ```
/// use toolyard_core::event::{Cursor, Epoch};
/// let cursor = Cursor::new(Epoch::new(0x5d1f_0c9a_7be2_4a60), 42);
/// assert_eq!(cursor.to_string(), "5d1f0c9a7be24a60.42");
/// assert_eq!("5d1f0c9a7be24a60.42".parse(), Ok(cursor));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cursor {
    /// The life of the engine.
    pub epoch: Epoch,
    /// The [position](super::Event::position) of the last event that was read; 0 before the first.
    pub position: u64,
}

/// The error for a text that is not a cursor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a cursor must be an epoch of 16 hexadecimal digits, a dot and a position")]
pub struct CursorError;

impl Cursor {
    /// The cursor of who has read up to this position.
    pub const fn new(epoch: Epoch, position: u64) -> Self {
        Self { epoch, position }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch, self.position)
    }
}

impl FromStr for Cursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let (epoch, position) = text.split_once('.').ok_or(CursorError)?;
        let epoch = epoch.parse().map_err(|_| CursorError)?;
        // A cursor has one spelling: no sign and no zeros before the position.
        let is_plain = position == "0" || !position.starts_with(['0', '+']);
        position.parse().ok().filter(|_| is_plain).map(|position| Self { epoch, position }).ok_or(CursorError)
    }
}

impl Serialize for Cursor {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Cursor {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SM-9: a cursor has one spelling, and anything else is refused.
    #[test]
    fn a_cursor_has_one_spelling() {
        for position in [0, 1, 10, u64::MAX] {
            let cursor = Cursor::new(Epoch::new(7), position);
            let json = serde_json::to_string(&cursor).unwrap();
            assert_eq!(json, format!("\"0000000000000007.{position}\""));
            assert_eq!(serde_json::from_str::<Cursor>(&json).unwrap(), cursor);
        }
        for position in ["", "01", "00", "+1", "-1", "1.", "1.1", " 1", "18446744073709551616", "x"] {
            assert_eq!(
                format!("0000000000000007.{position}").parse::<Cursor>(),
                Err(CursorError),
                "{position}"
            );
        }
        for text in ["", ".", "7.1", "0000000000000007", ".1"] {
            assert_eq!(text.parse::<Cursor>(), Err(CursorError), "{text}");
        }
    }
}
