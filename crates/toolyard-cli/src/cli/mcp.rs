//! The arguments of `toolyard mcp` and `toolyard mcp fetch`.

use super::{ApproveOrAsk, EventsArgs, JournalArgs, SetupArgs};
use clap::{Args, Subcommand};
use std::net::SocketAddr;

const MCP: &str = "\
Examples:
  toolyard mcp --config toolyard.toml            asks before writes and commands
  toolyard mcp --approve auto --events log-{pid}.jsonl         each client's events in a file of its own
  toolyard mcp --journal agent.journal           a call with a key runs once, also if the program is killed
  TOOLYARD_MCP_TOKEN=… toolyard mcp --http 127.0.0.1:8080      many clients, at http://127.0.0.1:8080/mcp

An entry in an MCP client's configuration:
  {\"mcpServers\": {\"toolyard\": {\"command\": \"toolyard\", \"args\": [\"mcp\", \"--config\", \"/path/toolyard.toml\"]}}}

It serves the tools that its configuration names: those of the servers in [mcp], and the built-in tools that [builtin]
enable lists. Without that list it serves no built-in tools.

Standard output carries only the protocol; the log goes to standard error. Each tools/call is handed to the engine when
it arrives, so calls that are sent together share the pools. The pools alone decide their order; tools that change
things run one at a time, in the order of arrival. If a tool fails, the result has isError, and its code and what is
known of its effect are in _meta under toolyard/error. A tools/call may carry toolyard/idempotency_key,
toolyard/timeout_ms (from its start, retries included) and toolyard/deadline_ms (its wait included) in its _meta.

With --journal calls are recorded, and a call that is sent again with its key after a restart is answered from there. The
client that had sent a call has gone when the program is started again, so what it left open ends then: a call that had
not started is cancelled, and of one that was running its tool says what became of it, or nobody knows (interrupted).

The program ends when its standard input does: calls that are still running have 5 s to be answered. With --http it runs
until a signal arrives, and each client has its own session, from its initialize to its DELETE or until it has been
silent for an hour. Requests from web pages are refused, and on a loopback address also those that name another host.";

const MCP_EXIT: &str = "\
Exit codes:
    0  the client closed the connection
    2  usage or configuration, or a file that could not be written
    3  standard input is not the start of an MCP connection
  130  interrupted: running calls had 5 s to finish";

const FETCH_HELP: &str = "\
Examples:
  toolyard mcp fetch files
  toolyard mcp fetch files --config toolyard.toml --again
  toolyard mcp fetch files --json | jq .versions

For a server with sandbox = \"process\" whose command is npx, uvx or uv tool run. The download itself is not confined, and
runs nothing of what it downloads: no install scripts of npm packages, and of Python packages only those that need not be
built. Understood of npx are -y, -p PACKAGE, --package PACKAGE and --; of uvx --from, --with, -p, --python and --.

Fields of --json: server, source (kind, packages, program, python), directory, program, versions (by package),
fetched_at_ms (since 1970, UTC), was_there (it was fetched before, and nothing was done).

Exit codes:
    0  it is there
    1  it could not be fetched: the installer is missing or failed, or the packages have no such program
    2  usage or configuration, such as an argument of npx that is not understood
  130  interrupted: nothing is left of the attempt";

/// Arguments of `mcp`.
#[derive(Debug, Args)]
#[command(after_help = format!("{MCP}\n\n{MCP_EXIT}"))]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: Option<McpCommand>,
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    /// Who answers the questions about calls that need approval
    #[arg(long, value_name = "ANSWER", default_value = "ask")]
    pub(crate) approve: ApproveOrAsk,
    #[command(flatten)]
    pub(crate) journal: JournalArgs,
    /// The session of the journal in which the client's calls are: under it a call with a key is known after a restart.
    /// Clients over HTTP have sessions of their own [default: mcp]
    #[arg(long, value_name = "NAME", requires = "journal", conflicts_with = "http")]
    pub(crate) session: Option<String>,
    #[command(flatten)]
    pub(crate) events: EventsArgs,
    /// Serve clients over streamable HTTP instead, at this address and the path /mcp. They must send the bearer token
    /// that the environment variable TOOLYARD_MCP_TOKEN holds; if it is not set, only a loopback address is allowed,
    /// and for another one it needs at least 16 characters
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) http: Option<SocketAddr>,
}

/// The subcommands of `mcp`.
#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Download a confined server that npx or uvx would download at each start; it then runs from there
    Fetch(FetchArgs),
}

/// Arguments of `mcp fetch`.
#[derive(Debug, Args)]
#[command(after_help = FETCH_HELP)]
pub(crate) struct FetchArgs {
    /// The server, as [mcp.NAME] calls it
    #[arg(value_name = "NAME")]
    pub(crate) server: String,
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    /// Fetch it also if it was fetched before, such as for a newer version
    #[arg(long)]
    pub(crate) again: bool,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
