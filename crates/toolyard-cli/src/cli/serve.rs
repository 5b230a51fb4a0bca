//! The arguments of `toolyard serve` and `toolyard token new`.

use super::{EventsArgs, JournalArgs, SetupArgs};
use clap::{Args, Subcommand};
use std::{net::SocketAddr, path::PathBuf};
use toolyard_server::Scope;

const SERVE: &str = "\
Examples:
  toolyard serve                                 prints a link to the page and a token for calls
  toolyard serve --http 127.0.0.1:9000 --config toolyard.toml --events log.jsonl
  toolyard serve --http 0.0.0.0:8443 --tls-cert cert.pem --tls-key key.pem
  toolyard serve --config toolyard.toml --journal agent.journal
                                                 goes on after a crash or a deploy where it was
  toolyard serve --open-call                     calls need no token; nobody is asked, so that writes are refused
  toolyard serve --json | jq -r .link
  toolyard serve --stdio                         for a program that starts this one and has functions of its own
  toolyard serve --stdio --http 127.0.0.1:8080   the same, with the page

A call, with the token that is printed:
  curl -H \"Authorization: Bearer $TOKEN\" --json '{\"id\": \"demo\"}' http://127.0.0.1:8080/sessions
  curl -H \"Authorization: Bearer $TOKEN\" --json @response.json http://127.0.0.1:8080/sessions/demo/turns?wait=60

Tokens with names, scopes and bounds are configured as [server.tokens.NAME]; 'toolyard token new NAME' makes one. Without
any, the program makes two for as long as it runs: a link to the page, which is good for one browser, and a token for
calls. Approving, operating and observing always need a secret, also on this machine: a tool that runs commands could
otherwise approve itself.

With --stdio, the program that has started this one writes a JSON object a line and reads one a line: the calls of a model,
its own functions as tools, and answers to questions. The packages for Python and JavaScript speak it.

Questions about calls that need approval are shown on the page and at /confirmations; the first answer counts.

With --journal, the sessions of before are open again when the program is started again on the same file, for the tokens of
the same names, and their turns go on: what had ended has its results, what was asked about is asked again, and a request
that comes again with its Idempotency-Key finds what it has made.

POST /reload and SIGHUP read the configuration again: pools, rules and tokens change at once, and whatever else differs is
named.

Every request and answer is described at /openapi.json.";

const SERVE_EXIT: &str = "\
Exit codes:
    0  with --stdio: the other program has closed its end
    2  usage or configuration, an address that cannot be served, a line that cannot be read, or a file that could not be
       written
  130  interrupted: running calls had 5 s to finish";

const TOKEN: &str = "\
Examples:
  toolyard token new ci --scope call             prints the token, once, and what to put into toolyard.toml
  toolyard token new ada --scope approve --scope observe
  toolyard token new ci --scope call --json | jq -r .token

Scopes: call (open sessions and make calls), approve (answer questions), observe (see everything), operate (change pools
and breakers, reload the configuration, cancel and close the sessions of others).

Exit codes:
    0  it is printed
    2  usage";

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(after_help = format!("{SERVE}\n\n{SERVE_EXIT}"))]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) setup: SetupArgs,
    /// The address to serve at; 127.0.0.1:8080 without it, and none with --stdio
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) http: Option<SocketAddr>,
    /// Speak with the program that has started this one, on standard input and output, until it closes its end
    #[arg(long, conflicts_with_all = ["json", "open_call", "journal"])]
    pub(crate) stdio: bool,
    /// Serve over TLS, with the certificate in this file of PEM, and those that lead to its authority behind it
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The private key of the certificate, in a file of PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Let whoever reaches the address, which must be a loopback one, make calls without a token. There is no page then,
    /// and calls that need approval are refused
    #[arg(long)]
    pub(crate) open_call: bool,
    #[command(flatten)]
    pub(crate) events: EventsArgs,
    #[command(flatten)]
    pub(crate) journal: JournalArgs,
    /// Print one JSON object with the address, the link and the token, on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

/// The subcommands of `token`.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token for `toolyard serve`
    New(TokenNewArgs),
}

/// Arguments of `token new`.
#[derive(Debug, Args)]
#[command(after_help = TOKEN)]
pub(crate) struct TokenNewArgs {
    /// The name of its holder, as [server.tokens.NAME] calls it
    #[arg(value_name = "NAME", value_parser = token_name)]
    pub(crate) name: String,
    /// What it lets its holder do; may be given more than once
    #[arg(long = "scope", value_name = "SCOPE", required = true)]
    pub(crate) scopes: Vec<Scope>,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

fn token_name(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    match (1..=64).contains(&text.len()) && text.bytes().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("a name has 1 to 64 of A-Z a-z 0-9 _ -".to_owned()),
    }
}
