//! Where an agent is in its session tree (CL-7, SM-8).

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::{cmp::Ordering, fmt, sync::Arc};

/// The position of the agent that a session is opened for.
const ROOT: &str = "root";

/// The position of an agent in its session tree: `root`, `root/1`, `root/1/2`, or `root/researcher` for a sub-agent
/// that was given a name. Cheap to clone.
///
/// # Examples
/// ```
/// use toolyard_core::AgentPath;
/// assert_eq!(AgentPath::from("root"), AgentPath::root());
/// assert!(AgentPath::root() < AgentPath::from("root/1"));
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct AgentPath(
    /// `None` for the root, as most agents are: events are full of its position, and then nothing is counted.
    Option<Arc<str>>,
);

impl AgentPath {
    /// How deep sub-agents can nest (CL-7).
    pub const DEPTH_MAX: u8 = 8;

    /// The most bytes of a sub-agent's name.
    pub const NAME_BYTES_MAX: usize = 128;

    /// The agent that a session is opened for.
    pub const fn root() -> Self {
        Self(None)
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or(ROOT)
    }

    /// The agent that this text names: `root`, or `root` and the [names](Self::is_name) or numbers of at most
    /// [`DEPTH_MAX`](Self::DEPTH_MAX) sub-agents. `None` for what can be no agent's position.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::AgentPath;
    /// assert_eq!(AgentPath::parse("root/researcher/2").unwrap().name(), "2");
    /// assert!(["", "researcher", "root/", "root/..", "root/02"].iter().all(|text| AgentPath::parse(text).is_none()));
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let mut names = text.split('/');
        let is_root = names.next() == Some(ROOT);
        let mut depth = 0;
        let is_agent = names.all(|name| {
            depth += 1;
            depth <= Self::DEPTH_MAX && (Self::is_name(name) || is_number(name))
        });
        (is_root && is_agent).then(|| Self::from(text))
    }

    /// Whether a sub-agent may have this name: it begins with a letter, which tells it from a number, and goes on with
    /// letters, digits, `.`, `_` and `-` of ASCII, at most [`NAME_BYTES_MAX`](Self::NAME_BYTES_MAX) in all.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::AgentPath;
    /// assert!(AgentPath::is_name("researcher-2") && !AgentPath::is_name("2") && !AgentPath::is_name("a/b"));
    /// ```
    pub fn is_name(name: &str) -> bool {
        name.starts_with(|first: char| first.is_ascii_alphabetic())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
            && name.len() <= Self::NAME_BYTES_MAX
    }

    /// The name of the agent among those of its parent: the last part of its position.
    ///
    /// # Examples
    /// ```
    /// use toolyard_core::AgentPath;
    /// assert_eq!(AgentPath::from("root/researcher/2").name(), "2");
    /// ```
    pub fn name(&self) -> &str {
        self.as_str().rsplit('/').next().unwrap_or(self.as_str())
    }
}

impl<T: Into<Arc<str>>> From<T> for AgentPath {
    fn from(text: T) -> Self {
        Self(Some(text.into()).filter(|text| **text != *ROOT))
    }
}

impl PartialOrd for AgentPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// That of the texts.
impl Ord for AgentPath {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl fmt::Display for AgentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for AgentPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AgentPath").field(&self.as_str()).finish()
    }
}

impl Serialize for AgentPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for AgentPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Arc::<str>::deserialize(deserializer).map(Self::from)
    }
}

/// Whether it is what a sub-agent without a name has in its place: a number from 1, in its one spelling.
fn is_number(text: &str) -> bool {
    !text.starts_with(['0', '+']) && text.parse::<u64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeSet, HashSet};

    /// OB-2: the root is one position, wherever it comes from, and it is written, shown and ordered as its text.
    #[test]
    fn the_root_is_one_position() {
        let read = |text: &str| serde_json::from_str::<AgentPath>(text).unwrap();
        let all =
            [AgentPath::root(), AgentPath::from("root"), read("\"root\""), AgentPath::parse("root").unwrap()];
        assert_eq!(all.iter().collect::<HashSet<_>>().len(), 1);
        assert_eq!(serde_json::to_string(&all[0]).unwrap(), "\"root\"");
        assert_eq!(format!("{:?} {}", all[0], all[1]), "AgentPath(\"root\") root");
        let sorted: BTreeSet<_> = ["root/1", "root", "a", "z"].map(AgentPath::from).into();
        assert_eq!(sorted.iter().map(AgentPath::as_str).collect::<Vec<_>>(), ["a", "root", "root/1", "z"]);
    }

    /// SM-8: a position is `root` and names or numbers under it, each with one spelling, as deep as forks go.
    #[test]
    fn a_position_has_one_spelling() {
        let (name, deepest) = ("n".repeat(AgentPath::NAME_BYTES_MAX), "root/a".to_owned() + &"/1".repeat(7));
        for agent in ["root", "root/1", "root/18446744073709551615", "root/a.b_c-d/2", "root/Z", &deepest] {
            assert_eq!(AgentPath::parse(agent).unwrap().as_str(), agent);
        }
        assert!(AgentPath::parse(&format!("root/{name}")).is_some());
        let odd =
            ["", "Root", "rooted", "/root", "root/", "root//a", "root/..", "root/-x", "root/_", "root/a b"];
        let numbers = ["root/0", "root/01", "root/+1", "root/1x", "root/18446744073709551616"];
        for other in odd.iter().chain(&numbers) {
            assert_eq!(AgentPath::parse(other), None, "{other}");
        }
        assert_eq!(AgentPath::parse(&format!("root/{name}n")), None);
        assert_eq!(AgentPath::parse(&format!("{deepest}/1")), None);
    }
}
