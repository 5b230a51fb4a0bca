//! Fingerprints, which tell whether two calls under one key ask for the same (ID-2).

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt;
use toolyard_core::write_canonical_json;

/// SHA-256 of a call's canonical arguments and its tool's version (ID-2).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a call with these arguments to a tool of this version.
    pub(crate) fn of(args: &Value, version: &str) -> Self {
        let mut hash = Buffered { hash: Sha256::new(), waiting: [0; WAITING_MAX], length: 0 };
        // The length prefix separates the version from the arguments.
        hash.add(&(version.len() as u64).to_be_bytes());
        hash.add(version.as_bytes());
        write_canonical_json(args, &mut hash).expect("a hash takes everything");
        Self(hash.finish())
    }
}

/// How many bytes wait to be hashed: more than the arguments of most calls have.
const WAITING_MAX: usize = 256;

/// A hash that takes small pieces. They wait, because each step of a hash costs more than to copy a piece.
struct Buffered {
    hash: Sha256,
    waiting: [u8; WAITING_MAX],
    length: usize,
}

impl Buffered {
    #[inline]
    fn add(&mut self, piece: &[u8]) {
        if let Some(room) = self.waiting[self.length..].get_mut(..piece.len()) {
            room.copy_from_slice(piece);
            self.length += piece.len();
        } else {
            self.pass_on(piece);
        }
    }

    #[cold]
    fn pass_on(&mut self, piece: &[u8]) {
        self.hash.update(&self.waiting[..self.length]);
        self.hash.update(piece);
        self.length = 0;
    }

    fn finish(mut self) -> [u8; 32] {
        self.hash.update(&self.waiting[..self.length]);
        self.hash.finalize().into()
    }
}

impl fmt::Write for Buffered {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text.as_bytes());
        Ok(())
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

    /// ID-2: a fingerprint is the hash of the version with its length, and the canonical text, however long that is.
    #[test]
    fn it_is_one_hash_of_all() {
        for length in [0, 1, 200, 230, 240, 250, 260, 1000] {
            let args = json!({"a": "x".repeat(length), "b": [1, "y".repeat(length)]});
            let mut text = 3u64.to_be_bytes().to_vec();
            text.extend_from_slice(b"1.2");
            text.extend_from_slice(toolyard_core::canonical_json(&args).as_bytes());
            let whole: [u8; 32] = Sha256::digest(&text).into();
            assert_eq!(Fingerprint::of(&args, "1.2").0, whole, "{length}");
        }
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
