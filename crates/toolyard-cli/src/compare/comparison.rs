//! The figures of two reports, side by side.

use super::{
    figure::{Figure, Unit, change, millis},
    run_report::{Percentiles, RunReport, Tool},
};
use crate::display::clip;
use std::{collections::BTreeSet, iter};

/// A 95th percentile that grew by less has not grown: that is the noise of any machine.
const NOISE_MS: f64 = 1.0;

const NAME_CHARS: usize = 40;

/// Everything that is compared.
#[derive(Debug)]
pub(super) struct Comparison {
    /// Of all calls.
    pub(super) totals: Group,
    /// Of each tool that one of the reports has.
    pub(super) tools: Vec<Group>,
}

/// The figures of all calls, or of a tool.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) figures: Vec<Figure>,
}

impl Comparison {
    pub(super) fn of(a: &RunReport, b: &RunReport) -> Self {
        let names: BTreeSet<&String> = a.tools.keys().chain(b.tools.keys()).collect();
        let tool = |name: &String| Group {
            name: name.clone(),
            figures: of_tool([a, b].map(|report| report.tools.get(name))),
        };
        let totals = Group { name: "all".to_owned(), figures: of_all([a, b]) };
        Self { totals, tools: names.into_iter().map(tool).collect() }
    }

    /// All calls first.
    pub(super) fn groups(&self) -> impl Iterator<Item = &Group> {
        iter::once(&self.totals).chain(&self.tools)
    }

    /// What grew by more than so many percent, in words.
    pub(super) fn worse(&self, percent: f64) -> Vec<String> {
        let of_group = |group: &Group| [group.slower(percent), group.more_failures(percent)];
        self.groups().flat_map(of_group).flatten().collect()
    }
}

impl Group {
    fn figure(&self, key: &str) -> [Option<f64>; 2] {
        let figure = self.figures.iter().find(|figure| figure.key() == key);
        figure.map_or([None; 2], Figure::both)
    }

    fn slower(&self, percent: f64) -> Option<String> {
        let both = self.figure("ran_p95_ms");
        let [Some(a), Some(b)] = both else { return None };
        let is_slower = b - a > NOISE_MS && change(both).is_none_or(|change| change > percent);
        is_slower.then(|| {
            format!("{}: p95 of how long calls ran grew from {} to {}", self.short(), millis(a), millis(b))
        })
    }

    fn more_failures(&self, percent: f64) -> Option<String> {
        let ([a_calls, b_calls], [a_failed, b_failed]) = (self.figure("calls"), self.figure("failed"));
        let share = |failed: Option<f64>, calls: Option<f64>| Some(failed? / calls?.max(1.0));
        let both = [share(a_failed, a_calls), share(b_failed, b_calls)];
        let [Some(a), Some(b)] = both else { return None };
        let has_more = b > a && change(both).is_none_or(|change| change > percent);
        has_more.then(|| {
            let [a, b] = [a, b].map(|share| share * 100.0);
            format!("{}: the share of failed calls grew from {a:.2} % to {b:.2} %", self.short())
        })
    }

    fn short(&self) -> String {
        clip(&self.name, NAME_CHARS)
    }
}

fn of_all(reports: [&RunReport; 2]) -> Vec<Figure> {
    let count = |count: fn(&RunReport) -> u64| reports.map(|report| Some(count(report) as f64));
    let figure = |figure: fn(&RunReport) -> Option<f64>| reports.map(figure);
    vec![
        Figure::new("calls", "calls", Unit::Count, count(|report| report.calls)),
        Figure::new("failed", "failed", Unit::Count, count(|report| report.failed)),
        Figure::new("wall_ms", "elapsed", Unit::Millis, figure(|report| Some(report.wall_ms))),
        Figure::new("calls_per_s", "calls/s", Unit::Rate, figure(|report| report.calls_per_s)),
        Figure::new("episodes_per_s", "episodes/s", Unit::Rate, figure(|report| report.episodes_per_s)),
        Figure::new("at_once", "at once, average", Unit::Rate, figure(|report| report.at_once.average)),
    ]
}

fn of_tool(tools: [Option<&Tool>; 2]) -> Vec<Figure> {
    let figure = |figure: fn(&Tool) -> Option<f64>| tools.map(|tool| tool.and_then(figure));
    let ran = |at: fn(Percentiles) -> f64| tools.map(|tool| tool?.ran_ms.map(at));
    let queued = |at: fn(Percentiles) -> f64| tools.map(|tool| tool?.queued_ms.map(at));
    vec![
        Figure::new("calls", "calls", Unit::Count, figure(|tool| Some(tool.calls as f64))),
        Figure::new("failed", "failed", Unit::Count, figure(|tool| Some(tool.failed as f64))),
        Figure::new("calls_per_s", "calls/s", Unit::Rate, figure(|tool| tool.calls_per_s)),
        Figure::new("ran_p50_ms", "ran p50", Unit::Millis, ran(|of| of.p50)),
        Figure::new("ran_p95_ms", "ran p95", Unit::Millis, ran(|of| of.p95)),
        Figure::new("ran_p99_ms", "ran p99", Unit::Millis, ran(|of| of.p99)),
        Figure::new("queued_p50_ms", "queued p50", Unit::Millis, queued(|of| of.p50)),
        Figure::new("queued_p95_ms", "queued p95", Unit::Millis, queued(|of| of.p95)),
        Figure::new("queued_p99_ms", "queued p99", Unit::Millis, queued(|of| of.p99)),
    ]
}
