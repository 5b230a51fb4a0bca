//! The exact sentences that providers expect in a result.

/// How Anthropic wants the calls of a toolset answered that were not run because one before them failed.
pub const NOT_EXECUTED: &str = "Not executed: an earlier action in this turn failed.";

/// How a call is answered that has no outcome: providers want every call answered.
pub const NO_RESULT: &str = "Not executed: no result was recorded for this call.";
