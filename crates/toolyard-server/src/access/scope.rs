//! What a token lets its holder do.

use serde::{Deserialize, Serialize};
use std::{fmt, str::FromStr};
use utoipa::ToSchema;

/// One thing that a token lets its holder do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Open sessions and make calls in them.
    Call,
    /// Read and answer the questions of all sessions.
    Approve,
    /// See all sessions, turns and events.
    Observe,
    /// Change pools and breakers, reload the configuration, cancel and close anybody's sessions.
    Operate,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Self; 4] = [Self::Call, Self::Approve, Self::Observe, Self::Operate];

    /// The word in configurations and answers.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Approve => "approve",
            Self::Observe => "observe",
            Self::Operate => "operate",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error for a word that is no scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no scope: these are call, approve, observe and operate")]
pub struct UnknownScope(pub String);

impl FromStr for Scope {
    type Err = UnknownScope;

    fn from_str(word: &str) -> Result<Self, UnknownScope> {
        Self::ALL
            .into_iter()
            .find(|scope| scope.as_str() == word)
            .ok_or_else(|| UnknownScope(word.to_owned()))
    }
}
