//! Third-party servers: listed, called, cancelled, killed during a call, and called many times at once.
//!
//! `TOOLYARD_MCP_SERVERS` names the directory that `.ci/mcp-servers` fills. If it is absent the tests are skipped,
//! except under `CI=true`, where they fail.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

// Only Linux can say whether a process is stopped, and what is in its pipe.
#[cfg(target_os = "linux")]
mod each;
mod git;
#[cfg(feature = "http")]
mod http;
mod node;
mod place;
#[cfg(target_os = "linux")]
mod process;

use crate::client::yard;
