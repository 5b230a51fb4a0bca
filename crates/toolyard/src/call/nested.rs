//! Calls that handlers make: which call a dispatch belongs to, and what the calling handler holds meanwhile.
//!
//! ```text
//!   handler of call 7 ── cx.dispatch([a, b]) ──► Parking of call 7: units released, lease lent (CC-6)
//!                                                  └─► batch {a, b}, one deeper, its lineage through call 7
//!   a and b are quiescent, or listed zombies  ──► resume: units taken again, top of its lease again
//!                                                  └─► the dispatch returns
//! ```
//!
//! A handler that dispatches awaits other calls, and so holds no permit (CC-5). The calls under a call are counted as
//! they become quiescent, whether or not they are still awaited: a call is *quiescent* when its handler has stopped
//! and every call under it is quiescent (V2).

mod entered;
mod lineage;
mod parking;
mod position;
mod quiescence;
mod report;

pub(crate) use entered::Entered;
pub(crate) use lineage::within;
pub(crate) use parking::{Clock, Parking};
pub(crate) use position::Nested;
pub(crate) use report::Report;
