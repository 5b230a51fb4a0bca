//! Programs for newcomers, the shortest first:
//!
//! - `cargo run -p toolyard-examples --example embedding`: a tool from a typed closure, one batch.
//! - `cargo run -p toolyard-examples --example mixed_batch`: how a batch is split into runs, and what overlaps.
//! - `cargo run -p toolyard-examples --example bad_calls`: a panic, a hang and an unknown name among 37 good calls.
//! - `cargo run -p toolyard-examples --example own_tool`: a tool of your own in a confined workspace.
//! - `cargo run -p toolyard-examples --example sub_agents`: a tree of agents that share a pool and write in order.
//! - `cargo run -p toolyard-examples --example plan_and_execute`: a loop that replans, retries later, or stops.
//! - `cargo run -p toolyard-examples --example flaky_backend`: forty calls to a back-end that fails and goes down for
//!   a while; retries, a rate and a breaker, drawn as a timeline.
//! - `cargo run -p toolyard-examples --example one_program`: one program in every sandbox, and what it reaches there;
//!   `--features wasm,micro-vm` adds modules and virtual machines.
//! - `cargo run -p toolyard-examples --example ask_first`: capabilities, a person who is asked, and a change of policy.
//! - `cargo run -p toolyard-examples --features journal --example crash_and_resume`: a batch whose process kills itself, and
//!   goes on from its journal.
//!
//! This library holds the printing that they share.

use toolyard::Outcome;

/// Prints one line per call: its run, its id, and the text that the model reads.
pub fn print(outcomes: &[Outcome]) {
    for outcome in outcomes {
        let sign = if outcome.success() { "ok " } else { "ERR" };
        let text = outcome.to_text();
        let first = text.lines().next().unwrap_or_default();
        println!(
            "  run {} {:<13} {sign} {:<10} {first}",
            outcome.run,
            outcome.routing.as_str(),
            outcome.call_id
        );
    }
}

/// Draws a call on a line of `width` characters that stands for `whole`: a bar from `from` to `to`.
pub fn bar(from: f64, to: f64, whole: f64, width: usize) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place on the line")]
    let place = |at: f64| (at / whole * f64::from(u32::try_from(width).unwrap_or(u32::MAX))).round() as usize;
    let (from, to) = (place(from).min(width), place(to).min(width));
    format!("{}{}{}", " ".repeat(from), "█".repeat((to - from).max(1)), " ".repeat(width - to.max(from)))
}

/// The Rust of README and of the guide, run as doc tests. That of `docs/guide/mcp.md` is run in `toolyard-mcp`.
#[cfg(doctest)]
mod guide {
    #[doc = include_str!("../../README.md")]
    struct Readme;
    #[doc = include_str!("../../docs/guide/approvals.md")]
    struct Approvals;
    #[doc = include_str!("../../docs/guide/first-steps.md")]
    struct FirstSteps;
    #[doc = include_str!("../../docs/guide/library.md")]
    struct Library;
    #[doc = include_str!("../../docs/guide/program.md")]
    struct Program;
    #[doc = include_str!("../../docs/guide/resilience.md")]
    struct Resilience;
    #[doc = include_str!("../../docs/guide/testing.md")]
    struct Testing;
}
