//! The error for a call that its budget does not allow.

use std::fmt;

/// The owner of an allowance (RT-11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum BudgetOwner {
    /// One turn of a session.
    Turn,
    /// A session, or one fork of it.
    Session,
    /// A session and all its forks.
    Tree,
    /// All calls of one tool.
    Tool,
}

impl BudgetOwner {
    /// The word for it in messages.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Session => "session",
            Self::Tree => "tree",
            Self::Tool => "tool",
        }
    }
}

/// The quantity that is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Unit {
    /// Calls.
    Calls,
    /// Units of cost.
    Cost,
}

/// An allowance with too little left for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) struct Spent {
    /// The owner of the allowance.
    pub(crate) owner: BudgetOwner,
    /// The quantity that does not suffice.
    pub(crate) unit: Unit,
    /// The limit of that quantity.
    pub(crate) limit: u64,
    /// How much is left.
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
            "the budget of this {} does not cover this call: {} of {} {unit} left",
            self.owner.as_str(),
            self.left,
            self.limit
        )
    }
}
