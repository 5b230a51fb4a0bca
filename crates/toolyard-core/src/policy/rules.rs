//! A policy that is a list: which tool may run, and in what.

use super::{Caller, Denied, Grant, RuntimePolicy};
use crate::{SideEffects, ToolSpec};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a rule says of the calls that it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// They may run like this.
    Allow(Grant),
    /// They may not run.
    Deny,
}

impl Rule {
    /// They may run in this process, without limits.
    pub fn host() -> Self {
        Self::Allow(Grant::host())
    }
}

/// A policy by tool names, with a default for those it does not name (PO-1).
///
/// A rule is for one name, or for all names that begin with what stands before a `*`: `git__*`. The name itself comes
/// first, then the longest beginning; then the rule for the tool's side effects, if there is one, then the default.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::{
///     AgentPath, Caller, Denied, PolicyRules, Rule, RuntimePolicy, SessionId, SideEffects, ToolSpec,
/// };
/// let rules = PolicyRules::new(Rule::Deny)
///     .side_effects(SideEffects::Read, Rule::host())
///     .tool("git__*", Rule::host())
///     .tool("git__push", Rule::Deny);
/// let (session, agent) = (SessionId::from("demo"), AgentPath::root());
/// let may = |spec: ToolSpec| rules.check(&spec, &json!({}), &Caller::new(&session, &agent)).is_ok();
/// assert!(may(ToolSpec::read("read_file")));
/// assert!(may(ToolSpec::write("git__commit")));
/// assert!(!may(ToolSpec::write("git__push")));
/// assert!(!may(ToolSpec::execute("shell")));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRules {
    default: Rule,
    by_side_effects: [Option<Rule>; SideEffects::ALL.len()],
    by_name: BTreeMap<String, Rule>,
    /// Rules for all names with this beginning.
    by_prefix: BTreeMap<String, Rule>,
}

impl PolicyRules {
    /// A policy that says this of every tool.
    pub fn new(default: Rule) -> Self {
        Self {
            default,
            by_side_effects: [None; SideEffects::ALL.len()],
            by_name: BTreeMap::new(),
            by_prefix: BTreeMap::new(),
        }
    }

    /// Says this of tools with these side effects that no rule names.
    #[must_use]
    pub fn side_effects(mut self, side_effects: SideEffects, rule: Rule) -> Self {
        self.by_side_effects[side_effects as usize] = Some(rule);
        self
    }

    /// Says this of the tool of this name, or of all whose name begins with what stands before a `*` at its end.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, rule: Rule) -> Self {
        let name = name.into();
        match name.strip_suffix('*') {
            Some(prefix) => self.by_prefix.insert(prefix.to_owned(), rule),
            None => self.by_name.insert(name, rule),
        };
        self
    }

    /// What is said of a tool.
    pub fn rule(&self, tool: &str, side_effects: SideEffects) -> Rule {
        let named = self.by_name.get(tool).or_else(|| self.longest_prefix(tool));
        named.copied().or(self.by_side_effects[side_effects as usize]).unwrap_or(self.default)
    }

    fn longest_prefix(&self, tool: &str) -> Option<&Rule> {
        let prefixes = self.by_prefix.iter().filter(|(prefix, _)| tool.starts_with(prefix.as_str()));
        prefixes.max_by_key(|(prefix, _)| prefix.len()).map(|(_, rule)| rule)
    }
}

impl RuntimePolicy for PolicyRules {
    fn check(&self, tool: &ToolSpec, _: &Value, _: &Caller<'_>) -> Result<Grant, Denied> {
        match self.rule(&tool.name, tool.side_effects) {
            Rule::Allow(grant) => Ok(grant),
            Rule::Deny => Err(Denied::Disabled),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// PO-1: the closest rule decides.
    #[test]
    fn the_closest_rule_decides() {
        let wasm = Rule::Allow(Grant { sandbox: super::super::Sandbox::Wasm, ..Grant::host() });
        let rules = PolicyRules::new(Rule::Deny)
            .side_effects(SideEffects::Write, wasm)
            .tool("a*", Rule::host())
            .tool("ab*", Rule::Deny)
            .tool("abc", wasm)
            .tool("*", Rule::Deny);
        let of = |name| rules.rule(name, SideEffects::Write);
        assert_eq!([of("abc"), of("abd"), of("ac")], [wasm, Rule::Deny, Rule::host()]);
        assert_eq!(of("x"), Rule::Deny, "a star alone is for every name, before side effects");
        let rules = PolicyRules::new(Rule::Deny).side_effects(SideEffects::Write, wasm);
        assert_eq!(rules.rule("x", SideEffects::Write), wasm);
        assert_eq!(rules.rule("x", SideEffects::Network), Rule::Deny);
    }
}
