//! The server as a parent program meets it: over lines (AG-14).

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod bounds;
mod confirmations;
mod ends;
mod functions;
mod nested;
mod parent;
mod sessions;
mod turns;
