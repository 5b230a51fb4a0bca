//! The arguments of `toolyard journal resume`: those of `run` that matter to what a session has left open.

use super::{Approve, EventsArgs, ReportKind, RoleArgs, SetupArgs, Survives, To, at_least_one};
#[cfg(feature = "journal")]
use super::{From, InputArgs, JournalArgs, RunArgs, SessionArgs, StandInArgs};
use crate::exit;
use clap::Args;
use std::{num::NonZeroUsize, path::PathBuf};

const HELP: &str = "\
Examples:
  toolyard journal ls agent.journal --open
  toolyard journal resume agent.journal --session triage --approve auto
  toolyard journal resume agent.journal --session triage --to anthropic > results.json

What had ended has its result as recorded; what may be repeated runs again; what had not started passes the gate as it is now,
with the tools of the configuration. The results of each turn are on standard output. It is what toolyard run does with
--journal agent.journal --session triage --resume.";

/// Arguments of `journal resume`.
#[derive(Debug, Args)]
#[command(after_help = format!("{HELP}\n\n{}", exit::HELP))]
pub(crate) struct JournalResumeArgs {
    /// The journal
    pub(crate) file: PathBuf,
    /// The session
    #[arg(long, value_name = "NAME")]
    session: String,
    /// What the records of this run survive
    #[arg(long, value_name = "WHAT", default_value = "full")]
    durability: Survives,
    /// The format of the results [default: neutral]
    #[arg(long, value_name = "FORMAT")]
    to: Option<To>,
    #[command(flatten)]
    setup: SetupArgs,
    #[command(flatten)]
    role: RoleArgs,
    /// Who answers the questions about calls that need approval. Without this option you are asked if there is a
    /// terminal; otherwise recorded answers count, and what is asked anew is refused
    #[arg(long, value_name = "ANSWER")]
    approve: Option<Approve>,
    #[command(flatten)]
    events: EventsArgs,
    /// The report on stderr: a timeline, one JSON document, or none; or a page in this file, to be opened in a browser
    /// [possible values: text, json, none, html=FILE]
    #[arg(long, value_name = "KIND", default_value = "text", value_parser = ReportKind::parse)]
    report: ReportKind,
    /// The maximum number of calls of a turn at once, across all pools
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    max_in_flight: Option<NonZeroUsize>,
    /// Exit with 0 also if calls ended in error results; what the program itself could not do keeps its exit code
    #[arg(long)]
    exit_zero: bool,
    /// Do not show the live view on a terminal
    #[arg(long)]
    no_progress: bool,
    /// Print nothing on stderr except errors of the program itself
    #[arg(long, short, conflicts_with = "report")]
    quiet: bool,
}

#[cfg(feature = "journal")]
impl JournalResumeArgs {
    /// The run that it is.
    pub(crate) fn into_run(self) -> RunArgs {
        RunArgs {
            input: InputArgs { file: None, from: From::Auto },
            to: self.to,
            setup: self.setup,
            role: self.role,
            approve: self.approve,
            journal: JournalArgs { journal: Some(self.file), durability: self.durability },
            session: SessionArgs { session: Some(self.session), resume: true },
            events: self.events,
            report: self.report,
            trace: None,
            max_in_flight: self.max_in_flight,
            jobs: NonZeroUsize::MIN,
            continued: None,
            stand_ins: StandInArgs { record: None, replay: None, replay_latency: false, seed: 0 },
            sequential: false,
            exit_zero: self.exit_zero,
            no_progress: self.no_progress,
            quiet: self.quiet,
        }
    }
}
