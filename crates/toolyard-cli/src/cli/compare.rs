//! The arguments of `toolyard compare`.

use clap::Args;
use std::path::PathBuf;

const COMPARE_HELP: &str = "\
Examples:
  toolyard run episodes.jsonl --report json > results.jsonl 2> before.json
  toolyard compare before.json after.json
  toolyard compare before.json after.json --fail-over 10 || echo 'it got worse'

Of all calls, and of each tool: calls, failures, calls per second, and percentiles of how long calls ran and were queued;
each with the change relative to the first report. A tool that only one report has is shown with the figures of that one.

--fail-over PERCENT looks at the 95th percentile of how long the calls of a tool ran, if it grew by more than 1 ms, and at
the share of calls that failed, of all and of each tool: it fails if one of them grew by more than PERCENT of what it was.

Fields of --json: a and b (the files), totals, and tools by name. Each has measures with a, b and change_percent (null if
there is nothing to compare with): calls, failed, calls_per_s; of totals also wall_ms, episodes_per_s, at_once; of tools
ran_p50_ms, ran_p95_ms, ran_p99_ms, queued_p50_ms, queued_p95_ms, queued_p99_ms. With --fail-over also worse: what grew.

Exit codes:
    0  the comparison is printed
    1  with --fail-over, something grew by more
    2  usage
    3  not a report: no such file, something else in it, or a report of another version";

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = COMPARE_HELP)]
pub(crate) struct CompareArgs {
    /// The first report, as `run --report json 2> FILE` writes it
    #[arg(value_name = "A.json")]
    pub(crate) a: PathBuf,
    /// The second report
    #[arg(value_name = "B.json")]
    pub(crate) b: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Exit with 1 if the second report is worse by more than this
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub(crate) fail_over: Option<f64>,
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse::<f64>();
    number
        .ok()
        .filter(|number| number.is_finite() && *number >= 0.0)
        .ok_or_else(|| "name percents, such as 10".to_owned())
}
