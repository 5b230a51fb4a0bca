//! Destructors of the embedder that use the engine.

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
