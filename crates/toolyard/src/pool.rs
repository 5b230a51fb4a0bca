//! The life of the class pools, as actors.
//!
//! ```text
//!   Pools (handle) ──► supervisor ──┬──► pool actor: read         each owns one class's life: width,
//!     resize, pause,                ├──► pool actor: serial       pause, drain, stop, status
//!     drain, status                 └──► pool actor: concurrent
//!                                              │ publishes
//!                                              ▼
//!   batch driver ◄── reads, no message ──── Lease { state, width }
//! ```
//!
//! Actors are the control plane: no message is sent for a call. Permits, results and breakers live outside
//! of them (CC-2), so a restarted actor finds everything as it was, and while it is away its last lease stays
//! valid (RA-3). An actor that dies is restarted, three times in a minute at most; then the engine fails with
//! every call answered (RA-5). The supervisor takes its pools along and comes again with them.

mod actor;
mod deaths;
mod lease;
mod pools;
mod status;
mod supervisor;

pub(crate) use lease::{Lease, Leases};
pub use pools::PoolError;
pub(crate) use pools::Pools;
#[cfg(test)]
pub(crate) use pools::Victim;
pub(crate) use status::PoolLoad;
pub use status::{PoolState, PoolStatus};

#[cfg(test)]
mod tests;
