//! Maps tool names that a provider refuses to names it accepts, and back.
//!
//! ```text
//!   fs_read   ─► fs_read             a name that the rule allows stays
//!   fs.list   ─► fs_list             elsewhere, characters that the rule does not allow are replaced
//!   fs.read   ─► fs_read_5b1c…       and a hash of the original is added if the result is already taken
//! ```

use std::collections::{BTreeSet, HashMap, HashSet};

/// The names that a provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameRule {
    /// `^[a-zA-Z0-9_-]{1,64}$`: OpenAI and Anthropic.
    Plain,
    /// A letter or an underscore, then also digits, dots, colons and dashes, at most 64 characters: Gemini.
    Dotted,
    /// Every name: MCP and the neutral form.
    Any,
}

impl NameRule {
    /// The most characters of a name, under the rules that have a limit.
    pub const CHARS_MAX: usize = 64;

    /// Whether a name may stay as it is.
    ///
    /// # Examples
    /// ```
    /// use toolyard_wire::NameRule;
    /// assert!(!NameRule::Plain.allows("fs.read"));
    /// assert!(NameRule::Dotted.allows("fs.read"));
    /// assert!(!NameRule::Dotted.allows("7zip"));
    /// ```
    pub fn allows(self, name: &str) -> bool {
        let fits = (1..=Self::CHARS_MAX).contains(&name.len()) && name.chars().all(|c| self.allows_char(c));
        match self {
            Self::Plain => fits,
            Self::Dotted => fits && starts_well(name),
            Self::Any => true,
        }
    }

    fn allows_char(self, c: char) -> bool {
        match self {
            Self::Plain => c.is_ascii_alphanumeric() || matches!(c, '_' | '-'),
            Self::Dotted => c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'),
            Self::Any => true,
        }
    }

    /// The closest name that the rule allows.
    fn closest(self, name: &str) -> String {
        let mut closest: String =
            name.chars().map(|c| if self.allows_char(c) { c } else { '_' }).take(Self::CHARS_MAX).collect();
        if !starts_well(&closest) && (self == Self::Dotted || closest.is_empty()) {
            closest.insert(0, '_');
            closest.truncate(Self::CHARS_MAX);
        }
        closest
    }
}

fn starts_well(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// Maps tool names to names that a provider accepts, and back. The same set of names gives the same map in any
/// order, and no two names map to the same one.
///
/// # Examples
/// ```
/// use toolyard_wire::{NameMap, NameRule};
/// let names = NameMap::new(NameRule::Plain, ["fs.read", "shell"]);
/// assert_eq!(names.wire("fs.read"), "fs_read");
/// assert_eq!(names.wire("shell"), "shell");
/// assert_eq!(names.original("fs_read"), Some("fs.read"));
/// assert_eq!(names.original("rm"), None);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameMap {
    to_wire: HashMap<String, String>,
    to_original: HashMap<String, String>,
}

impl NameMap {
    /// Builds the map of these names under a rule.
    pub fn new<'a>(rule: NameRule, names: impl IntoIterator<Item = &'a str>) -> Self {
        let names: BTreeSet<&str> = names.into_iter().collect();
        // Names that may stay go first, so that none of them depends on the others.
        let (stay, change): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| rule.allows(name));
        let mut taken: HashSet<String> = stay.iter().map(|name| (*name).to_owned()).collect();
        let mut map = Self::default();
        for name in stay {
            map.add(name, name.to_owned());
        }
        for name in change {
            let wire = unused(rule.closest(name), name, &taken);
            taken.insert(wire.clone());
            map.add(name, wire);
        }
        map
    }

    fn add(&mut self, name: &str, wire: String) {
        self.to_original.insert(wire.clone(), name.to_owned());
        self.to_wire.insert(name.to_owned(), wire);
    }

    /// The provider's name for a tool; a name that is not in the map stays.
    pub fn wire<'a>(&'a self, name: &'a str) -> &'a str {
        self.to_wire.get(name).map_or(name, String::as_str)
    }

    /// The original name for a provider's name.
    pub fn original(&self, wire: &str) -> Option<&str> {
        self.to_original.get(wire).map(String::as_str)
    }
}

/// `closest`, or if that is taken, `closest` with a hash of the name at its end.
fn unused(closest: String, name: &str, taken: &HashSet<String>) -> String {
    let mut candidate = closest.clone();
    let mut salt = 0_u64;
    while taken.contains(&candidate) {
        let tail = format!("_{:016x}", fnv1a(name, salt));
        // `NameRule::closest` returns ASCII, so every index is a character boundary.
        let head = closest.len().min(NameRule::CHARS_MAX - tail.len());
        candidate = format!("{}{tail}", &closest[..head]);
        salt += 1;
    }
    candidate
}

/// FNV-1a, because the standard library's hashes may change with the compiler, and names must not.
fn fnv1a(name: &str, salt: u64) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    name.bytes().chain(salt.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every name maps to a distinct allowed name and back, in either order of the names.
    fn check(rule: NameRule, names: &[&str]) -> NameMap {
        let map = NameMap::new(rule, names.iter().copied());
        assert_eq!(map, NameMap::new(rule, names.iter().rev().copied()));
        for name in names {
            let wire = map.wire(name);
            assert!(rule.allows(wire), "{name} became {wire}");
            assert_eq!(map.original(wire), Some(*name));
        }
        map
    }

    #[test]
    fn names_that_become_the_same_are_kept_apart() {
        let map = check(NameRule::Plain, &["a.b", "a:b", "a_b", "a/b", "a b"]);
        assert_eq!(map.wire("a_b"), "a_b");
    }

    #[test]
    fn long_names_that_share_their_begin_are_kept_apart() {
        let long = "x".repeat(64);
        let names = [format!("{long}1"), format!("{long}2"), long];
        check(NameRule::Plain, &names.each_ref().map(String::as_str));
    }

    #[test]
    fn names_in_no_latin_letter_get_one_each() {
        check(NameRule::Plain, &["é", "日本", "日木", "_"]);
        check(NameRule::Dotted, &["é", "7zip", ".git", "-x", "日本"]);
    }

    #[test]
    fn a_name_that_looks_like_a_mapped_one_keeps_its_own() {
        let first = NameMap::new(NameRule::Plain, ["a.b", "a_b"]);
        let mapped = first.wire("a.b").to_owned();
        check(NameRule::Plain, &["a.b", "a_b", &mapped]);
    }

    #[test]
    fn gemini_takes_dots_and_colons() {
        let map = check(NameRule::Dotted, &["fs.read", "mcp:github.list"]);
        assert_eq!(map.wire("mcp:github.list"), "mcp:github.list");
    }
}
