//! Bytes in JSON, without loss: text where they are text.

use serde::{Deserialize, Serialize};
use std::{ffi::OsStr, os::unix::ffi::OsStrExt as _};

/// An argument, a variable or a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Bytes {
    Text(String),
    /// What is not UTF-8.
    Raw(Vec<u8>),
}

impl Bytes {
    pub(crate) fn of(text: &OsStr) -> Self {
        match text.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Raw(text.as_bytes().to_owned()),
        }
    }

    pub(crate) fn as_os_str(&self) -> &OsStr {
        match self {
            Self::Text(text) => OsStr::new(text),
            Self::Raw(bytes) => OsStr::from_bytes(bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_come_back() {
        let every: Vec<u8> = (1..=255).collect();
        for bytes in [b"".as_slice(), b"a b", "ü€😀".as_bytes(), b"\n\"\\\x7f", &[0xFF], &every] {
            let sent = serde_json::to_string(&Bytes::of(OsStr::from_bytes(bytes))).unwrap();
            let received: Bytes = serde_json::from_str(&sent).unwrap();
            assert_eq!(received.as_os_str().as_bytes(), bytes);
        }
        assert_eq!(serde_json::to_string(&Bytes::of(OsStr::new("ls -l"))).unwrap(), r#""ls -l""#);
    }
}
