//! The report of a run.

use super::{Entry, check::Violation};

/// The report of a run.
#[derive(Debug, Clone)]
pub struct Report {
    /// The rules that the run broke.
    pub violations: Vec<Violation>,
    /// Equal for runs that took the same course.
    pub trace_hash: u64,
    /// The journal of the run.
    pub entries: Vec<Entry>,
    /// The journals of all lives of the run that has several, one behind the other, if there was one.
    pub of_lives: Vec<Entry>,
    /// How each life of the engine has ended in the run that has several, if there was one.
    pub ends: Vec<String>,
}

impl Report {
    /// The rule of the first violation, which is the one that counts.
    pub fn rule(&self) -> Option<&'static str> {
        self.violations.first().map(|violation| violation.rule)
    }
}
