//! Arguments about what answers calls in place of their tools.

use clap::Args;
use std::path::PathBuf;

pub(super) const STAND_INS: &str = "\
Without back-ends: [mock.TOOL] in the configuration answers the calls of a tool with a text of their arguments, after a
time, or lets them fail. --record FILE writes how the calls of real tools ended, and --replay FILE gives that again: no
tool runs, and no server is started. A call is found by its episode, turn, tool, arguments, and which of equal calls it
is; one that is not in FILE fails, and says so. Mocks are not recorded. With --continue, a record is kept and goes on.";

/// What answers calls in place of their tools.
#[derive(Debug, Args)]
pub(crate) struct StandInArgs {
    /// Write how the calls of real tools end to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Answer calls from this file, which --record wrote, instead of running tools
    #[arg(long, value_name = "FILE", conflicts_with = "record")]
    pub(crate) replay: Option<PathBuf>,
    /// Let replayed calls take as long as they did, instead of none
    #[arg(long, requires = "replay")]
    pub(crate) replay_latency: bool,
    /// The seed of mocks: the same one gives the same results
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) seed: u64,
}
