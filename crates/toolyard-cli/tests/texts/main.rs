//! What the texts say: their examples run, their links lead somewhere, the rules they name exist.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod checkout;
mod examples;
mod links;
mod page;
mod rules;
mod served;
#[path = "../shared/mod.rs"]
mod shared;

use shared::{child, missing, place};
