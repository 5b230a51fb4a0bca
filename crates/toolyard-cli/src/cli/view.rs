//! The arguments of `toolyard view`.

use clap::Args;
use std::path::PathBuf;

const VIEW_HELP: &str = "\
Examples:
  toolyard run response.json --events log.jsonl; toolyard view log.jsonl
  toolyard view log.jsonl --out report.html --open
  toolyard view - < log.jsonl --out - > report.html

The page shows every call of every turn: what it waited for and why, its attempts, its output and its end. It is one file
that needs no server and loads nothing, so it can be kept or sent; it contains what the log contains, such as the
arguments of calls that needed approval, and the output of tools.

Without --out, the page of log.jsonl is log.html beside it, and that of standard input toolyard-report.html; a file of
that name that is not such a page is not overwritten. Of a log with more than 64 MiB of events, some 200 000, the page
has the newest, and says how many are left out. Lines that break off are passed over; toolyard audit tells about them.

Exit codes:
    0  the page is written
    2  usage, or the page cannot be written
    3  not an event log: no such file, a line that is not an event, another version";

/// Arguments of `view`.
#[derive(Debug, Args)]
#[command(after_help = VIEW_HELP)]
pub(crate) struct ViewArgs {
    /// The log, as `run --events` writes it, with its older parts FILE.1, FILE.2, …; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Where to write the page; `-` writes it to standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Open the page in a browser
    #[arg(long)]
    pub(crate) open: bool,
}
