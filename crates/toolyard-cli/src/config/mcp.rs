//! `[mcp.NAME]`: MCP servers, which offer tools beside the built-in ones.

#[cfg(feature = "mcp-http")]
mod remote;
mod sandbox;

#[cfg(feature = "mcp-http")]
use remote::remote;

use super::{
    section::{BoolOrString, Placed, Section},
    variables::{self, Variable},
};
use std::{
    ops::Range,
    path::{Path, PathBuf},
};
use toolyard::Redactor;
use toolyard_mcp::{Pinning, ServerConfig};

/// Reads the section; paths are relative to `here`. A server with errors is kept, because other sections may name its
/// tools.
pub(super) fn read(mut section: Section<'_>, here: &Path) -> Vec<ServerConfig> {
    let mut servers = Vec::new();
    for (name, at, inner) in section.sections() {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(is_word) {
            let what =
                format!("'{name}' is not a name for an MCP server: use letters, digits, '-', '_' and '.'");
            section.report(&at, what);
        }
        servers.push(server(&name, &at, inner, here));
    }
    section.finish();
    servers
}

fn server(name: &str, at: &Range<usize>, mut section: Section<'_>, here: &Path) -> ServerConfig {
    let url = section.string("url");
    let is_remote = url.is_some();
    let mut server = match url {
        Some(url) => {
            let server = remote(name, url, &mut section, here);
            sandbox::take_none(&mut section, at);
            server
        }
        None => {
            let server = program(name, &mut section, here);
            let server = sandbox::take(server, &mut section, here);
            sandbox::check(&server, &section, at);
            server
        }
    };
    if let Some(trusted) = section.boolean("trust") {
        server = server.trusted(trusted);
    }
    server = prefix(server, &mut section);
    if let Some(required) = section.boolean("required") {
        server = server.required(required);
    }
    server = server.may_ask(section.boolean("may_ask").unwrap_or(true));
    if let Some(limit) = section.duration("startup_timeout") {
        server = server.startup_timeout(limit);
    }
    server = server.pinning(pinning(&mut section, here));
    if !is_remote && !section.was_given("command") {
        check_mistyped(name, at, &mut section);
    }
    section.finish();
    server
}

/// Reports that a server has no command, unless a key looks like a mistyped `command` or `url`, which is reported as
/// such.
fn check_mistyped(name: &str, at: &Range<usize>, section: &mut Section<'_>) {
    if section.was_given("url") || section.is_mistyped("command") {
        return;
    }
    if section.is_mistyped("url") {
        // The other keys of a server over HTTP are right, then.
        for key in ["token_env", "headers", "ca", "allow_private"] {
            section.take(key);
        }
        return;
    }
    section.report(at, format!("[mcp.{name}] needs a command: the program to run as the server"));
}

/// A server that runs as a child process.
fn program(name: &str, section: &mut Section<'_>, here: &Path) -> ServerConfig {
    let (command, _) = section.string("command").unwrap_or_default();
    let args = section.strings("args").unwrap_or_default();
    let server =
        ServerConfig::new(name, program_path(&command, here)).args(args.into_iter().map(|(arg, _)| arg));
    let server = environment(server, section.section("env"));
    match section.string("cwd") {
        Some((cwd, _)) => server.cwd(here.join(cwd)),
        None => server,
    }
}

#[cfg(not(feature = "mcp-http"))]
fn remote(name: &str, (_, at): Placed<String>, section: &mut Section<'_>, here: &Path) -> ServerConfig {
    let what = "url: this program was built without the feature mcp-http and cannot connect over HTTP";
    section.report(&at, format!("{}{what}", section.prefix()));
    for key in ["token_env", "headers", "ca", "allow_private"] {
        section.take(key);
    }
    program(name, section, here)
}

/// Registers the secrets of the servers with the redactor. Secrets too short to be told from other text are skipped.
pub(super) fn redact_secrets(servers: &[ServerConfig], redactor: Redactor) -> Redactor {
    let secrets = servers.iter().flat_map(ServerConfig::secrets);
    secrets.fold(redactor, |redactor, secret| redactor.clone().with_secret(secret).unwrap_or(redactor))
}

/// The path of the program. One with a directory is relative to the configuration; others are searched as a shell does.
fn program_path(command: &str, here: &Path) -> PathBuf {
    match command.contains(['/', std::path::MAIN_SEPARATOR]) {
        true => here.join(command),
        false => command.into(),
    }
}

/// Gives the server the variables that the section names.
fn environment(server: ServerConfig, section: Section<'_>) -> ServerConfig {
    variables::read(section).into_iter().fold(server, |server, variable| {
        let Variable { name, value, is_secret } = variable;
        if is_secret { server.secret_env(name, value) } else { server.env(name, value) }
    })
}

fn prefix(server: ServerConfig, section: &mut Section<'_>) -> ServerConfig {
    let Some((prefix, at)): Option<Placed<String>> = section.string("prefix") else { return server };
    if prefix.chars().any(|c| c.is_whitespace() || c.is_control()) {
        section.report(&at, format!("{}prefix must not contain white space", section.prefix()));
    }
    server.prefix(prefix)
}

/// Reads `pin`: a switch, or the file in which the pins are kept.
fn pinning(section: &mut Section<'_>, here: &Path) -> Pinning {
    match section.bool_or_string("pin") {
        None | Some(BoolOrString::Bool(false)) => Pinning::Off,
        Some(BoolOrString::Bool(true)) => Pinning::Process,
        Some(BoolOrString::String(file)) => Pinning::File(here.join(file)),
    }
}
