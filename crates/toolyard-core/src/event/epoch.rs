//! The name of an engine's life.

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};
use std::{fmt, str::FromStr};

/// Names one life of an engine, from [`build`](https://docs.rs/toolyard/latest/toolyard/struct.EngineBuilder.html) to
/// its end: no other engine has it, so what counts anew in each life is unique together with it (SM-8, SM-9). Written as 16
/// hexadecimal digits.
///
/// # Examples
/// ```
/// use toolyard_core::event::Epoch;
/// let epoch = Epoch::new(0x5d1f_0c9a_7be2_4a60);
/// assert_eq!(epoch.to_string(), "5d1f0c9a7be24a60");
/// assert_eq!("5d1f0c9a7be24a60".parse(), Ok(epoch));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch(u64);

/// The error for a text that is not an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an epoch must be 16 hexadecimal digits, in lower case")]
pub struct EpochError;

impl Epoch {
    /// The epoch of this number, for engines and tests.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Epoch({self})")
    }
}

impl FromStr for Epoch {
    type Err = EpochError;

    fn from_str(text: &str) -> Result<Self, EpochError> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        // `from_str_radix` also accepts a sign, capitals and any length.
        let is_epoch = text.len() == 16 && text.bytes().all(is_digit);
        u64::from_str_radix(text, 16).ok().filter(|_| is_epoch).map(Self).ok_or(EpochError)
    }
}

impl Serialize for Epoch {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Epoch {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SM-9: an epoch has one spelling.
    #[test]
    fn an_epoch_has_one_spelling() {
        let epoch = Epoch::new(0xab);
        let json = serde_json::to_string(&epoch).unwrap();
        assert_eq!(json, "\"00000000000000ab\"");
        assert_eq!(serde_json::from_str::<Epoch>(&json).unwrap(), epoch);
        for text in ["", "ab", "00000000000000AB", "+0000000000000ab", "000000000000000ab", "00000000000000é"]
        {
            assert_eq!(text.parse::<Epoch>(), Err(EpochError), "{text}");
        }
    }
}
