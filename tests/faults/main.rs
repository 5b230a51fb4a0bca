//! Tests the checks of the simulation with deliberate faults of the engine. `.ci/faults` makes this file a program of
//! its copy of the sources, where the engine has the faults.
//!
//! ```text
//! faults replay    each fault must be found at its seed, and the engine without it must pass there
//! faults search    the first seed that finds each, to be written to seeds.txt
//! ```

use std::process::ExitCode;
use toolyard_tests::sim::sim;

/// The number of seeds within which each fault must be found.
const SEEDS: u64 = 1_000;

/// The names of the faults and their seeds.
const RECORDED: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/faults/seeds.txt"));

fn main() -> ExitCode {
    let is_good = match std::env::args().nth(1).as_deref() {
        Some("replay") => each(|name, seed| replay(name, seed.ok_or("it has no seed")?)),
        Some("search") => each(|name, _| search(name)),
        other => panic!("replay or search, not {other:?}"),
    };
    if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Does this for each fault and prints what came of it. Returns whether all went well.
fn each(check: impl Fn(&'static str, Option<u64>) -> Result<String, String>) -> bool {
    let lines = RECORDED.lines().filter(|line| !line.starts_with('#'));
    let faults: Vec<_> = lines.map(|line| line.split_once(' ').unwrap_or((line, ""))).collect();
    let failed = faults.iter().filter(|(name, seed)| match check(name, seed.parse().ok()) {
        Ok(said) => {
            println!("{said}");
            false
        }
        Err(why) => {
            println!("{name}: FAILED: {why}");
            true
        }
    });
    let failed = failed.count();
    eprintln!("{} faults, {failed} failed", faults.len());
    failed == 0
}

/// The fault is found at its seed, and the engine without it passes there (I1 to I16).
fn replay(name: &'static str, seed: u64) -> Result<String, String> {
    if seed >= SEEDS {
        return Err(format!("seed {seed} is not among the first {SEEDS}"));
    }
    let what = found(Some(name), seed).ok_or(format!("not found at seed {seed}"))?;
    match found(None, seed) {
        None => Ok(format!("{name}: found at seed {seed}: {what}")),
        Some(what) => Err(format!("without the fault, seed {seed} finds: {what}")),
    }
}

/// The first seed that finds the fault, as a line of `seeds.txt`.
fn search(name: &'static str) -> Result<String, String> {
    let first = (0..SEEDS).find_map(|seed| Some((seed, found(Some(name), seed)?)));
    let (seed, what) = first.ok_or(format!("not found in {SEEDS} seeds"))?;
    eprintln!("    {what}");
    Ok(format!("{name} {seed}"))
}

/// The first violation at this seed for an engine with this fault.
fn found(fault: Option<&'static str>, seed: u64) -> Option<String> {
    // Those of the journal's have their patches in a folder.
    fault::set(fault.map(|name| name.trim_start_matches("journal/")));
    let first = sim(seed).violations.first().map(ToString::to_string);
    fault::set(None);
    first.map(|what| what.lines().next().unwrap_or_default().chars().take(100).collect())
}
