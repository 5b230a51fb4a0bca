//! A policy that is a list of rules by tool name.

use super::{Caller, Denied, Grant, RuntimePolicy};
use crate::{ContentHash, SideEffects, ToolSpec};
use serde_json::Value;
use std::collections::BTreeMap;

/// What a rule decides about its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// The calls may run with this grant.
    Allow(Grant),
    /// The calls may not run.
    Deny,
}

impl Rule {
    /// Allows the calls in their tool's own form, without limits.
    pub fn allow() -> Self {
        Self::Allow(Grant::own_form())
    }

    fn fingerprint(self) -> [u8; 32] {
        match self {
            Self::Allow(grant) => ContentHash::new("allow").bytes(&grant.fingerprint()).finish(),
            Self::Deny => ContentHash::new("deny").finish(),
        }
    }
}

/// A policy by tool name, with a default for tools without a rule (PO-1).
///
/// A rule applies to one name, or with a trailing `*` to all names with that prefix, such as `git__*`. The exact name
/// is tried first, then the longest prefix, then the rule for the tool's side effects, and last the default.
///
/// # Examples
/// ```
/// use serde_json::json;
/// use toolyard_core::{
///     AgentPath, Caller, Denied, PolicyRules, Rule, RuntimePolicy, SessionId, SideEffects, ToolSpec,
/// };
/// let rules = PolicyRules::new(Rule::Deny)
///     .side_effects(SideEffects::Read, Rule::allow())
///     .tool("git__*", Rule::allow())
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
    /// Rules for all names with this prefix.
    by_prefix: BTreeMap<String, Rule>,
}

impl PolicyRules {
    /// A policy with this default for every tool.
    pub fn new(default: Rule) -> Self {
        Self {
            default,
            by_side_effects: [None; SideEffects::ALL.len()],
            by_name: BTreeMap::new(),
            by_prefix: BTreeMap::new(),
        }
    }

    /// Sets the rule for tools with these side effects that no rule names.
    #[must_use]
    pub fn side_effects(mut self, side_effects: SideEffects, rule: Rule) -> Self {
        self.by_side_effects[side_effects as usize] = Some(rule);
        self
    }

    /// Sets the rule for the tool of this name or, if it ends with `*`, for all tools with that prefix.
    #[must_use]
    pub fn tool(mut self, name: impl Into<String>, rule: Rule) -> Self {
        let name = name.into();
        match name.strip_suffix('*') {
            Some(prefix) => self.by_prefix.insert(prefix.to_owned(), rule),
            None => self.by_name.insert(name, rule),
        };
        self
    }

    /// The rule for a tool.
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

    fn fingerprint(&self) -> Option<[u8; 32]> {
        // Every field, so that none is forgotten.
        let Self { default, by_side_effects, by_name, by_prefix } = self;
        let rules = |rules: &BTreeMap<String, Rule>| {
            let rule = |(name, rule): (&String, &Rule)| {
                ContentHash::new("rule").text(name).bytes(&rule.fingerprint()).finish()
            };
            rules.iter().map(rule).collect::<Vec<_>>()
        };
        let hash = ContentHash::new("toolyard policy rules 1").bytes(&default.fingerprint());
        let hash = by_side_effects.iter().fold(hash, |hash, rule| hash.option(rule.map(Rule::fingerprint)));
        Some(hash.set(rules(by_name)).set(rules(by_prefix)).finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ResourceLimits, Sandbox};
    use std::{collections::BTreeSet, time::Duration};

    /// PO-1: the most specific rule decides.
    #[test]
    fn the_closest_rule_decides() {
        let wasm = Rule::Allow(Grant::within(super::super::Sandbox::Wasm));
        let rules = PolicyRules::new(Rule::Deny)
            .side_effects(SideEffects::Write, wasm)
            .tool("a*", Rule::allow())
            .tool("ab*", Rule::Deny)
            .tool("abc", wasm)
            .tool("*", Rule::Deny);
        let of = |name| rules.rule(name, SideEffects::Write);
        assert_eq!([of("abc"), of("abd"), of("ac")], [wasm, Rule::Deny, Rule::allow()]);
        assert_eq!(of("x"), Rule::Deny, "a star alone is for every name, before side effects");
        let rules = PolicyRules::new(Rule::Deny).side_effects(SideEffects::Write, wasm);
        assert_eq!(rules.rule("x", SideEffects::Write), wasm);
        assert_eq!(rules.rule("x", SideEffects::Network), Rule::Deny);
    }

    /// SM-7: the fingerprint covers every rule and every field of a grant, and not the order in which rules were set.
    #[test]
    fn the_fingerprint_is_that_of_the_content() {
        let of = |rules: PolicyRules| rules.fingerprint().unwrap();
        let base = || PolicyRules::new(Rule::Deny).tool("a", Rule::allow()).tool("b", Rule::Deny);
        let other_order = PolicyRules::new(Rule::Deny).tool("b", Rule::Deny).tool("a", Rule::allow());
        assert_eq!(of(base()), of(other_order));
        let limited = |set: fn(&mut ResourceLimits)| {
            let mut limits = ResourceLimits::unlimited();
            set(&mut limits);
            base().tool("a", Rule::Allow(Grant { limits, ..Grant::default() }))
        };
        let by_sandbox = Sandbox::ALL.map(|it| base().tool("a", Rule::Allow(Grant::within(it))));
        let by_effects = SideEffects::ALL.map(|it| base().side_effects(it, Rule::Deny));
        let mut others = vec![
            base(),
            PolicyRules::new(Rule::allow()).tool("a", Rule::allow()).tool("b", Rule::Deny),
            base().tool("c", Rule::Deny),
            base().tool("a*", Rule::allow()),
            base().tool("*", Rule::Deny),
            base().tool("a", Rule::Deny),
            limited(|limits| limits.wall_time = Some(Duration::from_nanos(1))),
            limited(|limits| limits.wall_time = Some(Duration::from_secs(1))),
            limited(|limits| limits.memory = Some(1)),
            limited(|limits| limits.memory_per_process = Some(1)),
            limited(|limits| limits.cpu_time = Some(Duration::from_nanos(1))),
            limited(|limits| limits.cpu_time_per_process = Some(Duration::from_nanos(1))),
            limited(|limits| limits.processes = Some(1)),
            limited(|limits| limits.open_files = Some(1)),
            limited(|limits| limits.output_bytes = Some(1)),
            limited(|limits| limits.output_bytes = Some(0)),
        ];
        others.extend(by_sandbox.into_iter().chain(by_effects));
        let different: BTreeSet<_> = others.iter().cloned().map(of).collect();
        assert_eq!(different.len(), others.len());
    }
}
