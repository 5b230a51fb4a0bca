//! The command-line arguments.

mod about;
mod bench;
mod check;
mod compare;
mod durable;
mod init;
mod journal;
mod mcp;
mod report;
mod resume;
mod sandbox;
mod serve;
mod stand_ins;
mod supervise;
mod view;

pub(crate) use about::{CompletionsArgs, ManArgs, SchemaArgs, SchemaName, Shell};
pub(crate) use bench::BenchArgs;
pub(crate) use check::CheckArgs;
pub(crate) use compare::CompareArgs;
pub(crate) use durable::{JournalArgs, SessionArgs, Survives};
pub(crate) use init::{InitArgs, Language};
pub(crate) use journal::JournalCommand;
#[cfg(feature = "journal")]
pub(crate) use journal::{
    JournalApproveArgs, JournalExportArgs, JournalForgetArgs, JournalLsArgs, JournalPruneArgs,
    JournalShowArgs, JournalVerifyArgs,
};
pub(crate) use mcp::{FetchArgs, McpArgs, McpCommand};
use report::REPORT;
pub(crate) use report::ReportKind;
pub(crate) use sandbox::{SandboxCommand, SandboxSetup, SandboxSetupArgs};
pub(crate) use serve::{ServeArgs, TokenCommand, TokenNewArgs};
use stand_ins::STAND_INS;
pub(crate) use stand_ins::StandInArgs;
pub(crate) use supervise::{SuperviseArgs, SuperviseReport};
pub(crate) use view::ViewArgs;

use crate::{config::size, exit};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::{
    num::{NonZeroUsize, ParseIntError},
    path::PathBuf,
};
use toolyard::SessionOptions;
use toolyard_wire::{Dialect, Format};

const EXAMPLES: &str = "\
Examples:
  toolyard init first --lang python
  toolyard run response.json --workspace . --approve auto
  curl … | toolyard run > results.json
  toolyard mcp --config toolyard.toml
  toolyard serve --config toolyard.toml
  toolyard supervise --tools Read --fs r:data -- python3 agent.py
  toolyard plan response.json
  toolyard tools --as anthropic
  toolyard check --config toolyard.toml";

const RUN_EXAMPLES: &str = "\
Examples:
  toolyard run response.json                     the format is detected; reads need no approval
  toolyard run response.json --approve auto      writes, execution and network run too
  toolyard run response.json --approve ask       asks you about each of them, at the terminal
  toolyard run - --to anthropic < batch.json     results in another format than the input
  curl -N … | toolyard run > results.json        a stream: calls run while the model writes the next
  toolyard run episodes.jsonl --events log.jsonl
  toolyard run episodes.jsonl --jobs 8 --continue results.jsonl
  toolyard run response.json --report json 2> report.json
  toolyard run response.json --report html=report.html
  toolyard run response.json --trace trace.json   to be opened at ui.perfetto.dev or chrome://tracing";

const ASKING: &str = "\
Asking: with --approve ask, or on a terminal without --approve, each call that needs approval is shown with its real
arguments and what it would change, one call at a time; other calls of its run keep running, later runs wait. Answers
are lines read from the terminal, even if the batch comes on standard input: y yes, n no, a always (this call, and all
others that match the pattern shown), never (no, to the same calls), q quit (like an interrupt). End of input counts as
no. The time to answer ([confirmation] timeout) starts when the question is shown.";

const STREAMS: &str = "\
Streams: each call in SSE text runs as soon as it is complete and the calls before it allow, while the model is still
writing. The results are the same as for the complete text, and are printed when it has ended. If the text breaks off,
the incomplete call is answered as invalid. An error from the provider, or text that cannot be read, ends the stream:
the calls before it run, their results are printed, the error is reported, and the exit code is 3. An interrupt ends it
too; calls that had not arrived by then do not exist.";

const EPISODES: &str = "\
Episodes: a line that cannot be read is reported on stderr and does not affect other lines; the exit code is then 3.
The first line decides whether the input is episodes, unless --from episodes is given.

With --jobs N, N of them run at a time. Results stay in the order of the input: no episode starts that is more than 4 N
ahead of the first unfinished one, and while more than 64 MiB of results wait, only that one goes on. With --sequential
there is one job.

With --continue FILE, results go to FILE, an episode at a time when it has ended. To go on after a kill or an interrupt,
run the same command again: whole episodes in FILE are kept, one that breaks off runs again, and a FILE with other
results is refused. The exit code is that of all results in FILE, and of this run. Do not change the input meanwhile.

