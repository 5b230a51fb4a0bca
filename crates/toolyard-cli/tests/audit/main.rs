//! `toolyard audit` on logs that are whole and on logs that were tampered with.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod account;
#[allow(dead_code, reason = "others use the rest")]
#[path = "../child/mod.rs"]
mod child;
mod lives;
#[path = "../program/place.rs"]
mod place;
mod proof;
mod tampered;
#[path = "../program/workspace.rs"]
mod workspace;
