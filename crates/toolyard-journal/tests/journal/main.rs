//! The journal, written by a real engine (JR-*). Each test names the rule that it proves.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod both;
mod bounds;
mod crash;
mod damage;
mod expired;
mod lost;
#[cfg(unix)]
mod moved;
mod opening;
mod operators;
mod pruning;
mod questions;
mod resume;
mod scene;
mod sessions;
mod split;
mod waiting;
mod written;
