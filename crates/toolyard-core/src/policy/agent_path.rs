//! Where an agent is in its session tree (CL-7, SM-8).

use super::AgentPath;

impl AgentPath {
    /// How deep sub-agents can nest (CL-7).
    pub const DEPTH_MAX: u8 = 8;

    /// The most bytes of a sub-agent's name.
    pub const NAME_BYTES_MAX: usize = 128;

    /// The agent that a session is opened for.
    pub fn root() -> Self {
        Self::from("root")
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
        let is_root = names.next() == Some("root");
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

/// Whether it is what a sub-agent without a name has in its place: a number from 1, in its one spelling.
fn is_number(text: &str) -> bool {
    !text.starts_with(['0', '+']) && text.parse::<u64>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

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
