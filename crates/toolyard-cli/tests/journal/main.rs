//! `toolyard journal`, on journals that a real engine has written (JR-14).

#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

#[cfg(unix)]
mod agents;
mod altered;
mod answers;
#[cfg(unix)]
mod checked;
mod exports;
#[cfg(unix)]
mod killed;
mod lists;
#[cfg(unix)]
mod mcp;
#[cfg(unix)]
mod reconciled;
#[cfg(unix)]
mod resumed;
mod scene;
#[cfg(unix)]
mod served;
#[cfg(unix)]
mod served_kills;
#[path = "../shared/mod.rs"]
mod shared;
mod whole;
#[cfg(unix)]
mod yard;

use shared::child;
