//! Why a call may not start.

use std::fmt;

/// Whose allowance it is (RT-11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Whose {
    /// One turn of a session.
    Turn,
    /// A session, or one fork of it.
    Session,
    /// A session and all its forks.
    Tree,
    /// All calls of one tool.
    Tool,
}

impl Whose {
    /// The word for it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Session => "session",
            Self::Tree => "tree",
            Self::Tool => "tool",
        }
    }
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Unit {
    /// Calls.
    Calls,
    /// Units of cost.
    Cost,
}

/// An allowance that has not enough left for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) struct Spent {
    /// Whose it is.
    pub(crate) whose: Whose,
    /// Of what there is not enough.
    pub(crate) unit: Unit,
    /// How much there was.
    pub(crate) limit: u64,
    /// How much there is.
    pub(crate) left: u64,
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.unit {
            Unit::Calls => "calls",
            Unit::Cost => "units of cost",
        };
        write!(
            f,
            "the budget of this {} is spent: {} of {} {unit} left",
            self.whose.as_str(),
            self.left,
            self.limit
        )
    }
}
