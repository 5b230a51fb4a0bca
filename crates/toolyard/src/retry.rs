//! Whether a failed attempt is made again, and when (RT-1 … RT-5, RT-7).
//!
//! ```text
//!   attempt ended ──► may it run twice? ──► attempts left? ──► hint, deadline? ──► tokens? ──► Retry { delay }
//!                        └ no: Stop(None)      └──────────── no: Stop(why) ──────────┘
//! ```
//!
//! Owns the decision. Knows no clock and no generator: now and chance are passed in. It waits for nothing, and
//! what an attempt holds is not its business.

mod bucket;
mod decide;
mod delay;
#[cfg(test)]
mod tests;

pub(crate) use bucket::{Bucket, Paid};
pub(crate) use decide::{Decision, Ended, Repeatability, Span, decide};
pub(crate) use delay::delay;
