//! Who is asked before a call runs, and what they say.

/// What has to happen before a tool runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    /// Nothing.
    Free,
    /// The approver is asked.
    Asked,
    /// The approver is asked once for all calls that differ in their numbers alone.
    AskedOnce,
    /// It never may.
    Forbidden,
}

impl Consent {
    /// Whether somebody is asked.
    pub const fn asks(self) -> bool {
        matches!(self, Self::Asked | Self::AskedOnce)
    }
}

/// What the approver does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerPlan {
    /// Yes, after so many milliseconds.
    Yes(u64),
    /// Yes, and so to all calls of the session that differ in their numbers alone, after so many milliseconds.
    Always(u64),
    /// No, after so many milliseconds.
    No(u64),
    /// Nothing.
    Never,
    /// It panics.
    Panic,
}
