//! Servers over HTTP, most of them bad, as the engine sees them. They run in this process, and each test defines how
//! its own behaves.
#![cfg(feature = "http")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod calls;
mod changes;
mod eras;
mod guard;
#[cfg(target_os = "linux")]
mod memory;
mod places;
mod refusals;
mod server;
mod start;
#[cfg(feature = "https")]
mod tls;

use crate::client::yard;
#[cfg(target_os = "linux")]
use crate::client::{much, peak};
