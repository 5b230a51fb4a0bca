//! The simulation of the whole engine (TS-2, TS-3; I1 to I16 as far as they apply).

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use std::collections::HashSet;
use toolyard_tests::sim::sim;

/// TS-2: a thousand seeds break no rule and take at least nine hundred different courses.
#[test]
fn a_thousand_seeds_break_no_rule() {
    let mut hashes = HashSet::new();
    for seed in 0..1_000 {
        let report = sim(seed);
        assert!(report.violations.is_empty(), "seed {seed}: {:#?}", report.violations);
        hashes.insert(report.trace_hash);
    }
    assert!(hashes.len() >= 900, "only {} distinct traces", hashes.len());
}

/// TS-2: the same seed always takes the same course.
#[test]
fn a_seed_is_deterministic() {
    for seed in 0..100 {
        assert_eq!(sim(seed).trace_hash, sim(seed).trace_hash, "seed {seed}");
    }
}
