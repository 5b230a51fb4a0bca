//! Questions to the approver and the answers.

/// What it takes for a tool's calls to be allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// Nothing.
    Free,
    /// The approver is asked.
    Asked,
    /// The approver is asked once for all calls that differ only in their numbers.
    AskedOnce,
    /// Its calls are always refused.
    Forbidden,
}

impl Consent {
    /// Whether the approver is asked.
    pub const fn asks(self) -> bool {
        matches!(self, Self::Asked | Self::AskedOnce)
    }
}

/// What an approver that says yes changes of a call's arguments (SM-5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EditPlan {
    /// Nothing.
    #[default]
    Nothing,
    /// It adds something that the tool does not mind.
    Fits,
    /// So many times something that may not run, and then nothing.
    Misfits(u32),
}

/// What the approver does when asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerPlan {
    /// Yes, after so many milliseconds.
    Yes(u64),
    /// Yes to all calls of the session that differ only in their numbers, after so many milliseconds.
    Always(u64),
    /// No, after so many milliseconds.
    No(u64),
    /// Never answers.
    Never,
    /// Panics.
    Panic,
}
