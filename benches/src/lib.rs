//! The engine measured against the least a correct engine could do.
//!
//! ```text
//!   round    F  engine  inline │ engine  inline  F │ inline  F  engine │ …     one after the other, in turns
//!   sample   one batch size, as many batches as fill about a millisecond
//!   figure   median over the rounds, in nanoseconds a call, and its ratio to F in the same run
//! ```
//!
//! Everything runs in one process and in turns, so that what else the machine does hits all of them alike.
//! The ratios are what counts; nanoseconds differ from machine to machine and from hour to hour.

mod contender;
mod floor;
mod full;
mod report;

pub use report::{Figure, Machine, Report};

use contender::Contender;
use tokio::time::Instant;

/// What is measured.
#[derive(Debug, Clone)]
pub struct Options {
    /// Calls in a batch, one measurement each.
    pub sizes: Vec<usize>,
    /// How often each contender is measured at each size.
    pub rounds: usize,
    /// One contender alone, by its name, for a profiler: `floor`, `full`, `inline`, `guarded` or `keyed`.
    pub only: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { sizes: vec![1, 40, 1000], rounds: 101, only: None }
    }
}

/// Calls per sample: small batches are run so often that a sample takes about a millisecond.
const CALLS_PER_SAMPLE: usize = 2000;

/// Measures the floor and the engine, calling `progress` with the share of the work that is done.
///
/// # Errors
/// A sentence, when the engine cannot be built or the runtime cannot be started.
pub fn measure(options: &Options, mut progress: impl FnMut(f64) + Send) -> Result<Report, String> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_time().build();
    let runtime = runtime.map_err(|error| format!("the runtime cannot be started: {error}"))?;
    if let Some(size) = options.sizes.iter().find(|size| **size > full::IDS) {
        return Err(format!("a batch of {size} calls is over the engine's bound of {}", full::IDS));
    }
    let mut contenders = runtime.block_on(contender::all())?;
    if let Some(only) = &options.only {
        contenders.retain(|contender| contender.name() == only);
        if contenders.is_empty() {
            return Err(format!(
                "there is no contender '{only}': choose floor, full, inline, guarded or keyed"
            ));
        }
    }
    let mut report = Report::new(options.rounds, workers);
    let steps = options.sizes.len() * options.rounds;
    for (at, size) in options.sizes.iter().enumerate() {
        let mut samples = vec![Vec::with_capacity(options.rounds); contenders.len()];
        for round in 0..options.rounds {
            for turn in 0..contenders.len() {
                // Each goes first as often as the others: who goes first finds colder caches.
                let which = (round + turn) % contenders.len();
                samples[which].push(sample(&runtime, contenders[which].clone(), *size)?);
            }
            let done = at * options.rounds + round + 1;
            progress(count(done) / count(steps));
        }
        for (contender, samples) in contenders.iter().zip(samples) {
            report.add(contender.name(), *size, samples);
        }
    }
    Ok(report)
}

/// Nanoseconds a call, over a few batches of this size.
fn sample(runtime: &tokio::runtime::Runtime, contender: Contender, size: usize) -> Result<f64, String> {
    let batches = (CALLS_PER_SAMPLE / size).max(1);
    // On a worker, where the callers of an engine are: from outside every wake-up crosses threads.
    let measured = runtime.spawn(async move {
        let inputs: Vec<_> = (0..batches).map(|_| contender.prepare(size)).collect();
        let started_at = Instant::now();
        for input in inputs {
            contender.run(input).await;
        }
        started_at.elapsed()
    });
    let took = runtime.block_on(measured).map_err(|error| format!("a contender failed: {error}"))?;
    Ok(took.as_secs_f64() * 1e9 / count(batches * size))
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Benches that are not run rot: this runs every contender once, on tiny input.
    #[test]
    fn every_contender_runs_and_is_reported() {
        let options = Options { sizes: vec![1, 3], rounds: 1, ..Options::default() };
        let mut last = 0.0;
        let report = measure(&options, |done| last = done).unwrap();
        assert!((last - 1.0).abs() < f64::EPSILON);
        let json = serde_json::to_value(&report).unwrap();
        for size in ["1", "3"] {
            assert!(json["full_vs_floor"][size].as_f64().unwrap() > 0.0);
            assert!(json["inline_vs_floor"][size].as_f64().unwrap() > 0.0);
            assert!(json["guarded_vs_floor"][size].as_f64().unwrap() > 0.0);
            assert!(json["keyed_vs_floor"][size].as_f64().unwrap() > 0.0);
        }
        assert_eq!(json["rounds"], 1);
    }
}