An interrupt starts no further episode. Without --continue, those that have started are printed with all their turns;
with it, one that the interrupt has reached is not written, so that it runs again.";

const PLAN_LINES: &str = "\
Each line of --json: id and turn (of episodes), runs (routing, calls), calls (call_id, name, routing, why,
approval?, error?), invalid_calls (the ids of calls that do not fit their schema).

Tools that an episode declares are treated as registered. Calls that need approval are planned as if approved.";

/// Runs the tool calls of LLM agents: concurrently, in the order the model meant, within bounds, one result per call.
#[derive(Debug, Parser)]
#[command(name = "toolyard", version, max_term_width = 110, arg_required_else_help = true)]
#[command(after_help = format!("{EXAMPLES}\n\n{}\n\nTOOLYARD_LOG sets what is logged, such as toolyard=debug.", exit::HELP))]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a commented configuration and a first tool, to begin with
    Init(InitArgs),
    /// Run the tool calls of a response, a batch or episodes; results on stdout, report on stderr
    Run(RunArgs),
    /// Serve the tools to MCP clients, over standard input and output or HTTP
    Mcp(McpArgs),
    /// Serve sessions, turns and confirmations over HTTP, with a page on which to watch and to answer
    Serve(ServeArgs),
    /// Run agents of any language, which act by asking: their calls are checked, run, audited and answered
    Supervise(SuperviseArgs),
    /// Make tokens for `serve`
    #[command(subcommand)]
    Token(TokenCommand),
    /// Show the runs, and the routing of each call and why, without running a call; list invalid calls
    Plan(PlanArgs),
    /// List the tools that the configuration provides
    Tools(ToolsArgs),
    /// Validate the configuration, and show the class of each tool and the reason for it
    Check(CheckArgs),
    /// Make a sandbox ready before a call needs it
    #[command(subcommand)]
    Sandbox(SandboxCommand),
    /// Report what an event log says about every call, and whether the log is whole
    Audit(AuditArgs),
    /// Make a page of an event log, to be opened in a browser
    View(ViewArgs),
    /// Read a journal, which keeps what a crash must not lose; prune it, and answer its questions
    #[command(subcommand)]
    Journal(JournalCommand),
    /// Show two JSON reports of `run` side by side, with what has changed
    Compare(CompareArgs),
    /// Measure this machine: the engine compared with the least work that a correct engine could do
    Bench(BenchArgs),
    /// Print the completions of a shell
    Completions(CompletionsArgs),
    /// Print the manual page, or write those of all commands to a directory
    Man(ManArgs),
    /// Print the JSON Schema of a file that the program reads or writes
    Schema(SchemaArgs),
}

/// The source of the calls.
#[derive(Debug, Args)]
pub(crate) struct InputArgs {
    /// The response, batch or episodes; with `-` or no file, standard input
    pub(crate) file: Option<PathBuf>,
    /// The format of the input
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub(crate) from: From,
}

/// The settings of the engine.
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// The configuration file [default: toolyard.toml in the current directory, if it exists]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// The directory that file tools are confined to [default: `[workspace] root`, else the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
}

/// The caller's role.
#[derive(Debug, Args)]
pub(crate) struct RoleArgs {
    /// The role in which the calls are made; `hidden_from` hides tools from roles
    #[arg(long, value_name = "NAME")]
    pub(crate) role: Option<String>,
}

