#![allow(clippy::unwrap_used, reason = "tests")]

mod model;
mod rules;
mod shared;
mod state_machine;
mod tally;
mod window;

use super::*;
use toolyard_core::{
    BreakerPolicy,
    BreakerState::{Closed, ForcedClosed, ForcedOpen, HalfOpen, Open},
    error::BreakerVerdict::{self, Failure, Ignored, Success},
};

const MILLI: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
/// The attempt timeout of these tests.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The `chance` that leaves the open time unchanged.
const EVEN: f64 = 0.5;

fn moved(from: BreakerState, to: BreakerState) -> Option<Transition> {
    Some(Transition { from, to })
}
