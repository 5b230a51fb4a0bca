//! `toolyard mcp fetch NAME`: downloads a confined server once, to be run from there.
//!
//! ```text
//!   [mcp.NAME] npx … ─► Wanted ─┬─ source ─► npm, uv or pip, unconfined ─► Store ─► record
//!                               │                                           │
//!                               └─ args ────────────► confined server ◄─────┘ read only
//! ```
//!
//! What downloads at each start cannot be confined: it needs the registry, and a place to write. So the download is a
//! step of its own, which runs nothing of what it downloads.

mod confined;
mod install;
mod installed;
mod npx;
mod store;
mod uvx;
mod wanted;

pub(crate) use confined::fetched;

use crate::{
    cli::FetchArgs,
    config::Config,
    error::Error,
    exit::Exit,
    logging::redacted,
    run::{interrupt::Interrupts, results},
};
use serde_json::json;
use std::{
    io::{IsTerminal, stderr},
    path::{Path, PathBuf},
};
use store::{Fetched, Store};
use toolyard_mcp::ServerConfig;
use wanted::{Source, Wanted};

/// Fetches what a server of the configuration runs.
pub(crate) async fn fetch(args: FetchArgs) -> Result<Exit, Error> {
    let config = Config::load(args.setup.config.as_deref())?;
    let wanted = wanted_by(&args.server, &config.servers).map_err(Error::Usage)?;
    let root = args.setup.workspace.or(config.root).unwrap_or_else(|| PathBuf::from("."));
    let store = Store::of(&root).map_err(Error::Usage)?;
    let before = store.find(&wanted.source);
    let is_there = before.is_some() && !args.again;
    let mut interrupts = Interrupts::listen();
    let fetched = match before {
        Some(before) if is_there => before,
        before => tokio::select! {
            fetched = download(&store, &wanted.source, before) => fetched.map_err(|why| Error::Fetch(redacted(&why)))?,
            _ = interrupts.next() => return Ok(Exit::Interrupted),
        },
    };
    let text = if args.json {
        as_json(&args.server, &fetched, is_there)
    } else {
        in_words(&args.server, &fetched, is_there)
    };
    results::print_text(&text)?;
    Ok(Exit::Ok)
}

/// What the server of this name downloads.
fn wanted_by(name: &str, servers: &[ServerConfig]) -> Result<Wanted, String> {
    let Some(server) = servers.iter().find(|server| server.name() == name) else {
        let names: Vec<&str> = servers.iter().map(ServerConfig::name).collect();
        let have = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(format!("the configuration has no MCP server '{name}'; it has {have}"));
    };
    if server.confinement().is_none() {
        return Err(format!(
            "[mcp.{name}] is not confined and downloads by itself: set sandbox = \"process\" first"
        ));
    }
    match confined::wanted(server) {
        Some(wanted) => wanted.map_err(|why| format!("[mcp.{name}] {why}")),
        None => {
            let command = server.program().display();
            Err(format!(
                "[mcp.{name}] has the command '{command}', which is none that downloads: npx, uvx, uv tool run"
            ))
        }
    }
}

/// Downloads into the store, in the place of what was there before.
///
/// # Cancel safety
/// Dropping the future ends what was started and removes what is not complete.
async fn download(store: &Store, source: &Source, before: Option<Fetched>) -> Result<Fetched, String> {
    let in_store = |error: std::io::Error| format!("'{}': {error}", store.path().display());
    let begun = store.begin(source).map_err(in_store)?;
    let has_watcher = stderr().is_terminal();
    let tell = |line: &str| {
        if has_watcher {
            anstream::eprintln!("toolyard: running {}", redacted(line));
        }
    };
    install::install(source, &begun.directory, tell).await?;
    let (program, versions) = installed::look(source, &begun.directory)?;
    begun.record(program, versions, before).map_err(in_store)
}

fn in_words(server: &str, fetched: &Fetched, is_there: bool) -> String {
    let (packages, place) = (fetched.record.source.packages().join(", "), fetched.directory.display());
    let how = if is_there { "was fetched before; --again fetches it anew" } else { "is fetched" };
    let mut text =
        format!("{server}: {packages} {how}\n  in       {place}\n  runs     {}\n", fetched.program.display());
    for (name, version) in &fetched.record.versions {
        text += &format!("  package  {name} {version}\n");
    }
    text
}

fn as_json(server: &str, fetched: &Fetched, is_there: bool) -> String {
    let show = |path: &Path| path.display().to_string();
    let record = &fetched.record;
    let document = json!({
        "server": server,
        "source": record.source,
        "directory": show(&fetched.directory),
        "program": show(&fetched.program),
        "versions": record.versions,
        "fetched_at_ms": record.fetched_at_ms,
        "was_there": is_there,
    });
    format!("{document}\n")
}
