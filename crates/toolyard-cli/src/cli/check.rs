//! The arguments of `toolyard check`.

use super::SetupArgs;
use clap::Args;
use std::path::PathBuf;

const CHECK_JSON: &str = "\
Fields of --json: valid, settings (by name), tools (one for each, with the columns of the tables), warnings and notes, all
in the words of the text. Otherwise, whatever is wrong: valid (false) and errors (file or null, line or null, what).

With --journal also open_calls, the calls that it has open: session, agent, turn, batch, place, call_id, tool, state
(not_started, cancelled, attempted), change (null, or how its tool is not as it was: gone; unavailable, because its server
is; version, since the call was started; schema, which does not take its arguments any more) and then (what that means).";

const CHECK_EXIT: &str = "\
Exit codes:
    0  valid
    1  valid, and with --journal the tool of an open call is not as it was
    2  usage or configuration
    3  with --journal: not a journal, or damaged so that it cannot be read
  130  interrupted";

const CHECK_EXAMPLES: &str = "\
Examples:
  toolyard check --config toolyard.toml
  toolyard check --journal agent.journal         before new tools take up what the old ones have left open";

/// Arguments of `check`.
#[derive(Debug, Args)]
#[command(after_help = format!("{CHECK_EXAMPLES}\n\n{CHECK_JSON}\n\n{CHECK_EXIT}"))]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    /// List the calls that this journal has open, and whose tools are gone or are not as they were. It may be written
    /// meanwhile
    #[arg(long, value_name = "FILE")]
    pub(crate) journal: Option<PathBuf>,
    /// Print one JSON object, also about what cannot be used
    #[arg(long)]
    pub(crate) json: bool,
}