impl RoleArgs {
    /// A session in this role.
    pub(crate) fn session(&self) -> SessionOptions {
        match &self.role {
            Some(role) => SessionOptions::default().role(role.as_str()),
            None => SessionOptions::default(),
        }
    }
}

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = format!("{RUN_EXAMPLES}\n\n{ASKING}\n\n{STREAMS}\n\n{EPISODES}\n\n{STAND_INS}\n\n{REPORT}\n\n{}", exit::HELP))]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// The format of the results [default: that of the input]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) to: Option<To>,
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    #[command(flatten)]
    pub(crate) role: RoleArgs,
    /// Who answers the questions about calls that need approval. Without this option you are asked if there is a
    /// terminal; otherwise write, execute and network calls are refused
    #[arg(long, value_name = "ANSWER")]
    pub(crate) approve: Option<Approve>,
    #[command(flatten)]
    pub(crate) journal: JournalArgs,
    #[command(flatten)]
    pub(crate) session: SessionArgs,
    #[command(flatten)]
    pub(crate) events: EventsArgs,
    /// The report on stderr: a timeline, one JSON document, or none; or a page in this file, to be opened in a browser
    /// [possible values: text, json, none, html=FILE]
    #[arg(long, value_name = "KIND", default_value = "text", value_parser = ReportKind::parse)]
    pub(crate) report: ReportKind,
    /// Write calls, their waits and their attempts to this file in Chrome's trace event format
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// The maximum number of calls of a response, or of one episode, at once, across all pools
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub(crate) max_in_flight: Option<NonZeroUsize>,
    /// How many episodes run at a time, each in its own session; the results stay in the order of the input
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    pub(crate) jobs: NonZeroUsize,
    /// Write the results of episodes to this file, whole episodes at a time; those that it holds are kept and not run again
    #[arg(long = "continue", value_name = "FILE")]
    pub(crate) continued: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) stand_ins: StandInArgs,
    /// Run one call at a time, in order, as a baseline for concurrent runs
    #[arg(long)]
    pub(crate) sequential: bool,
    /// Exit with 0 also if calls ended in error results; what the program itself could not do keeps its exit code
    #[arg(long)]
    pub(crate) exit_zero: bool,
    /// Do not show the live view on a terminal
    #[arg(long)]
    pub(crate) no_progress: bool,
    /// Print nothing on stderr except errors of the program itself
    #[arg(long, short, conflicts_with = "report")]
    pub(crate) quiet: bool,
}

impl RunArgs {
    /// Whether standard error is for people.
    pub(crate) fn shows_messages(&self) -> bool {
        !self.quiet && self.report != ReportKind::Json
    }
}

/// Where every event is recorded.
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Append every event to this file, as JSON lines; {pid} in the name stands for the number of this process. One
    /// program at a time writes a file
    #[arg(long, value_name = "FILE")]
    pub(crate) events: Option<PathBuf>,
    /// Start a new file before the events would grow beyond this, such as 64MiB; the full one is kept as FILE.1, the
    /// next one as FILE.2. At least 4KiB
    #[arg(long, value_name = "SIZE", requires = "events", value_parser = file_size)]
    pub(crate) events_max_bytes: Option<u64>,
}

/// Arguments of `plan`.
#[derive(Debug, Args)]
#[command(after_help = format!("{PLAN_LINES}\n\n{}", exit::HELP))]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    #[command(flatten)]
    pub(crate) role: RoleArgs,
    /// Plan as if `run` were given this answer
    #[arg(long, value_name = "ANSWER")]
    pub(crate) approve: Option<Approve>,
    /// Print one JSON object per line, one for each batch
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `tools`.
#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    #[command(flatten)]
    pub(crate) role: RoleArgs,
    /// A table for people, or the declarations for a provider's request: a list, or with gemini an object that holds it
    #[arg(long = "as", value_name = "FORMAT", default_value = "table")]
    pub(crate) shape: Shape,
    /// Only the tools that `toolyard mcp` serves: built-in ones only if the configuration enables them
    #[arg(long)]
    pub(crate) served: bool,
}

/// Arguments of `audit`.
#[derive(Debug, Args)]
#[command(after_help = AUDIT_HELP)]
pub(crate) struct AuditArgs {
    /// The log, as `run --events` writes it, with its older parts FILE.1, FILE.2, …; `-` reads standard input
    pub(crate) file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Show only the calls of this session; the whole log is still checked
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Show only the calls with this id; the whole log is still checked
    #[arg(long, value_name = "ID")]
    pub(crate) call: Option<String>,
}

/// The formats of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum From {
    Auto,
    Neutral,
    Episodes,
    OpenaiChat,
    OpenaiResponses,
    Anthropic,
    Gemini,
}

impl From {
    /// The wire format, if one is named.
    pub(crate) fn format(self) -> Option<Format> {
        match self {
            Self::Auto | Self::Episodes => None,
            Self::Neutral => Some(Format::Neutral),
            Self::OpenaiChat => Some(Format::OpenAiChat),
            Self::OpenaiResponses => Some(Format::OpenAiResponses),
            Self::Anthropic => Some(Format::Anthropic),
            Self::Gemini => Some(Format::Gemini),
        }
    }
}

