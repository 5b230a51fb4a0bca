//! What leaves this machine on behalf of tools, and what does not. All servers are real, on the loopback address.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod broken;
mod calls;
mod floods;
mod guard;
mod proxy;
mod server;
#[cfg(feature = "https")]
mod tls;
