//! The report of a measurement, for people and for programs.

use crate::axis::{Axis, Unit};
use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// The machine that was measured on.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// Operating system and processor family.
    pub target: String,
    /// Cores this process may use.
    pub cores: usize,
    /// `release`, or `debug`, whose figures mean nothing.
    pub build: &'static str,
}

/// One contender at one batch size.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    /// The axis it was measured on.
    pub axis: &'static str,
    /// The contender.
    pub contender: String,
    /// Calls in a batch.
    pub calls: usize,
    /// Nanoseconds per call or byte: the median over the rounds.
    pub median_ns: f64,
    /// Nanoseconds per call or byte: the lower quartile over the rounds.
    pub p25_ns: f64,
    /// The ratio to the first contender of the axis, if there is one to compare with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
}

/// The result of a measurement.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Full engine (a task per call): ratio to the floor, by calls in a batch.
    pub full_vs_floor: BTreeMap<usize, f64>,
    /// Engine with inline tools: ratio to the floor, by calls in a batch.
    pub inline_vs_floor: BTreeMap<usize, f64>,
    /// Engine with a rate, budgets, a deadline and a back-end: ratio to the floor, by calls in a batch.
    pub guarded_vs_floor: BTreeMap<usize, f64>,
    /// The guarded engine with an idempotency key for each call as well.
    pub keyed_vs_floor: BTreeMap<usize, f64>,
    /// Every figure.
    pub figures: Vec<Figure>,
    /// The machine.
    pub machine: Machine,
    /// Number of measurements per contender and size, on the first axis.
    pub rounds: usize,
    #[serde(skip)]
    axes: Vec<Axis>,
}

impl Report {
    pub(crate) fn new(rounds: usize, cores: usize) -> Self {
        let target = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
        let build = if cfg!(debug_assertions) { "debug" } else { "release" };
        Self {
            full_vs_floor: BTreeMap::new(),
            inline_vs_floor: BTreeMap::new(),
            guarded_vs_floor: BTreeMap::new(),
            keyed_vs_floor: BTreeMap::new(),
            figures: Vec::new(),
            machine: Machine { target, cores, build },
            rounds,
            axes: Vec::new(),
        }
    }

    /// Adds the samples of one contender at one size. At each size the reference contender must come first.
    pub(crate) fn add(
        &mut self,
        axis: &Axis,
        contender: &str,
        calls: usize,
        mut samples: Vec<f64>,
        is_first: bool,
    ) {
        samples.sort_unstable_by(f64::total_cmp);
        let (median_ns, p25_ns) = (samples[samples.len() / 2], samples[samples.len() / 4]);
        let of_first =
            |figure: &&Figure| figure.axis == axis.name && figure.calls == calls && figure.ratio == Some(1.0);
        let first = self.figures.iter().find(of_first).map(|first| first.median_ns);
        let ratio = if is_first { Some(1.0) } else { first.map(|first| round(median_ns / first)) };
        match (axis.name, contender, ratio) {
            ("ways", "full", Some(ratio)) => drop(self.full_vs_floor.insert(calls, ratio)),
            ("ways", "inline", Some(ratio)) => drop(self.inline_vs_floor.insert(calls, ratio)),
            ("ways", "guarded", Some(ratio)) => drop(self.guarded_vs_floor.insert(calls, ratio)),
            ("ways", "keyed", Some(ratio)) => drop(self.keyed_vs_floor.insert(calls, ratio)),
            _ => {}
        }
        if self.axes.last().is_none_or(|last| last.name != axis.name) {
            self.axes.push(*axis);
        }
        let (median_ns, p25_ns) = (round(median_ns), round(p25_ns));
        let contender = contender.to_owned();
        self.figures.push(Figure { axis: axis.name, contender, calls, median_ns, p25_ns, ratio });
    }
}

/// Rounds to three decimals.
fn round(figure: f64) -> f64 {
    (figure * 1e3).round() / 1e3
}

/// `1 round`, `2 rounds`.
fn counted(number: usize, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine { target, cores, build } = &self.machine;
        let (cores, rounds) = (counted(*cores, "core"), counted(self.rounds, "round"));
        writeln!(f, "{target}, {cores}, {build} build, {rounds}")?;
        for axis in &self.axes {
            writeln!(f, "\n{}: {}", axis.name, axis.about)?;
            let figures = self.figures.iter().filter(|figure| figure.axis == axis.name);
            table(f, axis.unit, figures)?;
        }
        if *build == "debug" {
            writeln!(f, "\nfigures of a debug build mean nothing: use `cargo run --release -- bench`")?;
        }
        Ok(())
    }
}

fn table<'a>(
    f: &mut fmt::Formatter<'_>,
    unit: Unit,
    figures: impl Iterator<Item = &'a Figure>,
) -> fmt::Result {
    let (unit, last) = match unit {
        Unit::Call => ("ns", "ratio"),
        Unit::Byte => ("ns/B", "MB/s"),
    };
    let (median, p25) = (format!("median {unit}"), format!("p25 {unit}"));
    writeln!(f, "{:>7}  {:<26} {median:>12} {p25:>12} {last:>8}", "calls", "")?;
    for Figure { contender, calls, median_ns, p25_ns, ratio, .. } in figures {
        write!(f, "{calls:>7}  {contender:<26} ")?;
        match (last, ratio) {
            ("MB/s", _) => writeln!(f, "{median_ns:>12.3} {p25_ns:>12.3} {:>8.0}", 1e3 / median_ns)?,
            (_, Some(ratio)) => writeln!(f, "{median_ns:>12.0} {p25_ns:>12.0} {ratio:>8.2}")?,
            (_, None) => writeln!(f, "{median_ns:>12.0} {p25_ns:>12.0}")?,
        }
    }
    Ok(())
}
