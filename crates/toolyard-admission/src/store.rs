//! What the table keeps: units, leases, and who waits for them. No decision is made here.
//!
//! ```text
//!   lanes ─► lane ─► parties            who waits, first in, first out
//!   units, leases ─► queue ─► groups    for each resource, the lanes that need it, in the order of service
//!   ages, backlog                       who has waited longest; what a large change has left to look at
//! ```

pub(crate) mod ages;
pub(crate) mod backlog;
pub(crate) mod group;
pub(crate) mod key;
pub(crate) mod lane;
pub(crate) mod lanes;
pub(crate) mod leases;
pub(crate) mod party;
pub(crate) mod queue;
pub(crate) mod resource;
pub(crate) mod units;
