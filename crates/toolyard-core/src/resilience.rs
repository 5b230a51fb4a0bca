//! How calls survive a flaky tool: when to try again, when to stop asking, and what a remote says of both.
//!
//! ```text
//!   RetryPolicy ──► how often, how long between (RT-1, RT-2)     retry_after ──► what the remote asks for (RT-3)
//!   BreakerPolicy ─► when to stop asking, for how long (CB-2, CB-4); BreakerState ─► where a breaker is (CB-10)
//! ```
//!
//! These are settings and words, each valid from the start; the engine decides with them.

mod breaker;
mod hint;
mod policy_error;
mod retry;
mod state;

pub use breaker::BreakerPolicy;
pub use hint::{HINT_MAX, retry_after, retry_after_ms};
pub use policy_error::PolicyError;
pub use retry::{Jitter, RetryPolicy};
pub use state::BreakerState;
