//! What each tool's calls came to.

use super::{spread::Spread, timeline::Span};
use crate::{
    display::{Brief, clip},
    table::Table,
};
use serde_json::{Map, Value, json};
use std::{collections::BTreeMap, sync::Arc, time::Duration};
use toolyard::ErrorKind;

/// The number of tools that are told apart: models name tools that do not exist. Calls of others are counted together.
const TOOLS_MAX: usize = 100;

/// Under which name.
const OTHERS: &str = "(other tools)";

const NAME_CHARS: usize = 32;

/// Every tool that was called.
#[derive(Debug, Default)]
pub(super) struct Tools {
    by_name: BTreeMap<Arc<str>, Calls>,
}

/// The calls of a tool.
#[derive(Debug, Default)]
struct Calls {
    calls: u64,
    failures: BTreeMap<ErrorKind, u64>,
    /// Of those that started: from being queued to their permits, and from then to their end.
    queued: Spread,
    ran: Spread,
}

impl Tools {
    /// Counts a call.
    pub(super) fn add(&mut self, span: &Span) {
        let is_told_apart = self.by_name.contains_key(&span.tool) || self.by_name.len() < TOOLS_MAX;
        let name = if is_told_apart { span.tool.clone() } else { OTHERS.into() };
        let of_tool = self.by_name.entry(name).or_default();
        of_tool.calls += 1;
        if let Some(error) = span.error {
            *of_tool.failures.entry(error.kind).or_default() += 1;
        }
        if span.started.is_some() {
            of_tool.queued.add(span.queued());
            of_tool.ran.add(span.ran());
        }
    }

    /// A line for each tool.
    pub(super) fn text(&self, elapsed: Duration) -> String {
        let heads =
            ["tool", "calls", "calls/s", "ran p50", "p95", "p99", "queued p50", "p95", "p99", "failed"];
        let mut table = Table::new(heads);
        for (name, calls) in &self.by_name {
            let [ran, queued] = [&calls.ran, &calls.queued].map(brief);
            let [ran50, ran95, ran99] = ran;
            let [queued50, queued95, queued99] = queued;
            table.row([
                clip(name, NAME_CHARS),
                calls.calls.to_string(),
                rate_text(calls.calls, elapsed),
                ran50,
                ran95,
                ran99,
                queued50,
                queued95,
                queued99,
                calls.failures_text(),
            ]);
        }
        table.to_string()
    }

    /// An object for each tool, by name.
    pub(super) fn json(&self, elapsed: Duration) -> Value {
        let of_tool = |(name, calls): (&Arc<str>, &Calls)| (name.to_string(), calls.json(elapsed));
        Value::Object(self.by_name.iter().map(of_tool).collect::<Map<_, _>>())
    }
}

impl Calls {
    fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    fn failures_text(&self) -> String {
        let failures = self.failures.iter().map(|(kind, calls)| format!("{calls} {kind}"));
        match failures.collect::<Vec<_>>() {
            none if none.is_empty() => "0".to_owned(),
            some => some.join(", "),
        }
    }

    fn json(&self, elapsed: Duration) -> Value {
        let failures = self.failures.iter().map(|(kind, calls)| (kind.to_string(), (*calls).into()));
        json!({
            "calls": self.calls,
            "failed": self.failed(),
            "failures": Value::Object(failures.collect::<Map<_, _>>()),
            "calls_per_s": per_second(self.calls, elapsed),
            "queued_ms": self.queued.json(),
            "ran_ms": self.ran.json(),
        })
    }
}

fn brief(spread: &Spread) -> [String; 3] {
    match spread.percentiles() {
        Some(of) => [of.p50, of.p95, of.p99].map(|time| Brief(time).to_string()),
        None => [(); 3].map(|()| "-".to_owned()),
    }
}

/// How many there were per second, in about three digits; `None` if no time has passed.
pub(super) fn per_second(number: u64, elapsed: Duration) -> Option<f64> {
    let rate = number as f64 / elapsed.as_secs_f64();
    rate.is_finite().then(|| (rate * 1e3).round() / 1e3)
}

/// The same, for people.
pub(super) fn rate_text(number: u64, elapsed: Duration) -> String {
    match per_second(number, elapsed) {
        Some(rate) if rate >= 100.0 => format!("{rate:.0}"),
        Some(rate) => format!("{rate:.1}"),
        None => "-".to_owned(),
    }
}
