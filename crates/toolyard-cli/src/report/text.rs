//! The report for people: one bar per call over the time of its batch.

use super::{
    timeline::{Attempt, Span, Timeline},
    waits::{Wait, Widths, waits},
};
use crate::display::{Brief, clip, count};
use anstyle::{AnsiColor, Style};
use std::{fmt::Write, time::Duration};
use toolyard::{Dedupe, Routing};

/// The number of calls that get a line.
pub(super) const ROWS_MAX: usize = 100;

const BAR: usize = 32;
const ID_MAX: usize = 22;
const TOOL_MAX: usize = 20;

/// Draws the timeline.
pub(super) fn draw(timeline: &Timeline, widths: &Widths) -> String {
    let waits = waits(timeline, widths);
    let shown = || timeline.spans.iter().take(ROWS_MAX);
    let width = |text: fn(&Span) -> &str, most: usize, least: usize| {
        let longest = shown().map(|span| text(span).chars().count()).max();
        longest.unwrap_or_default().clamp(least, most)
    };
    let id = width(|span| span.call_id.as_str(), ID_MAX, 4);
    let tool = width(|span| &span.tool, TOOL_MAX, 4);
    let columns = Columns { id, tool, wall: timeline.wall() };
    let mut text = columns.head();
    for (span, waits) in shown().zip(&waits) {
        columns.row(&mut text, span, waits);
    }
    let more = timeline.spans.len().saturating_sub(ROWS_MAX);
    if more > 0 {
        let _ = writeln!(text, "… and {}; --report json lists all", count(more, "more call"));
    }
    text
}

struct Columns {
    id: usize,
    tool: usize,
    wall: Duration,
}

impl Columns {
    fn head(&self) -> String {
        let (id, tool) = (self.id, self.tool);
        let end = Brief(self.wall).to_string();
        let gap = BAR.saturating_sub(1 + end.chars().count());
        format!(
            "run  {:id$}  {:tool$}  {:13}  0{:gap$}{end}  {:>8}  {:>8}\n",
            "call", "tool", "class", "", "waited", "ran"
        )
    }

    fn row(&self, text: &mut String, span: &Span, waits: &[Wait]) {
        let (id, tool) = (clip(span.call_id.as_str(), self.id), clip(&span.tool, self.tool));
        let style = style(span);
        let waited = Brief(span.blocked() + span.queued()).to_string();
        let ran = span.started.map_or_else(|| "-".to_owned(), |_| Brief(span.ran()).to_string());
        let waits = waits.iter().map(|wait| format!("waited {wait}"));
        let remarks: Vec<String> = remarks(span).into_iter().chain(waits).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:>3}  {id:iw$}  {tool:tw$}  {style}{:13}  {}{style:#}  {waited:>8}  {ran:>8}  {}",
            span.run,
            span.routing.as_str(),
            self.bar(span),
            remarks.join("; "),
            iw = self.id,
            tw = self.tool,
        );
        let trimmed = text.trim_end().len();
        text.truncate(trimmed);
        text.push('\n');
    }

    /// Draws a call: spaces before its run, dots while it waits for a permit, blocks for attempts, shaded if another
    /// attempt was to follow, and dashes for the backoff. A mark is the end of a call that never started.
    fn bar(&self, span: &Span) -> String {
        let (ready, ended) = (self.cell(span.ready), self.cell(span.ended));
        let started = span.started.map(|at| self.cell(at));
        let of_cell = |at: usize| match started {
            Some(started) if (started..=ended.max(started)).contains(&at) => self.attempt_cell(span, at),
            Some(started) if (ready..started).contains(&at) => '·',
            // It never started: it was refused, or it shares the result of another call.
            None if at == ended && span.error.is_some() => '×',
            None if at == ended => '○',
            _ => ' ',
        };
        (0..BAR).map(of_cell).collect()
    }

    /// What the call did in this cell, after its first permits.
    fn attempt_cell(&self, span: &Span, at: usize) -> char {
        let covers = |attempt: &&Attempt| {
            let from = self.cell(attempt.started);
            (from..=self.cell(attempt.ended).max(from)).contains(&at)
        };
        let is_over = |attempt: &Attempt| attempt.retry.is_some() && self.cell(attempt.ended) < at;
        match span.attempts.iter().rev().find(covers) {
            Some(Attempt { retry: Some(_), .. }) => '▒',
            None if span.attempts.iter().any(is_over) => '╌',
            // The time between the permits and the first attempt is not backoff.
            _ => '█',
        }
    }

    fn cell(&self, at: Duration) -> usize {
        let part = at.as_secs_f64() / self.wall.as_secs_f64().max(f64::MIN_POSITIVE);
        // The part is from 0 to 1, and there are few cells.
        ((part * BAR as f64) as usize).min(BAR - 1)
    }
}

