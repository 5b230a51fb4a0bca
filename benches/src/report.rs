//! What was measured, for people and for programs.

use serde::Serialize;
use std::{collections::BTreeMap, fmt};

/// The machine, as far as it says.
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
    /// The contender.
    pub contender: &'static str,
    /// Calls in a batch.
    pub calls: usize,
    /// Nanoseconds a call: the median over the rounds.
    pub median_ns: f64,
    /// Nanoseconds a call: a quarter of the rounds was faster.
    pub p25_ns: f64,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The engine with a task per call, in multiples of the floor, by calls in a batch.
    pub full_vs_floor: BTreeMap<usize, f64>,
    /// The engine with tools declared inline, in multiples of the floor, by calls in a batch.
    pub inline_vs_floor: BTreeMap<usize, f64>,
    /// The engine with a rate, budgets, a deadline and a back-end in force, in multiples of the floor.
    pub guarded_vs_floor: BTreeMap<usize, f64>,
    /// The same with an idempotency key for each call.
    pub keyed_vs_floor: BTreeMap<usize, f64>,
    /// Every figure.
    pub figures: Vec<Figure>,
    /// The machine.
    pub machine: Machine,
    /// How often each contender was measured at each size.
    pub rounds: usize,
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
        }
    }

    /// Adds the samples of one contender at one size; the floor comes first at each size.
    pub(crate) fn add(&mut self, contender: &'static str, calls: usize, mut samples: Vec<f64>) {
        samples.sort_unstable_by(f64::total_cmp);
        let (median_ns, p25_ns) = (samples[samples.len() / 2], samples[samples.len() / 4]);
        let is_floor = |figure: &&Figure| figure.contender == "floor" && figure.calls == calls;
        let ratio = self.figures.iter().find(is_floor).map(|floor| median_ns / floor.median_ns);
        match (contender, ratio) {
            ("full", Some(ratio)) => drop(self.full_vs_floor.insert(calls, round(ratio))),
            ("inline", Some(ratio)) => drop(self.inline_vs_floor.insert(calls, round(ratio))),
            ("guarded", Some(ratio)) => drop(self.guarded_vs_floor.insert(calls, round(ratio))),
            ("keyed", Some(ratio)) => drop(self.keyed_vs_floor.insert(calls, round(ratio))),
            _ => {}
        }
        let figure = Figure { contender, calls, median_ns: round(median_ns), p25_ns: round(p25_ns) };
        self.figures.push(figure);
    }
}

/// To three digits behind the point.
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
        writeln!(f, "\n{:>7}  {:<8} {:>12} {:>12} {:>8}", "calls", "", "median ns", "p25 ns", "to F")?;
        let mut floor = f64::NAN;
        for figure in &self.figures {
            if figure.contender == "floor" {
                floor = figure.median_ns;
            }
            let Figure { contender, calls, median_ns, p25_ns } = figure;
            let ratio = median_ns / floor;
            writeln!(f, "{calls:>7}  {contender:<8} {median_ns:>12.0} {p25_ns:>12.0} {ratio:>8.2}")?;
        }
        if *build == "debug" {
            writeln!(f, "\na debug build says nothing about speed: use `cargo run --release -- bench`")?;
        }
        Ok(())
    }
}
