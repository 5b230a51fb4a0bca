//! What came of a run.

use super::{Entry, check::Violation};

/// What came of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// What was not as it has to be.
    pub violations: Vec<Violation>,
    /// Equal for runs that went the same way.
    pub trace_hash: u64,
    /// All that was seen.
    pub entries: Vec<Entry>,
}

impl Report {
    /// The violation that counts: the first.
    pub fn rule(&self) -> Option<&'static str> {
        self.violations.first().map(|violation| violation.rule)
    }
}
