//! The report for programs. Times are in milliseconds, with a fraction, and count from the batch.
//!
//! | field | what it tells |
//! |---|---|
//! | `runs`, `calls`, `ok`, `failed` | how many there were |
//! | `wall_ms`, `sum_of_run_times_ms` | what it took, and the sum of the calls' `ran_ms` |
//! | `exit_code` | that of the program, unless a file cannot be written after it |
//! | `timeline` | of a response: the calls, in order |
//! | `turns`, `longest_turn` | of episodes: how many, and `id`, `turn`, `wall_ms`, `timeline` of one |
//! | `breakers` | those that moved: `tool` or `backend`, `moves` (`at_ms` since the engine began, `to`), `more_moves` |
//! | `notes` | `errors` (`code`, `message`, `advice`, `first`, `calls`), `calls_with_other_errors`, `to_allow` |
//!
//! A call of a timeline: `call_id`, `name`, `run`, `routing`, `ok`, `error` (its code, or null), `came_ms` (it
//! came in: 0, but for the calls of a stream), `ready_ms` (its run began), `started_ms` (it had its permits; null
//! when it never did), `ended_ms`, `queued_ms`, `ran_ms`, `waited_for`: a list of `{what, ms, …}` with `what` one of
//! `run`, `pool`, `tool`, `max_in_flight`, `tree_max_in_flight`, `rate`, `permit`; `attempts`: a list of `{began_ms,
//! ended_ms, error, backoff_ms}`, the last two of one that another was to follow; `dedupe` (`fresh`, `joined`,
//! `replayed`); and of a call with an `error`, null where they do not apply: `last_error`, the code of the attempt
//! before it, `retry_stopped`, and `retry_after_ms`, when to ask again.

use super::{
    timeline::{Span, Timeline, Tried},
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
        "error": span.error.map(|error| error.kind),
        "came_ms": ms(span.came),
        "ready_ms": ms(span.ready),
        "started_ms": span.started.map(ms),
        "ended_ms": ms(span.ended),
        "queued_ms": ms(span.queued()),
        "ran_ms": ms(span.ran()),
        "attempts": span.attempts.iter().map(attempt).collect::<Value>(),
        "dedupe": span.dedupe,
        "last_error": span.error.and_then(|error| error.last),
        "retry_stopped": span.error.and_then(|error| error.retry_stopped),
        "retry_after_ms": span.error.and_then(|error| error.retry_after).map(ms),
        "waited_for": waits.iter().map(wait).collect::<Value>(),
    })
}

fn attempt(tried: &Tried) -> Value {
    json!({
        "began_ms": ms(tried.began),
        "ended_ms": ms(tried.ended),
        "error": tried.then.map(|(error, _)| error),
        "backoff_ms": tried.then.map(|(_, backoff)| ms(backoff)),
    })
}

fn wait(wait: &Wait) -> Value {
    let mut value = match &wait.cause {
        Cause::Run { run, routing } => json!({"what": "run", "run": run, "routing": routing}),
        Cause::Pool { class, width } => json!({"what": "pool", "class": class, "width": width}),
        Cause::Tool { tool, width } => json!({"what": "tool", "tool": tool, "width": width}),
        Cause::Session { width } => json!({"what": "max_in_flight", "width": width}),
        Cause::Tree { width } => json!({"what": "tree_max_in_flight", "width": width}),
        Cause::Rate { tool, rate } => json!({"what": "rate", "tool": tool, "rate": rate}),
        Cause::Permit => json!({"what": "permit"}),
    };
    value["ms"] = ms(wait.time);
    value
}
