//! Policies and capabilities, built from a program's plans.

use super::{Stage, calls_back::OnDrop};
use crate::sim::program::{PolicyPlan, Program};
use serde_json::Value;
use std::{sync::Arc, time::Duration};
use toolyard::{
    Caller, Capabilities, Denied, Grant, PolicyIdentity, PolicyRules, ResourceLimits, Rule, RuntimePolicy,
    ToolSpec, event::Epoch,
};

/// The policy of a plan.
pub(super) struct Planned {
    rules: PolicyRules,
    has_fingerprint: bool,
    _on_drop: Option<OnDrop>,
}

impl Planned {
    pub(super) fn new(stage: &Arc<Stage>, plan: &PolicyPlan) -> Self {
        let on_drop = plan.on_drop.map(|does| OnDrop::new(stage, does));
        Self { rules: rules(plan), has_fingerprint: plan.has_fingerprint, _on_drop: on_drop }
    }
}

impl RuntimePolicy for Planned {
    fn check(&self, tool: &ToolSpec, args: &Value, caller: &Caller<'_>) -> Result<Grant, Denied> {
        self.rules.check(tool, args, caller)
    }

    fn fingerprint(&self) -> Option<[u8; 32]> {
        if self.has_fingerprint { self.rules.fingerprint() } else { None }
    }
}

/// The policy with this version, as digests know it.
pub(in crate::sim) fn identity(plan: &PolicyPlan, epoch: Epoch, version: u64) -> PolicyIdentity {
    match plan.has_fingerprint.then(|| rules(plan).fingerprint()).flatten() {
        Some(fingerprint) => PolicyIdentity::Content(fingerprint),
        None => PolicyIdentity::Life { epoch, version },
    }
}

fn rules(plan: &PolicyPlan) -> PolicyRules {
    let mut limits = ResourceLimits::unlimited();
    limits.wall_time = plan.wall_ms.map(Duration::from_millis);
    let allow = PolicyRules::new(Rule::Allow(Grant { limits, ..Grant::own_form() }));
    plan.denied.iter().fold(allow, |rules, tool| rules.tool(Program::tool_name(*tool), Rule::Deny))
}

/// Capabilities for all tools but the barred ones; `None` if no tool is barred.
pub(in crate::sim) fn capabilities(program: &Program, barred: &[usize]) -> Option<Capabilities> {
    let granted = (0..program.tools.len()).filter(|tool| !barred.contains(tool)).map(Program::tool_name);
    (!barred.is_empty()).then(|| Capabilities::default().tools(granted))
}
