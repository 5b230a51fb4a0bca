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
//! valid (RA-3). A pool that dies is restarted, three times in a minute at most; then the engine fails with
//! every call answered (RA-5).

mod actor;
mod lease;
mod status;
mod supervisor;

pub(crate) use lease::{Lease, Leases};
pub(crate) use status::PoolLoad;
pub use status::{PoolState, PoolStatus};
pub use supervisor::PoolError;
pub(crate) use supervisor::Pools;

#[cfg(test)]
mod tests;
