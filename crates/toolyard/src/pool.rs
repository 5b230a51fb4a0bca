//! The class pools, whose life is managed by actors.
//!
//! ```text
//!   Pools (handle) ──► supervisor ──┬──► pool actor: read         each owns one class's life: width,
//!     resize, pause,                ├──► pool actor: serial       pause, drain, stop, status
//!     drain, status                 └──► pool actor: concurrent
//!                                              │ publishes
//!                                              ▼
//!   batch driver ◄── reads, no message ──── PoolLease { state, width }
//! ```
//!
//! Actors are the control plane: no message is sent for a call. Permits, results and breakers live outside the actors
//! (CC-2), so a restarted actor finds everything unchanged, and its last lease stays valid during the restart (RA-3).
//! An actor that dies is restarted, at most three times a minute; after that, the engine fails and answers every call
//! (RA-5). When the supervisor dies, its pools die and restart with it.

mod actor;
mod deaths;
mod lease;
mod pools;
mod status;
mod supervisor;

pub(crate) use lease::{PoolLease, PoolLeases};
pub use pools::PoolError;
pub(crate) use pools::Pools;
#[cfg(test)]
pub(crate) use pools::Victim;
pub use status::{PoolState, PoolStatus};

#[cfg(test)]
mod tests;
