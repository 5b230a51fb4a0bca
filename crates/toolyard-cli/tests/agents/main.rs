//! Agents as programs: real processes, through the program (AG-1 to AG-13). Linux alone, where they are confined.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its surroundings has failed")]

mod acceptance;
mod ends;
mod hostile;
mod killed;
mod limits;
mod live;
mod models;
#[path = "../shared/mod.rs"]
mod shared;
#[path = "../program/terminal.rs"]
#[allow(dead_code, reason = "the tests of questions need more of it")]
mod terminal;
mod trees;
mod yard;

use shared::{child, missing, place};
