//! Tests the checks of the simulation with deliberate faults of the engine; built and run by `.ci/faults`.

#![cfg(toolyard_faults)]
#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::{collections::BTreeMap, fs};
use toolyard::fault::{self, Fault};
use toolyard_tests::sim::sim;

/// The number of seeds within which each fault must be found.
const SEEDS: u64 = 1_000;

/// The recorded seed of each fault.
fn recorded() -> BTreeMap<String, u64> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/faults.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(fault, seed)| (fault.into(), seed.parse().unwrap()))
        .collect()
}

/// The first violation at this seed for an engine with this fault.
fn found(fault: Option<Fault>, seed: u64) -> Option<String> {
    fault::set(fault);
    let found = sim(seed).violations.first().map(ToString::to_string);
    fault::set(None);
    found
}

/// I1 to I16: each fault is found at its seed, and the engine without the fault passes that seed.
#[test]
fn each_fault_is_found_at_its_seed() {
    let recorded = recorded();
    for fault in Fault::ALL {
        let seed = *recorded.get(fault.name()).unwrap_or_else(|| panic!("{fault} has no seed"));
        assert!(seed < SEEDS, "{fault}: {seed} is not among the first {SEEDS}");
        assert!(found(Some(fault), seed).is_some(), "{fault} is not found at seed {seed}");
        assert_eq!(found(None, seed), None, "seed {seed} finds something without {fault}");
    }
}

/// Prints the first seed that finds each fault, to be recorded.
#[test]
#[ignore = "a search, run by hand when the programs of the seeds change"]
fn search() {
    for fault in Fault::ALL {
        let first = (0..SEEDS).find_map(|seed| Some((seed, found(Some(fault), seed)?)));
        let (seed, what) = first.unwrap_or_else(|| panic!("{fault} is not found in {SEEDS} seeds"));
        println!("{fault} {seed}");
        eprintln!("    {}", what.chars().take(160).collect::<String>());
    }
}
