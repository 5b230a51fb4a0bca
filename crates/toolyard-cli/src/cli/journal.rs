//! The arguments of `toolyard journal`.

use super::resume::JournalResumeArgs;
use crate::config::size;
use clap::{ArgGroup, Args, Subcommand};
use std::{num::NonZeroU64, path::PathBuf, time::Duration};
use toolyard::RequestId;

/// The exit codes of those that read.
const READ_EXIT: &str = "\
Exit codes:
    0  printed
    1  there is no such session or turn
    2  usage, or the output cannot be written
    3  not a journal: no such file, another kind, a newer version, or damaged so that it cannot be read";

/// The exit codes of those that write.
const WRITE_EXIT: &str = "\
Exit codes:
    0  done, and in the file
    1  refused: there is no such thing, or it was done before
    2  usage, or another program has the journal, or it cannot be written
    3  not a journal: no such file, another kind, a newer version, or damaged so that it cannot be used";

const LS_HELP: &str = "\
Examples:
  toolyard journal ls agent.journal
  toolyard journal ls agent.journal --open --json | jq -r .session

One line for each turn of an agent. Each call is counted once: ended (it has a result), attempted (it was started, and what
became of it is not recorded), not started, cancelled (it ended so, or will not be started because a cancel is recorded).
A turn is open while a call of it, or of what its calls have dispatched, has no result.

If the machine has started again after a program with durability \"process\" had not closed the journal, its last records
may be missing; the list then says from when.

Fields of --json: what (turn), epoch, session, is_named, agent, turn, began_ms, is_open, ended, attempted, not_started,
cancelled, open_questions; before them, for records that may be missing: what (gap), epoch, since_ms. Times are milliseconds
since 1970, UTC.";

const SHOW_HELP: &str = "\
Examples:
  toolyard journal show agent.journal --session triage
  toolyard journal show agent.journal --session triage --turn 3 --json | jq 'select(.state == \"attempted\")'

Every call of a turn with its attempts, its result and the questions about it. Of several sessions of one name all are shown,
each with the epoch of its opening, the oldest first; a turn that was resumed is one of the epoch that has resumed it. A journal keeps arguments and keys as they came: tokens and passwords
are replaced here, as far as they are recognised, and long texts cut, unless --arguments asks for arguments as they are.

Fields of --json, one line for each call: epoch, session, agent, turn, batch, place, call_id, tool, key, state (not_started,
attempted, ended), is_cancelled, arguments, attempts (attempt, version, side_effects, approval, started_ms, ended_ms,
is_retried, code), result (ok, output or error, dedupe, sandbox, ended_ms), questions (request, digest, asked_ms, shares,
decision, who, reason, edited, answered_ms), verdict (done, not_done, unknown). What there is not is null.";

const VERIFY_HELP: &str = "\
Examples:
  toolyard journal verify agent.journal
  toolyard journal verify agent.journal --json | jq -r '.findings[].what'

Reads the whole file and changes nothing: pages that SQLite finds damaged, rows without those they belong to, batches that
lack calls, calls that ran without a recorded attempt, clocks that were set back (which damages nothing). At most 20 findings
of a kind are told. A text that was changed to another text is not found.

Fields of --json: is_whole, calls, open_calls, findings (what, is_damage).

Exit codes:
    0  the journal is whole
    1  it is damaged
    2  usage, or the output cannot be written
    3  not a journal: no such file, another kind, a newer version, or so damaged that nothing of it can be read";

const PRUNE_HELP: &str = "\
Examples:
  toolyard journal prune agent.journal --older-than 30d
  toolyard journal prune agent.journal --older-than 12h --max-size 1GiB

Removes turns that have ended, as wholes, the oldest first, and gives their room back. What is open stays, whatever its age
and size. An idempotency key whose call is removed is not known any more.

It needs the journal for itself: no other program may have it open for writing.

Fields of --json: batches (removed), bytes (of the journal now).";

const EXPORT_HELP: &str = "\
Examples:
  toolyard journal export agent.journal > agent.jsonl
  toolyard journal export agent.journal --session triage --anchor | tail -n 1

Every record as a line of JSON: kind (epoch, session, fork, batch, call, attempt, question, verdict, cancel), then the columns
of the view of such records, by their names. JSON in a column is a text. Epochs come in their order, each followed by its
sessions and what belongs to them. What it prints has every secret that the calls had: arguments and keys are as they came.

With --anchor each line ends with \"before\", the SHA-256 of the line before it without its end (64 zeros in the first), and a
last line has \"anchor\", the SHA-256 of the last record's line, and \"lines\", how many records there are. Whoever keeps the
anchor elsewhere can tell whether a kept export was changed.";

const APPROVE_HELP: &str = "\
Examples:
  toolyard journal ls agent.journal --open
  toolyard journal approve agent.journal 5d1f0c9a7be24a60.3.9c41ee07d2b8f315 --reason \"seen the diff\"
  toolyard journal approve agent.journal 5d1f0c9a7be24a60.3.9c41ee07d2b8f315 --deny --reason \"not on a Friday\"

Answers a question that a program has left open when it ended. The answer counts when the turn is resumed, for exactly what
was asked about: toolyard journal show shows it. A program that runs is answered where it asks.";

const FORGET_HELP: &str = "\
Examples:
  toolyard journal forget agent.journal --session triage --key order-17

Releases an idempotency key of a session that somebody has named: a call that comes with it later is a new one, and is not
given the result of an earlier call. Refused while a call of this key has not ended: it may have done its work.";

