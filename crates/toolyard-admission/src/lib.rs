#![doc = include_str!("../README.md")]

mod admission;
mod ids;
mod lease;
mod line;
mod moment;
mod need;
mod panics;
mod refusal;
mod slab;
mod store;
mod table;
mod unit;

pub use admission::{Admission, Admitted, Asker, Granted, Held, LeaveResult, Permit, Resumed, Waiter};
pub use ids::{EntryId, LeaseId, Ticket, UnitId};
pub use lease::{EntryState, Scope};
pub use line::{Line, Missing, PoolLoad};
pub use need::{Ask, Need};
pub use refusal::Refusal;
pub use unit::{Reach, UnitKind};