/// The remarks on how a call ended.
pub(super) fn remarks(span: &Span) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(error) = span.error {
        let after = error.last.map_or_else(String::new, |last| format!(" after {last}"));
        let again = error.retry_after.map_or_else(String::new, |wait| format!(", retry in {}", Brief(wait)));
        remarks.push(format!("{}{after}{again}", error.kind));
    }
    match span.dedupe {
        Dedupe::Fresh => {}
        Dedupe::Joined => remarks.push("joined another call's run".to_owned()),
        Dedupe::Replayed => remarks.push("replayed an earlier result".to_owned()),
    }
    if span.attempts.len() > 1 || span.attempts.iter().any(|attempt| attempt.retry.is_some()) {
        let between = Brief(span.between_attempts());
        remarks.push(format!("{}, {between} between", count(span.attempts.len(), "attempt")));
    }
    // Use the word that the results use.
    let stopped = span.error.and_then(|error| serde_json::to_value(error.retry_stopped?).ok());
    if let Some(word) = stopped.as_ref().and_then(|word| word.as_str()) {
        remarks.push(format!("retry stopped: {word}"));
    }
    remarks
}

fn style(span: &Span) -> Style {
    let color = match span.routing {
        _ if span.error.is_some() => AnsiColor::Red,
        Routing::Read => AnsiColor::Cyan,
        Routing::Serial => AnsiColor::Yellow,
        Routing::Concurrent => AnsiColor::Magenta,
        Routing::ShortCircuit => AnsiColor::Red,
    };
    color.on_default()
}

/// The totals of one batch or of many.
pub(super) fn totals(runs: u64, calls: u64, failed: u64, elapsed: Duration) -> String {
    let ok = calls - failed;
    let calls = count(usize::try_from(calls).unwrap_or(usize::MAX), "call");
    let runs = count(usize::try_from(runs).unwrap_or(usize::MAX), "run");
    format!("{calls} in {runs}: {ok} ok, {failed} failed; {}", Brief(elapsed))
}

/// How long the calls take one by one: measured, if they ran so, or else estimated. Calls that run side by side wait for
/// each other's processors and threads, so the sum of their run times is an upper bound. It does not include the time
/// between calls: a sum below the elapsed time bounds nothing and is left out.
pub(super) fn one_by_one(is_measured: bool, elapsed: Duration, run_times: Duration) -> String {
    match is_measured {
        true => ", one by one (measured)".to_owned(),
        false if run_times > elapsed => {
            format!(", the calls one by one: at most {} (estimated)", Brief(run_times))
        }
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_drawn_between_attempts_alone() {
        let at = Duration::from_millis;
        let attempt = Attempt { started: at(20), ended: at(32), retry: None };
        let span = Span {
            call_id: "a".into(),
            tool: "a".into(),
            routing: Routing::Read,
            run: 0,
            arrived: at(0),
            ready: at(5),
            started: Some(at(10)),
            ended: at(32),
            attempts: vec![attempt],
            error: None,
            dedupe: Dedupe::Fresh,
        };
        let columns = Columns { id: 4, tool: 4, wall: at(32) };
        assert_eq!(columns.bar(&span), format!("     ·····{}", "█".repeat(22)));
        let again =
            Attempt { started: at(12), ended: at(15), retry: Some((toolyard::ErrorKind::Transient, at(5))) };
        let span = Span { attempts: vec![again, attempt], ..span };
        assert_eq!(columns.bar(&span), format!("     ·····██▒▒▒▒╌╌╌╌{}", "█".repeat(12)));
    }

    #[test]
    fn the_sum_of_run_times_is_shown_only_if_it_is_longer() {
        let (short, long) = (Duration::from_millis(20), Duration::from_millis(50));
        assert_eq!(totals(1, 5, 1, short), "5 calls in 1 run: 4 ok, 1 failed; 20.0 ms");
        assert_eq!(one_by_one(false, short, long), ", the calls one by one: at most 50.0 ms (estimated)");
        assert_eq!(one_by_one(false, long, short), "");
        assert_eq!(one_by_one(true, long, short), ", one by one (measured)");
    }
}
