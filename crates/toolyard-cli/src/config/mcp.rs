//! `[mcp.NAME]`: MCP servers, which offer tools beside the built-in ones.

#[cfg(feature = "mcp-http")]
mod remote;

#[cfg(feature = "mcp-http")]
pub(super) use remote::redact_secrets;
#[cfg(feature = "mcp-http")]
use remote::remote;

use super::{
    ConfigError,
    section::{BoolOrString, Placed, Section},
};
use std::{
    env,
    ops::Range,
    path::{Path, PathBuf},
};
use toolyard_mcp::{Pinning, ServerConfig};

/// Reads the section; paths are relative to `here`.
pub(super) fn read(mut section: Section<'_>, here: &Path) -> Result<Vec<ServerConfig>, ConfigError> {
    let mut servers = Vec::new();
    for (name, at, inner) in section.sections()? {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if name.is_empty() || !name.chars().all(is_word) {
            let what =
                format!("'{name}' is not a name for an MCP server: use letters, digits, '-', '_' and '.'");
            return Err(section.error(&at, what));
        }
        servers.push(server(&name, &at, inner, here)?);
    }
    section.finish()?;
    Ok(servers)
}

fn server(
    name: &str,
    at: &Range<usize>,
    mut section: Section<'_>,
    here: &Path,
) -> Result<ServerConfig, ConfigError> {
    let mut server = match section.string("url")? {
        Some(url) => remote(name, url, &mut section, here)?,
        None => program(name, at, &mut section, here)?,
    };
    if let Some(trusted) = section.boolean("trust")? {
        server = server.trusted(trusted);
    }
    server = prefix(server, &mut section)?;
    if let Some(required) = section.boolean("required")? {
        server = server.required(required);
    }
    server = server.may_ask(section.boolean("may_ask")?.unwrap_or(true));
    if let Some(limit) = section.duration("startup_timeout")? {
        server = server.startup_timeout(limit);
    }
    server = server.pinning(pinning(&mut section, here)?);
    section.finish()?;
    Ok(server)
}

/// A server that runs as a child process.
fn program(
    name: &str,
    at: &Range<usize>,
    section: &mut Section<'_>,
    here: &Path,
) -> Result<ServerConfig, ConfigError> {
    let Some((command, _)) = section.string("command")? else {
        let what = format!("[mcp.{name}] needs a command: the program to run as the server");
        return Err(section.error(at, what));
    };
    let args = section.strings("args")?.unwrap_or_default();
    let server =
        ServerConfig::new(name, program_path(&command, here)).args(args.into_iter().map(|(arg, _)| arg));
    let server = environment(server, section.section("env")?)?;
    Ok(match section.string("cwd")? {
        Some((cwd, _)) => server.cwd(here.join(cwd)),
        None => server,
    })
}

#[cfg(not(feature = "mcp-http"))]
fn remote(
    _: &str,
    (_, at): Placed<String>,
    section: &mut Section<'_>,
    _: &Path,
) -> Result<ServerConfig, ConfigError> {
    let what = "url: this program was built without the feature mcp-http and cannot connect over HTTP";
    Err(section.error(&at, format!("{}{what}", section.prefix())))
}

/// Returns `text`, or the value of the environment variable if it is `$NAME`. The error is the name of an unset one.
fn expand_variable(text: &str) -> Result<String, &str> {
    match text.strip_prefix('$') {
        None => Ok(text.to_owned()),
        Some(from) => env::var(from).map_err(|_| from),
    }
}

/// The path of the program. One with a directory is relative to the configuration; others are searched as a shell does.
fn program_path(command: &str, here: &Path) -> PathBuf {
    match command.contains(['/', std::path::MAIN_SEPARATOR]) {
        true => here.join(command),
        false => command.into(),
    }
}

/// Reads the server's variables. A value `$NAME` comes from this program's environment: no secret need be in the file.
fn environment(mut server: ServerConfig, mut section: Section<'_>) -> Result<ServerConfig, ConfigError> {
    for (name, at, value) in section.entries() {
        let Some(text) = value.get_ref().as_str() else {
            return Err(section.error(&value.span(), format!("{}{name} must be a string", section.prefix())));
        };
        let value = expand_variable(text).map_err(|from| {
            let what = format!("{}{name}: the environment variable {from} is not set", section.prefix());
            section.error(&at, what)
        })?;
        server = server.env(name, value);
    }
    section.finish()?;
    Ok(server)
}

fn prefix(server: ServerConfig, section: &mut Section<'_>) -> Result<ServerConfig, ConfigError> {
    let Some((prefix, at)): Option<Placed<String>> = section.string("prefix")? else { return Ok(server) };
    if prefix.chars().any(|c| c.is_whitespace() || c.is_control()) {
        let what = format!("{}prefix must not contain white space", section.prefix());
        return Err(section.error(&at, what));
    }
    Ok(server.prefix(prefix))
}

/// Reads `pin`: a switch, or the file in which the pins are kept.
fn pinning(section: &mut Section<'_>, here: &Path) -> Result<Pinning, ConfigError> {
    Ok(match section.bool_or_string("pin")? {
        None | Some(BoolOrString::Bool(false)) => Pinning::Off,
        Some(BoolOrString::Bool(true)) => Pinning::Process,
        Some(BoolOrString::String(file)) => Pinning::File(here.join(file)),
    })
}
