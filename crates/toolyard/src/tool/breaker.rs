//! Circuit breakers: a tool that keeps failing is not called for a while (CB-1 … CB-10).
//!
//! ```text
//!             failures ≥ 5, half of all           open time over, a call arrives
//!    closed ───────────────────────────► open ──────────────────────────────────► half-open ─ one probe at a time
//!      ▲                                   ▲  failed: open twice as long               │
//!      │                                   └───────────────────────────────────────────┤
//!      └───────────────────────────────────────────────────────────── succeeded ───────┘
//!    operator: any ──► forced open, forced closed ──► closed
//! ```
//!
//! [`Breaker`] is the state machine and `window.rs` its memory; time and randomness are passed in. [`SharedBreaker`]
//! is the one that all calls of a tool or a back-end share; it costs almost nothing while it is closed. None of them
//! knows about tools, attempts or events: the caller that gets a [`Transition`] emits the event.

mod machine;
mod shared;
mod slot;
mod tally;
#[cfg(test)]
mod tests;
mod window;

use machine::Generation;
pub(crate) use machine::{Admission, Breaker};
pub(crate) use shared::SharedBreaker;
pub(crate) use slot::Slot;
pub(crate) use window::Counts;

use std::time::Duration;
use toolyard_core::BreakerState;

/// A transition of a breaker; each is announced by one event (CB-10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transition {
    pub(crate) from: BreakerState,
    pub(crate) to: BreakerState,
}

/// A breaker's refusal (CB-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenFor {
    /// Open, half-open or forced open.
    pub(crate) state: BreakerState,
    /// When to ask again. Exact only while the breaker is open; otherwise a guess.
    pub(crate) retry_after: Duration,
}
