//! Destructors of the embedder that use the engine.

use super::PolicyPlan;

/// What a destructor does with the engine that drops its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallBack {
    /// Looks at everything that can be looked at.
    Look,
    /// Cancels one call of that root session's tree.
    CancelCall(usize, u32),
    /// Cancels all calls in flight of a session.
    CancelCalls(usize),
    /// Puts a policy in force.
    SetPolicy(usize),
    /// Forks a sub-agent of a session, and drops it.
    Fork(usize),
}

impl CallBack {
    /// Whether it cancels calls, or may by dropping one of these policies.
    pub fn may_cancel(self, policies: &[PolicyPlan]) -> bool {
        let cancels = |does| matches!(does, Self::CancelCall(..) | Self::CancelCalls(_));
        match self {
            Self::SetPolicy(_) => policies.iter().filter_map(|policy| policy.on_drop).any(cancels),
            does => cancels(does),
        }
    }
}
