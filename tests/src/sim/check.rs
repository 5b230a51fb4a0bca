//! The checks that every run must pass: I1 to I16, and the rules behind individual observations.
//!
//! Each check reads only the program and the journal, so each is tested with hand-made journals.

mod approvals;
mod at_gate;
mod breakers;
mod budgets;
mod cancels;
mod earlier;
mod events;
mod expect;
mod gate;
mod handlers;
mod in_force;
mod keys;
mod late;
mod order;
mod permits;
mod policies;
mod quiet;
mod rates;
mod reach;
mod receipts;
mod recorded;
mod recording;
mod remembered;
mod results;
mod retries;
mod room;
mod sandboxes;
mod secrets;
mod starts;
#[cfg(test)]
pub(in crate::sim) mod tests;
mod traces;
mod waits;
mod widths;
mod writes;

pub(super) use cancels::Reach;
pub use earlier::Earlier;
pub(super) use earlier::reach;
pub use traces::Traces;

use super::{Entry, Program, program::Index};
use std::fmt;
use toolyard::ErrorKind;

/// A rule that a run broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The id of the broken rule.
    pub rule: &'static str,
    /// What was observed.
    pub what: String,
}

impl Violation {
    pub(super) fn new(rule: &'static str, what: impl Into<String>) -> Self {
        Self { rule, what: what.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.what)
    }
}

/// An error code as text; `ok` for an output.
fn code_name(code: Option<ErrorKind>) -> &'static str {
    code.map_or("ok", ErrorKind::code)
}

/// How much later than planned, in virtual microseconds, shaking and the engine's short steps may make things happen.
const SLACK_US: u64 = 300_000;

/// How much later a record may make each step of a call happen that waits for it and for the record of another, in
/// virtual microseconds.
fn recording_us(index: &Index<'_>) -> u64 {
    index.program.recorder.map_or(0, |recorder| 3_000 * recorder.most_ms)
}

/// The longest time that the record of one result is waited for: 30 seconds, where one may be that late.
fn recorded_within_us(index: &Index<'_>) -> u64 {
    match index.program.recorder {
        Some(recorder) if recorder.late > 0 => 30_000_000,
        _ => recording_us(index),
    }
}

/// Returns every violation of a rule in the journal `entries` of a run of this program.
pub fn check(program: &Program, entries: &[Entry]) -> Vec<Violation> {
    check_life(program, entries, Earlier::default())
}

/// The same for a life of the engine, where `earlier` ones have done something for calls of the program. What a later life
/// builds on is not in its journal.
pub(super) fn check_life(program: &Program, entries: &[Entry], earlier: Earlier) -> Vec<Violation> {
    let is_first = earlier.is_empty();
    let index = Index::new(program, earlier.at_gate(entries)).after(earlier);
    let traces = Traces::new(&index, entries);
    let checks: [fn(&Index<'_>, &Traces<'_>) -> Vec<Violation>; 25] = [
        quiet::check,
        events::check,
        results::check,
        widths::check,
        order::check,
        writes::check,
        cancels::check,
        starts::check,
        policies::check,
        approvals::check,
        receipts::check,
        if is_first { recorded::check } else { |_, _| Vec::new() },
        reach::check,
        secrets::check,
        expect::check,
        waits::check,
        permits::check,
        keys::check,
        retries::check,
        rates::check,
        breakers::check,
        budgets::check,
        late::check,
        room::check,
        sandboxes::check,
    ];
    checks.iter().flat_map(|check| check(&index, &traces)).collect()
}