/// The subcommands of `journal`.
#[derive(Debug, Subcommand)]
pub(crate) enum JournalCommand {
    /// List turns, the newest first: what of them has ended and what is open
    Ls(JournalLsArgs),
    /// Show the calls of a session, with attempts, results and questions
    Show(JournalShowArgs),
    /// Say whether a journal is whole
    Verify(JournalVerifyArgs),
    /// Remove turns that have ended, by age and down to a size
    Prune(JournalPruneArgs),
    /// Print every record as a line of JSON
    Export(JournalExportArgs),
    /// Go on with what a session has left open, as `run --resume` does
    Resume(Box<JournalResumeArgs>),
    /// Answer a question while no program has the journal
    Approve(JournalApproveArgs),
    /// Release an idempotency key of a named session
    Forget(JournalForgetArgs),
}

/// Arguments of `journal ls`.
#[derive(Debug, Args)]
#[command(after_help = format!("{LS_HELP}\n\n{READ_EXIT}"))]
pub(crate) struct JournalLsArgs {
    /// The journal
    pub(crate) file: PathBuf,
    /// Only turns that are open
    #[arg(long)]
    pub(crate) open: bool,
    /// Only so many of the newest [default: 100; with --json all]
    #[arg(long, value_name = "N")]
    pub(crate) last: Option<NonZeroU64>,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `journal show`.
#[derive(Debug, Args)]
#[command(after_help = format!("{SHOW_HELP}\n\n{READ_EXIT}"))]
pub(crate) struct JournalShowArgs {
    /// The journal
    pub(crate) file: PathBuf,
    /// The session
    #[arg(long, value_name = "NAME")]
    pub(crate) session: String,
    /// Only the turns of this number
    #[arg(long, value_name = "N")]
    pub(crate) turn: Option<u64>,
    /// Print arguments as they are, whole and with every secret in them
    #[arg(long)]
    pub(crate) arguments: bool,
    /// Print one JSON object per line, one for each call
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `journal verify`.
#[derive(Debug, Args)]
#[command(after_help = VERIFY_HELP)]
pub(crate) struct JournalVerifyArgs {
    /// The journal
    pub(crate) file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `journal prune`.
#[derive(Debug, Args)]
#[command(after_help = format!("{PRUNE_HELP}\n\n{WRITE_EXIT}"))]
#[command(group = ArgGroup::new("bound").required(true).multiple(true).args(["older_than", "max_size"]))]
pub(crate) struct JournalPruneArgs {
    /// The journal
    pub(crate) file: PathBuf,
    /// Remove turns that began longer ago than this, such as 30d or 12h
    #[arg(long, value_name = "AGE", value_parser = age)]
    pub(crate) older_than: Option<Duration>,
    /// Remove the oldest turns until the rest takes at most this much, such as 1GiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub(crate) max_size: Option<u64>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `journal export`.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXPORT_HELP}\n\n{READ_EXIT}"))]
pub(crate) struct JournalExportArgs {
    /// The journal
    pub(crate) file: PathBuf,
    /// Only what belongs to sessions of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Chain the lines by SHA-256, and print the last hash
    #[arg(long)]
    pub(crate) anchor: bool,
}

/// Arguments of `journal approve`.
#[derive(Debug, Args)]
#[command(after_help = format!("{APPROVE_HELP}\n\n{WRITE_EXIT}"))]
pub(crate) struct JournalApproveArgs {
    /// The journal
    pub(crate) file: PathBuf,
    /// The id of the question, as `journal show` prints it
    #[arg(value_name = "REQUEST_ID")]
    pub(crate) request: RequestId,
    /// Say no
    #[arg(long)]
    pub(crate) deny: bool,
    /// Why; the model reads the reason of a no
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
}

/// Arguments of `journal forget`.
#[derive(Debug, Args)]
#[command(after_help = format!("{FORGET_HELP}\n\n{WRITE_EXIT}"))]
pub(crate) struct JournalForgetArgs {
    /// The journal
    pub(crate) file: PathBuf,
    /// The session
    #[arg(long, value_name = "NAME")]
    pub(crate) session: String,
    /// The idempotency key
    #[arg(long, value_name = "KEY")]
    pub(crate) key: String,
}

/// Parses an age: a whole number, and the unit `d`, `h`, `m` or `s`.
fn age(text: &str) -> Result<Duration, String> {
    let form = || "write a whole number of at least 1 and a unit, such as 30d, 12h, 5m or 10s".to_owned();
    let unit_at = text.find(|char: char| !char.is_ascii_digit()).ok_or_else(form)?;
    let (number, unit) = text.split_at(unit_at);
    let unit: u64 = match unit {
        "d" => 24 * 3600,
        "h" => 3600,
        "m" => 60,
        "s" => 1,
        _ => return Err(form()),
    };
    let seconds = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    seconds.filter(|seconds| *seconds > 0).map(Duration::from_secs).ok_or_else(form)
}

/// Parses a size.
fn bytes(text: &str) -> Result<u64, String> {
    size::parse(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_a_whole_number_and_a_unit() {
        for (text, seconds) in [("30d", 2_592_000), ("12h", 43_200), ("5m", 300), ("10s", 10)] {
            assert_eq!(age(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in
            ["", "30", "d", "0d", "1.5h", "-1d", "1w", "1 d", "99999999999999999999d", "999999999999999999d"]
        {
            assert!(age(text).is_err(), "{text}");
        }
    }
}
