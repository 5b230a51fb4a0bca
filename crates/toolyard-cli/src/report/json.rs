//! The report for programs. Times are in milliseconds, with a fraction, and count from the batch.
//!
//! | field | what it tells |
//! |---|---|
//! | `runs`, `calls`, `ok`, `failed` | how many there were |
//! | `wall_ms`, `sum_of_run_times_ms` | what it took, and the sum of the calls' `ran_ms` |
//! | `exit_code` | that of the program, unless a file cannot be written after it |
//! | `timeline` | of a response: the calls, in order |
//! | `turns`, `longest_turn` | of episodes: how many, and `id`, `turn`, `wall_ms`, `timeline` of one |
//! | `notes` | `errors` (`code`, `message`, `advice`, `first`, `calls`), `calls_with_other_errors`, `to_allow` |
//!
//! A call of a timeline: `call_id`, `name`, `run`, `routing`, `ok`, `error` (its code, or null), `came_ms` (it
//! came in: 0, but for the calls of a stream), `ready_ms` (its run began), `started_ms` (it had its permits; null
//! when it never did), `ended_ms`, `queued_ms`, `ran_ms`, `waited_for`: a list of `{what, ms, …}` with `what` one of
//! `run`, `pool`, `tool`, `max_in_flight`, `tree_max_in_flight`, `permit`.

use super::{
    timeline::{Span, Timeline},
    waits::{Cause, Wait, Widths, waits},
};
use serde_json::{Value, json};
use std::time::Duration;

/// Milliseconds with their fraction.
pub(super) fn ms(time: Duration) -> Value {
    // Microseconds are what events carry; more digits would be noise.
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    json!(micros as f64 / 1e3)
}

/// Every call of the timeline.
pub(super) fn calls(timeline: &Timeline, widths: &Widths) -> Value {
    let waits = waits(timeline, widths);
    timeline.spans.iter().zip(&waits).map(|(span, waits)| call(span, waits)).collect()
}

fn call(span: &Span, waits: &[Wait]) -> Value {
    json!({
        "call_id": span.call_id.as_str(),
        "name": span.tool.as_ref(),
        "run": span.run,
        "routing": span.routing,
        "ok": span.error.is_none(),
        "error": span.error,
        "came_ms": ms(span.came),
        "ready_ms": ms(span.ready),
        "started_ms": span.started.map(ms),
        "ended_ms": ms(span.ended),
        "queued_ms": ms(span.queued()),
        "ran_ms": ms(span.ran()),
        "waited_for": waits.iter().map(wait).collect::<Value>(),
    })
}

fn wait(wait: &Wait) -> Value {
    let mut value = match &wait.cause {
        Cause::Run { run, routing } => json!({"what": "run", "run": run, "routing": routing}),
        Cause::Pool { class, width } => json!({"what": "pool", "class": class, "width": width}),
        Cause::Tool { tool, width } => json!({"what": "tool", "tool": tool, "width": width}),
        Cause::Session { width } => json!({"what": "max_in_flight", "width": width}),
        Cause::Tree { width } => json!({"what": "tree_max_in_flight", "width": width}),
        Cause::Permit => json!({"what": "permit"}),
    };
    value["ms"] = ms(wait.time);
    value
}
