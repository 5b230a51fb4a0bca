//! Policies and capabilities, built from a program's plans.

use crate::sim::program::{PolicyPlan, Program};
use std::time::Duration;
use toolyard::{Capabilities, Grant, PolicyRules, ResourceLimits, Rule};

/// The policy of a plan.
pub(super) fn rules(plan: &PolicyPlan) -> PolicyRules {
    let mut limits = ResourceLimits::unlimited();
    limits.wall_time = plan.wall_ms.map(Duration::from_millis);
    let allow = PolicyRules::new(Rule::Allow(Grant { limits, ..Grant::host() }));
    plan.denied.iter().fold(allow, |rules, tool| rules.tool(Program::tool_name(*tool), Rule::Deny))
}

/// Capabilities for all tools but the barred ones; `None` if no tool is barred.
pub(in crate::sim) fn capabilities(program: &Program, barred: &[usize]) -> Option<Capabilities> {
    let granted = (0..program.tools.len()).filter(|tool| !barred.contains(tool)).map(Program::tool_name);
    (!barred.is_empty()).then(|| Capabilities::default().tools(granted))
}
