//! How calls cope with a flaky tool, and how their rate and cost are bounded.
//!
//! ```text
//!   RetryPolicy ──► how often, how long between (RT-1, RT-2)     retry_after ──► what the remote asks for (RT-3)
//!   BreakerPolicy ─► when to stop calling, for how long (CB-2, CB-4); BreakerState ─► where a breaker is (CB-10)
//!   Rate ──► how often attempts may start (RT-10)     Budget ──► how many calls, and at what cost (RT-11)
//! ```
//!
//! These are settings and states, each valid once constructed; the engine makes the decisions.

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
