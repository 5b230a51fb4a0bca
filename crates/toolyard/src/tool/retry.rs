//! Whether and when a failed attempt is retried (RT-1 … RT-5, RT-7).
//!
//! ```text
//!   attempt ended ──► may it run twice? ──► attempts left? ──► hint, deadline? ──► tokens? ──► Retry { delay }
//!                        └ no: Stop(None)      └──────────── no: Stop(why) ──────────┘
//! ```
//!
//! Only the decision is made here. Time and randomness are passed in; waiting, and what an attempt holds, are the
//! caller's business.

mod bucket;
mod decide;
#[cfg(test)]
mod tests;

pub(crate) use bucket::{Bucket, Paid};
pub(crate) use decide::{Decision, Ended, Repeatability, Span, decide};
