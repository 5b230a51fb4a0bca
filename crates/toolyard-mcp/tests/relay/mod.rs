//! What a server asks, logs and reports during a call, on its way through the gateway to the client of the call.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod asks;
#[cfg(feature = "http")]
mod chained;
mod failures;
mod shown;
mod yard;

use crate::{client::server, gateway::client};
