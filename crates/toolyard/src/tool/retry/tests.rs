#![allow(clippy::unwrap_used, reason = "tests")]

mod bucket;
mod decide;
mod delay;

use super::*;
use toolyard_core::{Effect, ErrorKind, RetryPolicy, RetryStopped};

const MILLI: std::time::Duration = std::time::Duration::from_millis(1);
const SECOND: std::time::Duration = std::time::Duration::from_secs(1);
