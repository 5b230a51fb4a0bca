//! The report as JSON. Times are in milliseconds, with a fraction, since the batch arrived.
//!
//! | field | meaning |
//! |---|---|
//! | `runs`, `calls`, `ok`, `failed` | how many there were |
//! | `wall_ms`, `sum_of_run_times_ms` | the elapsed time, from the first batch to the last result, and the sum of the calls' `ran_ms` |
//! | `one_by_one` | how long the calls take one by one: `measured_ms` with `--sequential`, otherwise `estimated_at_most_ms`; null if that bounds nothing |
//! | `calls_per_s`, `at_once` | over the elapsed time; `average` and `most` of the calls that ran at once, and `busy_ms`, for how long they ran, without backoff |
//! | `exit_code` | the program's exit code, unless a file cannot be written afterwards |
//! | `tools` | by name: `calls`, `failed`, `failures` (by code), `calls_per_s`, and of the calls that started `queued_ms` and `ran_ms` (`p50`, `p95`, `p99`, `max`; null if none did) |
//! | `slowest` | the ten calls that ran longest: `call_id`, `name`, `ran_ms`, `queued_ms`, `attempts`, `error`, and of episodes `id`, `turn` |
//! | `timeline` | of a response: its calls, in order |
//! | `turns`, `longest_turn` | of episodes: how many, and `id`, `turn`, `wall_ms`, `timeline` of the longest one |
//! | `episodes` | those that ended, in order: `id`, `turns`, `calls`, `failed`, `wall_ms`; at most 100 000, `episodes_left_out` counts the others |
//! | `episodes_ended`, `episodes_per_s`, `kept` | how many ended in this run; `episodes` and `turns` that `--continue` kept |
//! | `breakers` | those that moved: `tool`, `backend` or `sandbox`, `moves` (`at_ms` since engine start, `to`), `more_moves` |
//! | `notes` | `errors` (`code`, `name`, `message`, `advice`, `first`, `calls`), `calls_with_other_errors`, `to_allow` |
//!
//! A call of a timeline has `call_id`, `name`, `run`, `routing`, `ok`, `error` (its code, or null), `came_ms` (when it
//! arrived; 0 unless the calls were streamed), `ready_ms` (when its run started), `started_ms` (when it got its
//! permits; null if it never did), `ended_ms`, `queued_ms`, `ran_ms`, and `waited_for`: a list of `{what, ms, …}` with
//! `what` one of `answer`, `run`, `pool`, `tool`, `max_in_flight`, `tree_max_in_flight`, `rate`, `permit`. It also has
//! `attempts`: a list of `{began_ms, ended_ms, error, backoff_ms}`, the last two null unless another attempt was to
//! follow; and `dedupe` (`fresh`, `joined`, `replayed`). A call with an `error` has three more fields, null if they do
//! not apply: `last_error`, the code of the attempt before, `retry_stopped`, and `retry_after_ms`, when to retry.

use super::{
    timeline::{Attempt, Span, Timeline},
    waits::{Cause, Wait, Widths, waits},
};
use serde_json::{Value, json};
use std::time::Duration;

/// Milliseconds with a fraction.
pub(super) fn ms(time: Duration) -> Value {
    // Events carry microseconds; more digits would be noise.
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    json!(micros as f64 / 1e3)
}

/// How long the calls take one by one; see [`text::one_by_one`](super::text::one_by_one).
pub(super) fn one_by_one(is_measured: bool, elapsed: Duration, run_times: Duration) -> Value {
    match is_measured {
        true => json!({"measured_ms": ms(elapsed)}),
        false if run_times > elapsed => json!({"estimated_at_most_ms": ms(run_times)}),
        false => Value::Null,
    }
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
        "came_ms": ms(span.arrived),
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

fn attempt(attempt: &Attempt) -> Value {
    json!({
        "began_ms": ms(attempt.started),
        "ended_ms": ms(attempt.ended),
        "error": attempt.retry.map(|(error, _)| error),
        "backoff_ms": attempt.retry.map(|(_, backoff)| ms(backoff)),
    })
}

fn wait(wait: &Wait) -> Value {
    let mut value = match &wait.cause {
        Cause::Answer => json!({"what": "answer"}),
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
