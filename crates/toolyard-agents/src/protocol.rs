//! The line protocol, as text: what an agent asks, and what it is told (AG-1, AG-2).
//!
//! ```text
//!   a line of an agent ─► ask ──► Ask: calls, cancel, hello, turn_end, bye
//!                          └────► Refused: what is wrong with it, and the call that it names
//!
//!   Outcome, welcome, error … ─► tell ─► a line for the agent
//! ```
//!
//! Pure: no I/O, no clock, no opinion on what an agent may do.

mod ask;
mod fields;
mod tell;

pub(crate) use ask::shown;
pub use ask::{Ask, AskedCall, CALLS_OF_A_LINE_MAX, Hello, Refused, ask};
pub use tell::{Tell, Welcome};

/// The version of the protocol that is spoken.
pub const PROTOCOL: u64 = 1;
