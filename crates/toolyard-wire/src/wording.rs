//! The fixed sentences that go into results.

/// The answer that Anthropic expects for a toolset's call that did not run because an earlier one failed.
pub const NOT_EXECUTED: &str = "Not executed: an earlier action in this turn failed.";

/// The answer for a call without an outcome: providers require an answer to every call.
pub const NO_RESULT: &str = "Not executed: no result was recorded for this call.";
