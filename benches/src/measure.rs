//! Rounds: contenders are measured in turns.

use crate::{
    axis::{AXES, Axis, Unit, WAYS, axis},
    contender::{Contender, Contenders},
    report::Report,
    yard::CALLS_MAX,
};
use std::sync::Arc;
use tokio::{runtime::Runtime, time::Instant};

/// Options of a measurement.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Batch sizes, measured one by one; if empty, each axis uses its own.
    pub sizes: Vec<usize>,
    /// Number of measurements per contender and size; each axis's own by default.
    pub rounds: Option<usize>,
    /// Measures only these contenders: names separated by commas. A single one suits a profiler.
    pub only: Option<String>,
    /// Names of the axes to measure; [`WAYS`] if empty.
    pub axes: Vec<String>,
    /// Measures every axis.
    pub all: bool,
}

/// Measures, calling `progress` with the share of the work that is done.
///
/// # Errors
/// A sentence, if the engine cannot be built, the runtime cannot be started, or an option names something unknown.
pub fn measure(options: &Options, progress: impl FnMut(f64) + Send) -> Result<Report, String> {
    let named: Result<Vec<_>, _> = options.axes.iter().map(|name| axis(name)).collect();
    let axes = match named? {
        _ if options.all => AXES.to_vec(),
        none if none.is_empty() => vec![WAYS],
        named => named,
    };
    measure_axes(&axes, options, progress)
}

/// Measures these axes.
///
/// # Errors
/// As [`measure`].
pub fn measure_axes(
    axes: &[Axis],
    options: &Options,
    mut progress: impl FnMut(f64) + Send,
) -> Result<Report, String> {
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_time().build();
    let runtime = runtime.map_err(|error| format!("cannot start the runtime: {error}"))?;
    if let Some(size) = options.sizes.iter().find(|size| **size > CALLS_MAX) {
        return Err(format!("a batch of {size} calls exceeds the engine's limit of {CALLS_MAX}"));
    }
    let mut report = Report::new(options.rounds.unwrap_or(axes[0].rounds), workers);
    for (at, axis) in axes.iter().enumerate() {
        let contenders = runtime.block_on((axis.build)())?;
        let contenders = chosen(contenders, options.only.as_deref())?;
        let mut progress = |done: f64| progress((count(at) + done) / count(axes.len()));
        measure_axis(&runtime, axis, options, &contenders, &mut report, &mut progress)?;
    }
    Ok(report)
}

/// The contenders with these names, separated by commas.
fn chosen(contenders: Contenders, only: Option<&str>) -> Result<Contenders, String> {
    let Some(only) = only else { return Ok(contenders) };
    let names: Vec<&str> = contenders.iter().map(|contender| contender.name()).collect();
    if let Some(unknown) = only.split(',').find(|name| !names.contains(name)) {
        return Err(format!("no contender '{unknown}': choose {}", names.join(", ")));
    }
    let wanted = |contender: &Arc<dyn Contender>| only.split(',').any(|name| name == contender.name());
    Ok(contenders.iter().filter(|contender| wanted(contender)).cloned().collect())
}

fn measure_axis(
    runtime: &Runtime,
    axis: &Axis,
    options: &Options,
    contenders: &Contenders,
    report: &mut Report,
    progress: &mut dyn FnMut(f64),
) -> Result<(), String> {
    let sizes = if options.sizes.is_empty() { axis.sizes } else { &options.sizes };
    let rounds = options.rounds.unwrap_or(axis.rounds);
    for (at, size) in sizes.iter().enumerate() {
        let mut samples = vec![Vec::with_capacity(rounds); contenders.len()];
        for round in 0..rounds {
            for turn in 0..contenders.len() {
                // Each contender goes first equally often, because the first one finds colder caches.
                let which = (round + turn) % contenders.len();
                samples[which].push(sample(runtime, axis, contenders[which].clone(), *size)?);
            }
            progress(count(at * rounds + round + 1) / count(sizes.len() * rounds));
        }
        let is_first = |which: usize| which == 0 && axis.unit == Unit::Call && options.only.is_none();
        for (which, (contender, samples)) in contenders.iter().zip(samples).enumerate() {
            report.add(axis, contender.name(), *size, samples, is_first(which));
        }
    }
    Ok(())
}

/// Nanoseconds per unit, over a few batches of this size.
fn sample(runtime: &Runtime, axis: &Axis, contender: Arc<dyn Contender>, size: usize) -> Result<f64, String> {
    let batches = (axis.calls_per_sample / size).max(1);
    let units = contender.units(size) * batches;
    // Runs on a worker, as an engine's callers do: from outside the runtime, every wake-up would cross threads.
    let measured = runtime.spawn(async move {
        let work = contender.work(size, batches);
        let started_at = Instant::now();
        work.await;
        let took = started_at.elapsed();
        contender.forget();
        took
    });
    let took = runtime.block_on(measured).map_err(|error| format!("a contender failed: {error}"))?;
    Ok(took.as_secs_f64() * 1e9 / count(units))
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
pub(crate) fn count(n: usize) -> f64 {
    n as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs every contender of every axis once, on tiny input, so that none of them rots.
    #[test]
    fn every_contender_runs_and_is_reported() {
        let options = Options { sizes: vec![1, 3], rounds: Some(1), all: true, ..Options::default() };
        let tiny: Vec<_> = AXES.iter().map(|axis| Axis { calls_per_sample: 3, ..*axis }).collect();
        let mut last = 0.0;
        let report = measure_axes(&tiny, &options, |done| last = done).unwrap();
        assert!((last - 1.0).abs() < 1e-9);
        let json = serde_json::to_value(&report).unwrap();
        for size in ["1", "3"] {
            assert!(json["full_vs_floor"][size].as_f64().unwrap() > 0.0);
            assert!(json["inline_vs_floor"][size].as_f64().unwrap() > 0.0);
            assert!(json["guarded_vs_floor"][size].as_f64().unwrap() > 0.0);
            assert!(json["keyed_vs_floor"][size].as_f64().unwrap() > 0.0);
        }
        assert_eq!(json["rounds"], 1);
        let figures = json["figures"].as_array().unwrap();
        for axis in AXES {
            assert!(figures.iter().any(|figure| figure["axis"] == axis.name), "{}", axis.name);
            assert!(report.to_string().contains(axis.about), "{}", axis.name);
        }
    }

    #[test]
    fn what_is_not_there_is_named_with_what_is() {
        let options = Options { axes: vec!["bogus".into()], ..Options::default() };
        assert!(measure(&options, |_| ()).unwrap_err().contains("ways"));
        let options = Options { only: Some("bogus".into()), ..Options::default() };
        assert!(measure(&options, |_| ()).unwrap_err().contains("floor, full, inline, guarded, keyed"));
        let options = Options { only: Some("floor,bogus".into()), ..Options::default() };
        assert!(measure(&options, |_| ()).unwrap_err().contains("no contender 'bogus'"));
        let options = Options { sizes: vec![CALLS_MAX + 1], ..Options::default() };
        assert!(measure(&options, |_| ()).unwrap_err().contains("10000"));
    }
}
