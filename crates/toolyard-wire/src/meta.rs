//! What surrounds a call, the same on every wire (SM-11).
//!
//! ```text
//!                    an object of its own       among other fields       `_meta` of MCP
//!   CallMeta    ◄──► {"timeout_ms":…}           take()                   {"toolyard/timeout_ms":…}
//!   ResultMeta  ◄──► {"code":…,"attempts":…}                             {"toolyard/call":{…},"toolyard/error":{…}}
//! ```
//!
//! `facts.rs` is what an outcome says in the same words.
//!
//! Owns names, units and bounds. Does not know what a wire carries beside: the tool, its arguments, its output.

mod call;
mod facts;
mod failure;
mod result;
mod times;
mod values;

pub use call::CallMeta;
pub(crate) use facts::Facts;
pub use failure::FailureMeta;
pub(crate) use result::EDITED;
pub use result::ResultMeta;
pub(crate) use times::Times;

/// What precedes our names in an object that others use too, as in `_meta` of MCP.
pub const META_PREFIX: &str = "toolyard/";

#[cfg(test)]
mod tests;
