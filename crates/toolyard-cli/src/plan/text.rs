//! A plan as text.

use super::{Planned, Tally};
use crate::display::{clip, count};
use std::fmt::Write;
use toolyard::PlannedCall;

const NAME_CHARS: usize = 60;
const MESSAGE_CHARS: usize = 300;

/// One batch: its runs, and the calls under each.
pub(super) fn batch(planned: &Planned<'_>) -> String {
    let plan = planned.plan;
    let mut text = match planned.turn {
        Some((id, turn)) => format!("{} turn {turn}: ", clip(id, NAME_CHARS)),
        None => String::new(),
    };
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{} in {}", count(plan.calls.len(), "call"), count(plan.runs.len(), "run"));
    let width = |text: fn(&PlannedCall) -> &str| {
        let widest = plan.calls.iter().map(|call| text(call).chars().count().min(NAME_CHARS)).max();
        widest.unwrap_or_default()
    };
    let (id, tool) = (width(|call| call.call_id.as_str()), width(|call| &call.tool));
    for (number, run) in plan.runs.iter().enumerate() {
        let _ = writeln!(text, "  run {number}: {}", run.routing);
        for at in run.calls.clone() {
            let call = &plan.calls[at];
            let (call_id, name) = (clip(call.call_id.as_str(), NAME_CHARS), clip(&call.tool, NAME_CHARS));
            let _ = writeln!(text, "    {call_id:id$}  {name:tool$}  {}", why(call, planned.approval[at]));
        }
    }
    text
}

fn why(call: &PlannedCall, approval: Option<&str>) -> String {
    match (&call.refusal, approval) {
        (Some(error), _) => format!("{}: {}", error.kind, clip(&error.message, MESSAGE_CHARS)),
        (None, Some(approval)) => format!("{}; {approval}", call.why),
        (None, None) => call.why.clone(),
    }
}

/// One invalid call.
pub(super) fn invalid_call(turn: Option<(&str, usize)>, call: &PlannedCall) -> String {
    let place = turn.map_or_else(String::new, |(id, turn)| format!("{} turn {turn} ", clip(id, NAME_CHARS)));
    let (id, tool) = (clip(call.call_id.as_str(), NAME_CHARS), clip(&call.tool, NAME_CHARS));
    let message = call.refusal.as_ref().map_or("", |error| error.message.as_str());
    format!("{place}{id} '{tool}': {}", clip(message, MESSAGE_CHARS))
}

/// The totals over all batches, and the invalid calls.
pub(super) fn tally(tally: &Tally) -> String {
    let Tally { batches, calls, invalid, refused, unreadable, invalid_calls } = tally;
    let mut text = format!(
        "{} with {}: {invalid} invalid, {} refused for other reasons",
        count(*batches, "batch"),
        count(*calls, "call"),
        refused - invalid
    );
    if *unreadable > 0 {
        let _ = write!(text, "; {} could not be read", count(*unreadable, "line"));
    }
    text.push('\n');
    for invalid_call in invalid_calls {
        let _ = writeln!(text, "  invalid: {invalid_call}");
    }
    let more = invalid - invalid_calls.len();
    if more > 0 {
        let _ = writeln!(text, "  … and {}", count(more, "more invalid call"));
    }
    text
}
