//! Simulates many seeds, or one seed with its trace.
//!
//! ```text
//! cargo run --release -p toolyard-tests --bin simulate -- --seeds 100000 [--start S]
//! cargo run --release -p toolyard-tests --bin simulate -- --seed 17 --trace
//! ```
//!
//! The exit code is 0 only if no seed shows a violation. The last line of output is the summary.

use clap::Parser;
use parking_lot::Mutex;
use std::{
    collections::HashSet,
    process::ExitCode,
    sync::atomic::{AtomicU64, Ordering},
};
use toolyard_tests::sim::{Program, Report, play, program::Bounds, shrink, sim};

/// Simulates the whole engine, seed by seed.
#[derive(Debug, Parser)]
struct Options {
    /// How many seeds to run.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first seed.
    #[arg(long, default_value_t = 0)]
    start: u64,
    /// Run this seed alone.
    #[arg(long, conflicts_with = "start")]
    seed: Option<u64>,
    /// Print the program and its whole journal; for a single seed.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Threads that run seeds; by default as many as there are processors.
    #[arg(long)]
    jobs: Option<u64>,
    /// How many runs may be spent on shrinking a failing program.
    #[arg(long, default_value_t = 2000)]
    shrink: usize,
}

/// Success if no seed shows a violation.
fn code(found: bool) -> ExitCode {
    if found { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn main() -> ExitCode {
    let options = Options::parse();
    match options.seed {
        Some(seed) => run_one(seed, &options),
        None => run_many(&options),
    }
}

/// Runs one seed and prints its result.
fn run_one(seed: u64, options: &Options) -> ExitCode {
    let program = Program::generate(seed, Bounds::default());
    let report = play(&program);
    if options.trace {
        println!("{program:#?}");
        report.entries.iter().chain(&report.of_lives).for_each(|entry| println!("{entry}"));
    }
    print_violations(seed, &report);
    println!("seed {seed}: {} violations, trace {:016x}", report.violations.len(), report.trace_hash);
    code(!report.violations.is_empty())
}

fn print_violations(seed: u64, report: &Report) {
    for violation in report.violations.iter().take(10) {
        println!("seed {seed}: {violation}");
    }
    if !report.violations.is_empty() {
        println!("seed {seed}: again with --seed {seed} --trace; {}", report.ends.join("; "));
    }
}

/// The results of many seeds.
#[derive(Default)]
struct Totals {
    hashes: HashSet<u64>,
    entries: usize,
    /// How many had a further run of several lives, and how many lives these had.
    with_lives: usize,
    lives: usize,
    failed: Vec<(u64, Report)>,
}

fn run_many(options: &Options) -> ExitCode {
    let bar = indicatif::ProgressBar::new(options.seeds);
    let (next, totals) = (AtomicU64::new(options.start), Mutex::new(Totals::default()));
    let end = options.start.saturating_add(options.seeds);
    std::thread::scope(|scope| {
        for _ in 0..jobs(options) {
            scope.spawn(|| {
                while let Some(seed) = next_seed(&next, end) {
                    let report = sim(seed);
                    count(&totals, seed, report);
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    summary(options, totals.into_inner())
}

/// The next seed, if one is left.
fn next_seed(next: &AtomicU64, end: u64) -> Option<u64> {
    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < end)
}

fn jobs(options: &Options) -> u64 {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    options.jobs.unwrap_or(processors).max(1)
}

fn count(totals: &Mutex<Totals>, seed: u64, mut report: Report) {
    let mut totals = totals.lock();
    totals.hashes.insert(report.trace_hash);
    totals.entries += report.entries.len() + report.of_lives.len();
    totals.with_lives += usize::from(!report.ends.is_empty());
    totals.lives += report.ends.len();
    if !report.violations.is_empty() {
        (report.entries, report.of_lives) = (Vec::new(), Vec::new());
        totals.failed.push((seed, report));
    }
}

fn summary(options: &Options, mut totals: Totals) -> ExitCode {
    totals.failed.sort_by_key(|(seed, _)| *seed);
    totals.failed.iter().take(20).for_each(|(seed, report)| print_violations(*seed, report));
    if let Some((seed, report)) = totals.failed.first()
        && options.shrink > 0
    {
        print_shrunk(*seed, report, options);
    }
    let seeds: Vec<_> = totals.failed.iter().take(20).map(|(seed, _)| seed.to_string()).collect();
    println!(
        "{} seeds from {}: {} with violations{}{}, {} distinct traces, {} entries, {} with {} lives of the engine",
        options.seeds,
        options.start,
        totals.failed.len(),
        if seeds.is_empty() { "" } else { ": " },
        seeds.join(" "),
        totals.hashes.len(),
        totals.entries,
        totals.with_lives,
        totals.lives,
    );
    code(!totals.failed.is_empty())
}

/// Shrinks a failing program and prints it with its whole journal.
fn print_shrunk(seed: u64, report: &Report, options: &Options) {
    let Some(rule) = report.rule() else { return };
    let program = shrink(&Program::generate(seed, Bounds::default()), rule, options.shrink);
    println!("seed {seed}, shrunk: {program:#?}");
    let again = play(&program);
    again.entries.iter().chain(&again.of_lives).for_each(|entry| println!("{entry}"));
    print_violations(seed, &again);
}
