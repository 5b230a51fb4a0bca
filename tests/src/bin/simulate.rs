//! Simulates many seeds, or one with its trace.
//!
//! ```text
//! cargo run --release -p toolyard-tests --bin simulate -- --seeds 100000 [--start S]
//! cargo run --release -p toolyard-tests --bin simulate -- --seed 17 --trace
//! ```
//!
//! It ends with 0 only when no seed shows a violation; its last line is the summary.

use clap::Parser;
use std::{
    collections::HashSet,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use toolyard_tests::sim::{Program, Report, play, program::Shape, shrink, sim};

/// Simulates the whole engine, seed by seed.
#[derive(Debug, Parser)]
struct Options {
    /// How many seeds.
    #[arg(long, default_value_t = 1000)]
    seeds: u64,
    /// The first of them.
    #[arg(long, default_value_t = 0)]
    start: u64,
    /// This seed alone.
    #[arg(long, conflicts_with = "start")]
    seed: Option<u64>,
    /// Prints the program and all that was seen of it; for one seed.
    #[arg(long, requires = "seed")]
    trace: bool,
    /// Threads to run seeds on; as many as there are processors without a word.
    #[arg(long)]
    jobs: Option<u64>,
    /// How many runs may be spent on making a failing program small.
    #[arg(long, default_value_t = 2000)]
    shrink: usize,
    /// Gives the engine a deliberate fault: a violation is expected then, and the first seed that shows it is told.
    #[cfg(toolyard_faults)]
    #[arg(long)]
    fault: Option<toolyard::fault::Fault>,
}

impl Options {
    /// Every thread that runs seeds takes the fault on.
    fn take_fault(&self) {
        #[cfg(toolyard_faults)]
        toolyard::fault::set(self.fault);
    }

    /// Whether a violation is what is looked for.
    fn expects_violation(&self) -> bool {
        #[cfg(toolyard_faults)]
        return self.fault.is_some();
        #[cfg(not(toolyard_faults))]
        false
    }

    /// Success where what was found is what was looked for.
    fn code(&self, found: bool) -> ExitCode {
        if found == self.expects_violation() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    options.take_fault();
    match options.seed {
        Some(seed) => one(seed, &options),
        None => many(&options),
    }
}

/// Runs one seed and tells of it.
fn one(seed: u64, options: &Options) -> ExitCode {
    let program = Program::generate(seed, Shape::default());
    let report = play(&program);
    if options.trace {
        println!("{program:#?}");
        report.entries.iter().for_each(|entry| println!("{entry}"));
    }
    tell(seed, &report);
    println!("seed {seed}: {} violations, trace {:016x}", report.violations.len(), report.trace_hash);
    options.code(!report.violations.is_empty())
}

fn tell(seed: u64, report: &Report) {
    for violation in report.violations.iter().take(10) {
        println!("seed {seed}: {violation}");
    }
}

/// What came of many seeds.
#[derive(Default)]
struct Sum {
    hashes: HashSet<u64>,
    entries: usize,
    failed: Vec<(u64, Report)>,
}

fn many(options: &Options) -> ExitCode {
    let bar = indicatif::ProgressBar::new(options.seeds);
    let (next, sum) = (AtomicU64::new(options.start), Mutex::new(Sum::default()));
    let end = options.start.saturating_add(options.seeds);
    std::thread::scope(|scope| {
        for _ in 0..jobs(options) {
            scope.spawn(|| {
                options.take_fault();
                while let Some(seed) = take(&next, end) {
                    let report = sim(seed);
                    if options.expects_violation() && !report.violations.is_empty() {
                        // Seeds are taken in order, so those before it are under way already.
                        next.store(end, Ordering::Relaxed);
                    }
                    count(&sum, seed, report);
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    summary(options, sum.into_inner().unwrap_or_else(PoisonError::into_inner))
}

/// The next seed, if one is left.
fn take(next: &AtomicU64, end: u64) -> Option<u64> {
    Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < end)
}

fn jobs(options: &Options) -> u64 {
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    options.jobs.unwrap_or(processors).max(1)
}

fn count(sum: &Mutex<Sum>, seed: u64, mut report: Report) {
    let mut sum = sum.lock().unwrap_or_else(PoisonError::into_inner);
    sum.hashes.insert(report.trace_hash);
    sum.entries += report.entries.len();
    if !report.violations.is_empty() {
        report.entries = Vec::new();
        sum.failed.push((seed, report));
    }
}

fn summary(options: &Options, mut sum: Sum) -> ExitCode {
    sum.failed.sort_by_key(|(seed, _)| *seed);
    sum.failed.iter().take(20).for_each(|(seed, report)| tell(*seed, report));
    if let Some((seed, report)) = sum.failed.first()
        && options.shrink > 0
    {
        small(*seed, report, options);
    }
    let seeds: Vec<_> = sum.failed.iter().take(20).map(|(seed, _)| seed.to_string()).collect();
    println!(
        "{} seeds from {}: {} with violations{}{}, {} distinct traces, {} entries",
        options.seeds,
        options.start,
        sum.failed.len(),
        if seeds.is_empty() { "" } else { ": " },
        seeds.join(" "),
        sum.hashes.len(),
        sum.entries,
    );
    options.code(!sum.failed.is_empty())
}

/// Makes a failing program small and prints it with all that was seen of it.
fn small(seed: u64, report: &Report, options: &Options) {
    let Some(rule) = report.rule() else { return };
    let program = shrink(&Program::generate(seed, Shape::default()), rule, options.shrink);
    println!("seed {seed}, made small: {program:#?}");
    let again = play(&program);
    again.entries.iter().for_each(|entry| println!("{entry}"));
    tell(seed, &again);
}
