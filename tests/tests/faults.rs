//! The checks of the simulation, checked with deliberate faults of the engine; built and run by `.ci/faults`.

#![cfg(toolyard_faults)]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use std::{collections::BTreeMap, fs};
use toolyard::fault::{self, Fault};
use toolyard_tests::sim::sim;

/// In so many seeds each fault is found.
const SEEDS: u64 = 1_000;

/// The seed of each fault, as it is written down.
fn recorded() -> BTreeMap<String, u64> {
    let text = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/faults.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(fault, seed)| (fault.into(), seed.parse().unwrap()))
        .collect()
}

/// What is wrong with this seed, for an engine with this fault.
fn found(fault: Option<Fault>, seed: u64) -> Option<String> {
    fault::set(fault);
    let found = sim(seed).violations.first().map(ToString::to_string);
    fault::set(None);
    found
}

/// I1 to I16: each fault is found at its seed, where the engine without it does nothing wrong.
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

/// The first seed that finds each fault, to be written down.
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
