//! A simulation of the whole engine: random programs run on paused time with a shaken order of tasks, and everything
//! observed is checked against the rules (TS-2, TS-3).
//!
//! ```text
//!   seed ─► Program ─► stage: engine, scripted tools, sessions, operator ─► Journal ─► checks ─► Report
//!             │           every task and await shaken by the same seed         ▲
//!             └─ call by call ─► the result each call must have ───────────────┘
//! ```
//!
//! All randomness comes from the seed, so a failing seed fails again and its program can be shrunk.

pub mod check;
mod dice;
mod journal;
#[cfg(test)]
mod kept;
mod lives;
pub(crate) mod nest;
mod panics;
mod permits;
pub mod program;
mod report;
mod run;
mod shake;
mod shrink;
mod stage;

pub use dice::Dice;
pub use journal::{Entry, Fact, HandlerEnd, HandlerStep, Journal, ResultView};
pub use permits::{PermitChange, UnitState};
pub use program::Program;
pub use report::Report;
pub use run::play;
pub use shrink::shrink;
pub use stage::ResultAgain;

/// Runs the program of a seed and checks it.
pub fn sim(seed: u64) -> Report {
    play(&Program::generate(seed, program::Bounds::default()))
}
