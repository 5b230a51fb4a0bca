//! Circuit breakers: a tool that keeps failing is not asked for a while (CB-1 … CB-10).
//!
//! ```text
//!             failures ≥ 5, half of all           its time is over, a call comes
//!    closed ───────────────────────────► open ──────────────────────────────────► half-open ─ one probe at a time
//!      ▲                                   ▲  failed: open twice as long               │
//!      │                                   └───────────────────────────────────────────┤
//!      └───────────────────────────────────────────────────────────── succeeded ───────┘
//!    operator: any ──► forced open, forced closed ──► closed
//! ```
//!
//! [`Breaker`] is the machine, `window.rs` what it remembers; now and chance are passed in. [`SharedBreaker`] is
//! one that all calls of a tool or a back-end share, which costs next to nothing while it is closed. None of
//! them knows tools, attempts or events: whoever gets a [`Transition`] tells of it.

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

/// A move of a breaker; each is one event (CB-10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Transition {
    pub(crate) from: BreakerState,
    pub(crate) to: BreakerState,
}

/// A breaker's no (CB-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenFor {
    /// Open, half-open or forced open.
    pub(crate) state: BreakerState,
    /// When to ask again. What is known only while it is open: else a guess.
    pub(crate) retry_after: Duration,
}
