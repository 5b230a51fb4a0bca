//! Nested calls, sub-agents, and the serial lease they share.
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

mod deadlines;
mod deep;
mod driven;
mod engines;
mod forks;
mod names;
mod nested;
mod outcomes;
mod pieces;
mod pools;
mod scenarios;
mod streams;
