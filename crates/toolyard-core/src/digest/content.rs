//! Hashing content field by field, so that different contents never look alike (SM-7).

use sha2::{Digest as _, Sha256};
use std::{fmt, path::Path};

/// Hashes the content of something, such as of a policy, field by field.
///
/// Every field goes in with its length, so that different fields never look alike: `"ab", "c"` is not `"a", "bc"`. What
/// has no order of its own goes in as a [set](Self::set), and what may be missing as an [option](Self::option). Name
/// each kind of content, with a number that changes with what its fields mean.
///
/// # Examples
/// ```
/// use toolyard_core::ContentHash;
/// let of = |names: &[&str], wall_ms: Option<u64>| {
///     let names = names.iter().map(|name| ContentHash::new("name 1").text(name).finish());
///     let wall_ms = wall_ms.map(|ms| ContentHash::new("ms 1").number(ms).finish());
///     ContentHash::new("my policy 1").set(names).option(wall_ms).finish()
/// };
/// assert_eq!(of(&["a", "b"], None), of(&["b", "a", "b"], None));
/// assert_ne!(of(&["a", "b"], None), of(&["ab"], None));
/// assert_ne!(of(&["a"], Some(0)), of(&["a"], None));
/// ```
#[derive(Clone)]
#[must_use = "a hash is what `finish` returns"]
pub struct ContentHash(
    /// Hashed in one go, because each step of a hash costs more than to copy what most fields have.
    Vec<u8>,
);

impl ContentHash {
    /// Begins the hash of this kind of content.
    pub fn new(kind: &str) -> Self {
        Self(Vec::with_capacity(256)).text(kind)
    }

    /// Adds a text.
    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// Adds bytes.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
        self.0.extend_from_slice(bytes);
        self
    }

    /// Adds a path, in the [standard library's own encoding](std::ffi::OsStr::as_encoded_bytes): UTF-8 where the path is
    /// that, and on Unix its bytes. What is no Unicode elsewhere may hash otherwise with another version of Rust.
    pub fn path(self, path: &Path) -> Self {
        self.bytes(path.as_os_str().as_encoded_bytes())
    }

    /// Adds a number.
    pub fn number(self, number: u64) -> Self {
        self.bytes(&number.to_be_bytes())
    }

    /// Adds the hash of something that may be missing.
    pub fn option(self, hash: Option<[u8; 32]>) -> Self {
        match hash {
            None => self.bytes(&[]),
            Some(hash) => self.bytes(&hash),
        }
    }

    /// Adds hashes in their order.
    pub fn list(self, hashes: impl IntoIterator<Item = [u8; 32]>) -> Self {
        let hashes: Vec<_> = hashes.into_iter().collect();
        self.bytes(hashes.as_flattened())
    }

    /// Adds hashes whose order does not matter. One that comes twice counts once.
    pub fn set(self, hashes: impl IntoIterator<Item = [u8; 32]>) -> Self {
        let mut hashes: Vec<_> = hashes.into_iter().collect();
        hashes.sort_unstable();
        hashes.dedup();
        self.list(hashes)
    }

    /// The hash.
    #[must_use]
    pub fn finish(self) -> [u8; 32] {
        Sha256::digest(&self.0).into()
    }

    /// The hash as 64 hexadecimal digits, for a [version](crate::ToolSpec::version).
    #[must_use]
    pub fn finish_hex(self) -> String {
        super::CallDigest(self.finish()).to_string()
    }
}

/// Shows nothing of what is hashed, which may be secret.
impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContentHash").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SM-7, PO-7: what is hashed does not show.
    #[test]
    fn what_is_hashed_does_not_show() {
        assert_eq!(format!("{:?}", ContentHash::new("t").text("hunter22")), "ContentHash { .. }");
    }
    use proptest::prelude::*;

    proptest! {
        /// SM-7: how the same bytes are split into fields counts.
        #[test]
        fn fields_do_not_run_together(bytes: Vec<u8>, one: prop::sample::Index, other: prop::sample::Index) {
            let of = |at: &prop::sample::Index| {
                let at = at.index(bytes.len() + 1);
                let (before, after) = bytes.split_at(at);
                (at, ContentHash::new("t").bytes(before).bytes(after).finish())
            };
            let ((one, first), (other, second)) = (of(&one), of(&other));
            prop_assert_eq!(first == second, one == other);
        }

        /// SM-7: neither the order of a set nor how often something is in it counts, but that of a list does.
        #[test]
        fn a_set_has_no_order(hashes: Vec<[u8; 32]>, again: prop::sample::Index, turn: prop::sample::Index) {
            let set = |hashes: &[[u8; 32]]| ContentHash::new("t").set(hashes.iter().copied()).finish();
            let list = |hashes: &[[u8; 32]]| ContentHash::new("t").list(hashes.iter().copied()).finish();
            let mut other = hashes.clone();
            if !hashes.is_empty() {
                other.rotate_left(turn.index(hashes.len()));
                prop_assert_eq!(list(&hashes) == list(&other), hashes == other);
                other.push(*again.get(&hashes));
            }
            prop_assert_eq!(set(&hashes), set(&other));
        }
    }
}
