//! The server as its clients meet it: over a socket (HT-1 to HT-10).

mod access;
mod confirmations;
mod events;
mod idempotency;
mod sessions;
mod streams;
mod turns;
mod yard;
