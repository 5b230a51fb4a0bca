//! `toolyard audit` on logs that are whole and on logs that were tampered with.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

#[path = "audit/account.rs"]
mod account;
#[allow(dead_code, reason = "others use the rest")]
mod child;
#[path = "audit/lives.rs"]
mod lives;
#[path = "program/place.rs"]
mod place;
#[path = "audit/proof.rs"]
mod proof;
#[path = "audit/tampered.rs"]
mod tampered;
#[path = "program/workspace.rs"]
mod workspace;
