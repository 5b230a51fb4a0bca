//! What names a question.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, str::FromStr};

/// The name of a request: it never repeats, and nobody who was not told it can guess it (SM-6).
///
/// ```text
///   5d1f0c9a7be24a60 . 3 . 9c41ee07d2b8f315
///   the engine's life  │   a secret of this request
///                      its number in that life
/// ```
///
/// Ids of one engine are ordered as its requests were made.
///
/// # Examples
/// ```
/// use toolyard_core::RequestId;
/// let id = RequestId::new(0x5d1f_0c9a_7be2_4a60, 3, 0x9c41_ee07_d2b8_f315);
/// assert_eq!(id.to_string(), "5d1f0c9a7be24a60.3.9c41ee07d2b8f315");
/// assert_eq!(id.to_string().parse(), Ok(id));
/// assert!("5d1f0c9a7be24a60.3".parse::<RequestId>().is_err());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId {
    epoch: u64,
    number: u64,
    secret: u64,
}

/// The error for a text that is not the id of a request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a request id must be two times 16 hexadecimal digits with a number between them")]
pub struct RequestIdError;

impl RequestId {
    /// The id of the request with this number, for engines that make requests and for tests. `epoch` names the life of
    /// the engine; `secret` is chance.
    pub const fn new(epoch: u64, number: u64, secret: u64) -> Self {
        Self { epoch, number, secret }
    }

    /// The life of the engine in which the request was made.
    pub const fn epoch(self) -> u64 {
        self.epoch
    }

    /// The number of the request in that life, from 1.
    pub const fn number(self) -> u64 {
        self.number
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}.{}.{:016x}", self.epoch, self.number, self.secret)
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({self})")
    }
}

impl FromStr for RequestId {
    type Err = RequestIdError;

    fn from_str(text: &str) -> Result<Self, RequestIdError> {
        let hex = |digits: &str| u64::from_str_radix(digits, 16).map_err(|_| RequestIdError);
        let mut parts = text.splitn(3, '.');
        let mut part = || parts.next().ok_or(RequestIdError);
        let (epoch, number, secret) = (part()?, part()?, part()?);
        let number = number.parse().map_err(|_| RequestIdError)?;
        let id = Self::new(hex(epoch)?, number, hex(secret)?);
        // An id has one spelling: no signs, no capitals, no zeros before a number.
        if id.to_string() == text { Ok(id) } else { Err(RequestIdError) }
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SM-6: an id has one spelling, and everything else is refused.
    #[test]
    fn an_id_has_one_spelling() {
        let id = RequestId::new(0xab, 7, u64::MAX);
        let text = "00000000000000ab.7.ffffffffffffffff";
        assert_eq!((id.to_string().as_str(), text.parse()), (text, Ok(id)));
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<RequestId>(&json).unwrap(), id);
        for other in [
            "",
            "7",
            "ab.7.ff",
            "00000000000000ab.07.ffffffffffffffff",
            "00000000000000ab.+7.ffffffffffffffff",
            "00000000000000AB.7.ffffffffffffffff",
            "+0000000000000ab.7.ffffffffffffffff",
            "00000000000000ab.7.ffffffffffffffff.1",
            "00000000000000ab.7.ffffffffffffffff ",
            "00000000000000ab.99999999999999999999.ffffffffffffffff",
        ] {
            assert_eq!(other.parse::<RequestId>(), Err(RequestIdError), "{other}");
        }
    }

    /// SM-6: of one engine, later requests come later, whatever their secrets.
    #[test]
    fn ids_of_one_life_are_in_order() {
        assert!(RequestId::new(5, 9, u64::MAX) < RequestId::new(5, 10, 0));
    }
}
