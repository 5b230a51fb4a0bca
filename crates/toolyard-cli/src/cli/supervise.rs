//! Arguments of `supervise`.

use super::{Approve, EventsArgs, JournalArgs};
use clap::{Args, ValueEnum};
use std::{ffi::OsString, path::PathBuf};
use toolyard::HostPattern;

const EXAMPLES: &str = "\
Examples:
  toolyard supervise agents.toml                 the agents of [agents.NAME], each in a sandbox
  toolyard supervise --tools Read --fs r:data -- python3 agent.py
  toolyard supervise --tools Read,Write --fs rw:out --read .venv -- .venv/bin/python agent.py
  toolyard supervise agents.toml --journal agents.journal --session monday   again after a kill: nothing is done twice
  toolyard supervise agents.toml --audit audit.jsonl --report json > report.json";

const AGENTS: &str = "\
An agent is a program that acts by asking: it writes one JSON object a line and reads the answers (docs/agents.md). It
runs in the sandbox 'process', without a network, and reads the system, its program, the files that its arguments name,
and what 'read' adds; its own files are in /tmp and end with it. What it asks for is checked: the tool must be in 'tools',
and each path under one of 'fs'. The tools are those of the configuration and Read, Write, Echo and Agent.

Calls within 'tools' and 'fs' need no approval, unless the configuration has a section [confirmation] or --approve says
so. How an agent ended: ended, failed(code), killed(signal), limit(which), protocol, stopped, not_started.

With --journal calls are recorded. Agents that are started again in the session of the same name begin anew, and each call
with the id, the tool and the arguments of an earlier one of the same agent is answered as that was, and does not run: so an
agent that asks the same again goes on where it was. What was running when the program was killed is 'interrupted', unless
its tool may be repeated or says what became of it; an agent with a name that another one had started is started again. In
another session everything runs anew.

What an agent writes to its standard error is logged here under its name; TOOLYARD_LOG=warn leaves it out.";

const EXIT: &str = "\
Exit codes:
    0  every agent ended well
    1  some agent did not
    2  usage or configuration, or a file that could not be written
  130  interrupted: agents were told to end, and had 3 s for that";

/// Arguments of `supervise`.
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{AGENTS}\n\n{EXIT}"))]
pub(crate) struct SuperviseArgs {
    /// The configuration file with the agents [default: toolyard.toml in the current directory, if it exists]
    pub(crate) file: Option<PathBuf>,
    /// The directory that file tools are confined to [default: `[workspace] root`, else the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// The program of one agent and its arguments, in place of those of the configuration
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
    /// The tools that this agent may call
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', requires = "command")]
    pub(crate) tools: Vec<String>,
    /// A path that its calls may use, as r:PATH, w:PATH or rw:PATH; may be given more than once
    #[arg(long, value_name = "MODE:PATH", requires = "command")]
    pub(crate) fs: Vec<String>,
    /// A host that its tools may reach, such as api.example.com:443; may be given more than once
    #[arg(long, value_name = "HOST", requires = "command")]
    pub(crate) net: Vec<HostPattern>,
    /// A path that its program may read, such as the environment of an interpreter; may be given more than once
    #[arg(long, value_name = "PATH", requires = "command")]
    pub(crate) read: Vec<PathBuf>,
    /// What it is given to begin with, as JSON
    #[arg(long, value_name = "JSON", requires = "command")]
    pub(crate) input: Option<String>,
    /// Run it without a sandbox, with the rights of this program: what it asks is checked, and what else it does is not
    #[arg(long, requires = "command")]
    pub(crate) unconfined: bool,
    /// Who answers the questions about calls that need approval
    #[arg(long, value_name = "ANSWER")]
    pub(crate) approve: Option<Approve>,
    /// Append what agents did and were refused to this file, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub(crate) audit: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) journal: JournalArgs,
    /// The session of the journal in which the agents run: started again in it, an agent is answered what it was answered
    /// before under its name. Without a name it has one of its own, which is printed
    #[arg(long, value_name = "NAME", requires = "journal")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) events: EventsArgs,
    /// The report: a table on stderr, one JSON document on stdout, or none
    #[arg(long, value_name = "KIND", default_value = "text")]
    pub(crate) report: SuperviseReport,
}

/// What is reported at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SuperviseReport {
    Text,
    Json,
    None,
}
