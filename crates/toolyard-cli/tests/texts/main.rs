//! What the texts say: their examples run, their links lead somewhere, the rules they name exist.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod checkout;
#[path = "../child/mod.rs"]
#[expect(dead_code, reason = "only the root is needed here")]
mod child;
mod examples;
mod links;
mod page;
#[path = "../program/place.rs"]
mod place;
mod rules;