/// The formats of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum To {
    Neutral,
    OpenaiChat,
    OpenaiResponses,
    Anthropic,
    Gemini,
}

impl To {
    /// The wire format.
    pub(crate) fn format(self) -> Format {
        match self {
            Self::Neutral => Format::Neutral,
            Self::OpenaiChat => Format::OpenAiChat,
            Self::OpenaiResponses => Format::OpenAiResponses,
            Self::Anthropic => Format::Anthropic,
            Self::Gemini => Format::Gemini,
        }
    }
}

/// Who answers the questions about calls that need approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approve {
    /// Every such call is approved
    Auto,
    /// Every such call is refused
    Deny,
    /// You are asked about each call, at the terminal
    Ask,
}

impl Approve {
    /// The answer given to every question, unless the user is asked.
    pub(crate) fn answer(self) -> Option<toolyard::Answer> {
        match self {
            Self::Auto => Some(toolyard::Answer::allow("--approve")),
            Self::Deny => Some(toolyard::Answer::deny("--approve")),
            Self::Ask => None,
        }
    }
}

/// Who answers the questions about calls that need approval, when serving MCP clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ApproveOrAsk {
    /// Every such call is approved
    Auto,
    /// The client asks its user, by elicitation; if it cannot, the call is refused
    Ask,
    /// Every such call is refused
    Deny,
}

/// The formats in which tools are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Shape {
    Table,
    #[value(alias = "openai-chat")]
    Openai,
    OpenaiResponses,
    Anthropic,
    Gemini,
    Mcp,
}

impl Shape {
    /// The wire dialect; `None` for the table.
    pub(crate) fn dialect(self) -> Option<Dialect> {
        match self {
            Self::Table => None,
            Self::Openai => Some(Format::OpenAiChat.into()),
            Self::OpenaiResponses => Some(Format::OpenAiResponses.into()),
            Self::Anthropic => Some(Format::Anthropic.into()),
            Self::Gemini => Some(Format::Gemini.into()),
            Self::Mcp => Some(Dialect::Mcp),
        }
    }
}

const AUDIT_HELP: &str = "\
Examples:
  toolyard run response.json --events log.jsonl; toolyard audit log.jsonl
  toolyard audit log.jsonl --session run --call call_4
  toolyard run response.json --events log.jsonl --events-max-bytes 64MiB; toolyard audit log.jsonl
  zcat old.jsonl.gz | toolyard audit - --json | jq .faults

One line per call: when it arrived (UTC), its id, its tool, the first digits of its digest, why it was allowed to run or
why not, and how it ended. Calls are listed as they end, followed by the verdict.

The audit checks: for each session, numbers without a gap and times that do not go back; for each call, the order of its
events, a single end, attempts that count up, and that what ran is what was approved; for each turn, that as many calls
ended as it says. A log may hold several lives of the engine: each begins with engine.started, and what the last one left
open is then a fault. It does not prove who wrote the file. Events of unknown kinds, from a later version of the program,
are skipped and counted. Lines may be up to 64 MiB long.

Fields of --json: calls (line, wall_ms, session, agent, turn, batch, index, call_id, tool_name, digest, decision,
attempts, outcome), happenings (events of no call, and late results), faults (line, session, call_id, what),
unreadable, unknown_kinds, has_end, cut_off (earlier lives without an end), events, calls_received, sessions, engines,
verdict (whole, not_whole, unreadable). If the log has several parts, calls, faults and unreadable name the file of
their line.
At most 1000 faults and 10000 happenings are listed; faults_left_out and happenings_left_out count the others.

Exit codes:
    0  the log is whole
    1  faults were found, such as a last line that breaks off
    2  usage
    3  not an event log: no such file, a line that is not an event, another version";

/// Parses the size of a file that holds at least a few events.
fn file_size(text: &str) -> Result<u64, String> {
    const LEAST: u64 = 4 << 10;
    let bytes = match text.parse() {
        Ok(bytes) => bytes,
        Err(_) => size::parse(text).map_err(|error| error.to_string())?,
    };
    if bytes < LEAST { Err("must be at least 4KiB".to_owned()) } else { Ok(bytes) }
}

/// Parses a number that must not be zero.
fn at_least_one(text: &str) -> Result<NonZeroUsize, String> {
    let number: usize = text.parse().map_err(|error: ParseIntError| error.to_string())?;
    NonZeroUsize::new(number).ok_or_else(|| "must be at least 1".to_owned())
}
