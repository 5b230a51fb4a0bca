//! The kinds of reports.

use std::path::PathBuf;

/// The section of `run --help` about them.
pub(super) const REPORT: &str = "\
In the report, 'the calls one by one: at most' is the sum of the calls' run times, measured while they ran concurrently.
They also waited for processors and threads then, so it is an estimate from above, shown only if it is longer than the
elapsed time. To measure how long they take one by one, use --sequential.

Over several turns, and for long batches, there are tables: by tool the calls, calls per second, percentiles of how long
calls ran (from their permits to their end) and were queued (from the start of their run to their permits), and the
failures; then the ten slowest calls. Calls that never started have no times. The elapsed time is that from the first
batch to the last result.

In its timeline, · is a queued call, █ an attempt, ▒ an attempt that is retried, ╌ the backoff before a retry, × a call
that did not start, and ○ a call that shares the result of another call with its idempotency key.

The JSON report: runs, calls, ok, failed, wall_ms, sum_of_run_times_ms, one_by_one (measured_ms or
estimated_at_most_ms), calls_per_s, at_once (average, most, busy_ms), exit_code, tools (by name: calls, failed,
failures, calls_per_s, queued_ms and ran_ms with p50, p95, p99, max), slowest, breakers, notes, and timeline: per call
call_id, name, run, routing, ok, error, came_ms, ready_ms, started_ms, ended_ms, queued_ms, ran_ms, attempts, dedupe,
last_error, retry_stopped, retry_after_ms, waited_for. Over episodes: turns, longest_turn with its timeline, episodes
(id, turns, calls, failed, wall_ms; at most 100 000), episodes_ended, episodes_left_out, episodes_per_s, kept.
toolyard compare shows two of them side by side.

The page of --report html=FILE shows every call with what it waited for, its attempts and its output. The file needs no
server and loads nothing. It replaces what FILE held. Of a very long run it has the newest 64 MiB of events.";

/// The report of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ReportKind {
    /// A timeline on standard error.
    Text,
    /// One JSON document on standard error.
    Json,
    /// Only what went wrong.
    None,
    /// A page in this file.
    Html(PathBuf),
}

impl ReportKind {
    /// Parses a kind as the command line has it.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            None if text == "text" => Ok(Self::Text),
            None if text == "json" => Ok(Self::Json),
            None if text == "none" => Ok(Self::None),
            Some(("html", file)) if !file.is_empty() => Ok(Self::Html(file.into())),
            _ if text.starts_with("html") => Err("name a file, as in html=report.html".to_owned()),
            _ => Err("possible values: text, json, none, html=FILE".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_needs_a_file() {
        assert_eq!(ReportKind::parse("html=a=b.html"), Ok(ReportKind::Html("a=b.html".into())));
        assert_eq!(ReportKind::parse("json"), Ok(ReportKind::Json));
        for text in ["html", "html=", "text=a", "xml", ""] {
            assert!(ReportKind::parse(text).is_err(), "{text}");
        }
    }
}
