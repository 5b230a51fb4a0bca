//! Policies that an operator puts in force.

use super::CallBack;

/// A policy that allows every tool it does not deny.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PolicyPlan {
    /// The denied tools.
    pub denied: Vec<usize>,
    /// The wall time limit of an attempt, in milliseconds.
    pub wall_ms: Option<u64>,
    /// Whether it gives a fingerprint of its content.
    pub has_fingerprint: bool,
    /// What its destructor does.
    pub on_drop: Option<CallBack>,
}

impl PolicyPlan {
    /// Whether this tool may run.
    pub fn allows(&self, tool: usize) -> bool {
        !self.denied.contains(&tool)
    }

    /// Whether digests do not tell it from another one (SM-7).
    pub fn is_like(&self, other: &Self) -> bool {
        let denies = |one: &Self, other: &Self| one.denied.iter().all(|tool| other.denied.contains(tool));
        let is_known = self.has_fingerprint && other.has_fingerprint;
        is_known && self.wall_ms == other.wall_ms && denies(self, other) && denies(other, self)
    }
}
