//! The arguments of `toolyard bench`.

use super::at_least_one;
use clap::Args;
use std::num::NonZeroUsize;

const BENCH_EXAMPLES: &str = "\
Examples:
  cargo run --release -- bench              a debug build says nothing about speed
  toolyard bench --json > bench.json
  toolyard bench --calls 1,8,40 --rounds 301
  toolyard bench --axis stages              what each stage costs; an unknown name lists all
  toolyard bench --all --json

The JSON document: full_vs_floor, inline_vs_floor, guarded_vs_floor and keyed_vs_floor (by calls in a batch, in
multiples of the floor), figures (axis, contender, calls, median_ns and p25_ns per call, ratio to the first of the
axis), machine, rounds.";

/// Arguments of `bench`.
#[derive(Debug, Args)]
#[command(after_help = BENCH_EXAMPLES)]
pub(crate) struct BenchArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    /// Batch sizes in calls, measured one by one [default: 1,40,1000, or what fits the axis]
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = at_least_one)]
    pub(crate) calls: Vec<NonZeroUsize>,
    /// Number of measurements per contender and size [default: 101, or what fits the axis]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) rounds: Option<NonZeroUsize>,
    /// Vary this instead of the ways in which the engine is used; may be given more than once
    #[arg(long, value_name = "NAME", conflicts_with = "all")]
    pub(crate) axis: Vec<String>,
    /// Measure every axis, which takes some minutes
    #[arg(long)]
    pub(crate) all: bool,
    /// Measure only these contenders, such as floor,full; name a single one when profiling
    #[arg(long, value_name = "NAMES")]
    pub(crate) only: Option<String>,
}
