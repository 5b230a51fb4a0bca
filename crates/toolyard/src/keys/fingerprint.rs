//! Fingerprints, which tell whether two calls under one key ask for the same (ID-2).

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt;
use toolyard_core::canonical_json;

/// SHA-256 of a call's canonical arguments and its tool's version (ID-2).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a call with these arguments to a tool of this version.
    pub(crate) fn of(args: &Value, version: &str) -> Self {
        let mut hash = Sha256::new();
        // The length prefix separates the version from the arguments.
        hash.update((version.len() as u64).to_be_bytes());
        hash.update(version);
        hash.update(canonical_json(args));
        Self(hash.finalize().into())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{from_str, json};

    /// ID-2: the spelling of arguments does not matter.
    #[test]
    fn equal_arguments_have_one_fingerprint() {
        let args = Fingerprint::of(&json!({"a": 100, "b": [1]}), "1");
        for text in [r#"{"b":[1.0],"a":1e2}"#, "{ \"a\": 100.0,\n\"b\": [ 1 ] }"] {
            assert_eq!(Fingerprint::of(&from_str(text).unwrap(), "1"), args, "{text}");
        }
        assert_eq!(format!("{args:?}").len(), 64);
    }

    /// ID-2: the arguments and the version both count, and so does where one ends and the other starts.
    #[test]
    fn other_arguments_or_another_version_have_another() {
        let all = [
            Fingerprint::of(&json!({"a": 1}), "1"),
            Fingerprint::of(&json!({"a": 2}), "1"),
            Fingerprint::of(&json!({"a": 1}), "2"),
            Fingerprint::of(&json!(1), "11"),
            Fingerprint::of(&json!(11), "1"),
            Fingerprint::of(&json!(9_007_199_254_740_992_u64), "1"),
            Fingerprint::of(&json!(9_007_199_254_740_993_u64), "1"),
        ];
        let different: std::collections::HashSet<_> = all.iter().map(|print| print.0).collect();
        assert_eq!(different.len(), all.len());
    }
}
