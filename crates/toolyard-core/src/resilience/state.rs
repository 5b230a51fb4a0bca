//! The state of a circuit breaker (CB-10).

use serde::{Deserialize, Serialize};
use std::fmt;

/// The state of a circuit breaker: closed admits, open refuses, half-open probes (CB-10).
///
/// # Examples
/// ```
/// use toolyard_core::BreakerState::{Closed, HalfOpen, Open};
/// assert!(Closed.may_become(Open) && HalfOpen.may_become(Closed));
/// assert!(!Open.may_become(Closed));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BreakerState {
    /// Calls pass, and their results are counted.
    #[default]
    Closed,
    /// Calls are refused until the open time is over.
    Open,
    /// One call at a time passes as a probe.
    HalfOpen,
    /// An operator forces calls to be refused.
    ForcedOpen,
    /// An operator forces calls to pass, whatever their results.
    ForcedClosed,
}

impl BreakerState {
    /// Every state.
    pub const ALL: [Self; 5] =
        [Self::Closed, Self::Open, Self::HalfOpen, Self::ForcedOpen, Self::ForcedClosed];

    /// The word used in events and telemetry.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
            Self::ForcedOpen => "forced_open",
            Self::ForcedClosed => "forced_closed",
        }
    }

    /// Whether an operator forced this state.
    pub const fn is_forced(self) -> bool {
        matches!(self, Self::ForcedOpen | Self::ForcedClosed)
    }

    /// Whether this transition is legal (CB-10). Staying in a state is not a transition.
    pub fn may_become(self, to: Self) -> bool {
        match (self, to) {
            (Self::Closed, Self::Open) | (Self::Open, Self::HalfOpen) => true,
            (Self::HalfOpen, Self::Closed | Self::Open) => true,
            (from, Self::Closed) => from.is_forced(),
            (from, to) => to.is_forced() && from != to,
        }
    }
}

impl fmt::Display for BreakerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::BreakerState::{self, Closed, ForcedClosed, ForcedOpen, HalfOpen, Open};

    /// CB-10: exactly the transitions of the rule are legal.
    #[test]
    fn only_the_moves_of_the_rule_are_legal() {
        let mut legal = vec![(Closed, Open), (Open, HalfOpen), (HalfOpen, Closed), (HalfOpen, Open)];
        legal.extend([(ForcedOpen, Closed), (ForcedClosed, Closed)]);
        for forced in [ForcedOpen, ForcedClosed] {
            legal.extend(BreakerState::ALL.into_iter().filter(|from| *from != forced).map(|s| (s, forced)));
        }
        for from in BreakerState::ALL {
            for to in BreakerState::ALL {
                assert_eq!(from.may_become(to), legal.contains(&(from, to)), "{from} to {to}");
            }
        }
    }

    /// CB-10: events use the serialised word.
    #[test]
    fn a_state_has_one_word() {
        for state in BreakerState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
    }
}
