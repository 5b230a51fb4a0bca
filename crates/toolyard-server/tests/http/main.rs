//! The server as its clients meet it: over a socket (HT-1 to HT-13).

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod access;
mod at_once;
mod bounds;
mod confirmations;
mod events;
mod idempotency;
mod mcp;
mod notify;
mod operator;
mod pages;
mod reload;
mod restarts;
mod restarts_again;
mod restarts_cancels;
mod restarts_mcp;
mod restarts_numbers;
mod restarts_odd;
mod restarts_owners;
mod restarts_shown;
mod restarts_taken_up;
mod sessions;
mod sockets;
mod streams;
#[cfg(feature = "https")]
mod tls;
mod turns;
mod yard;
