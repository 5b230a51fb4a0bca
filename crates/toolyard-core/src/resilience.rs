//! How calls survive a flaky tool, and how they are held to what it, its servers and its callers can bear.
//!
//! ```text
//!   RetryPolicy ──► how often, how long between (RT-1, RT-2)     retry_after ──► what the remote asks for (RT-3)
//!   BreakerPolicy ─► when to stop asking, for how long (CB-2, CB-4); BreakerState ─► where a breaker is (CB-10)
//!   Rate ──► how often attempts may start (RT-10)     Budget ──► how many calls, and at what cost (RT-11)
//! ```
//!
//! These are settings and words, each valid from the start; the engine decides with them.

mod breaker;
mod budget;
mod hint;
mod policy_error;
mod rate;
mod retry;
mod state;

pub use breaker::BreakerPolicy;
pub use budget::Budget;
pub use hint::{HINT_MAX, retry_after, retry_after_ms};
pub use policy_error::PolicyError;
pub use rate::{Rate, RateError};
pub use retry::{Jitter, RetryPolicy};
pub use state::BreakerState;
