//! Policies that an operator puts in force.

/// A policy: it allows what it does not deny.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyPlan {
    /// The tools that may not run.
    pub denied: Vec<usize>,
    /// How long an attempt may take at most, in milliseconds.
    pub wall_ms: Option<u64>,
}

impl PolicyPlan {
    /// Whether this tool may run.
    pub fn allows(&self, tool: usize) -> bool {
        !self.denied.contains(&tool)
    }
}
