//! What the tests of the program share.
#![allow(dead_code, reason = "no test program needs all of it")]

pub(crate) mod child;
#[cfg(unix)]
pub(crate) mod inn;
pub(crate) mod missing;
pub(crate) mod place;
#[cfg(unix)]
pub(crate) mod served;
pub(crate) mod service;
pub(crate) mod workspace;
