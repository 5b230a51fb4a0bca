//! Secrets that nobody guesses, and their hashes, which are all that is kept of them.

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use sha2::{Digest as _, Sha256};
use std::{fmt, str::FromStr};
use subtle::ConstantTimeEq as _;

/// A new secret: 32 bytes that nobody guesses, as text after a prefix that says what it is for.
pub(crate) fn fresh(prefix: &str) -> String {
    let mut random = [0; 32];
    getrandom::fill(&mut random).expect("every system that this is built for has randomness");
    format!("{prefix}{}", BASE64_URL_SAFE_NO_PAD.encode(random))
}

/// The SHA-256 of a secret.
#[derive(Clone, Copy)]
pub struct SecretHash([u8; 32]);

/// The error for a text that is no hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a hash must be 64 hexadecimal digits, as 'toolyard token new' prints them")]
pub struct SecretHashError;

impl SecretHash {
    /// That of this secret.
    pub fn of(secret: &str) -> Self {
        Self(Sha256::digest(secret).into())
    }

    /// Whether both are equal; takes as long wherever they differ.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl fmt::Display for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for SecretHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretHash")
    }
}

impl FromStr for SecretHash {
    type Err = SecretHashError;

    fn from_str(text: &str) -> Result<Self, SecretHashError> {
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(SecretHashError);
        }
        let mut hash = [0; 32];
        for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| SecretHashError)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| SecretHashError)?;
        }
        Ok(Self(hash))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// HT-6: a hash is read as it is shown, and anything else is refused.
    #[test]
    fn a_hash_is_read_as_it_is_shown() {
        let hash = SecretHash::of("s3cret");
        assert!(hash.to_string().parse::<SecretHash>().unwrap().is(&hash));
        assert!(!hash.is(&SecretHash::of("s3cres")));
        for wrong in ["", "+f", &"0".repeat(63), &"g".repeat(64), &"+f".repeat(32)] {
            assert_eq!(wrong.parse::<SecretHash>().err(), Some(SecretHashError), "{wrong}");
        }
    }

    /// HT-6: no two secrets are equal.
    #[test]
    fn secrets_differ() {
        let mut all: Vec<String> = (0..100).map(|_| fresh("t_")).collect();
        all.sort();
        all.dedup();
        assert!(all.len() == 100 && all.iter().all(|secret| secret.len() == 2 + 43));
    }
}
