//! Policies that an operator puts in force.

use super::CallBack;

/// A policy that allows every tool it does not deny.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyPlan {
    /// The denied tools.
    pub denied: Vec<usize>,
    /// The wall time limit of an attempt, in milliseconds.
    pub wall_ms: Option<u64>,
    /// What its destructor does.
    pub on_drop: Option<CallBack>,
}

impl PolicyPlan {
    /// Whether this tool may run.
    pub fn allows(&self, tool: usize) -> bool {
        !self.denied.contains(&tool)
    }
}
