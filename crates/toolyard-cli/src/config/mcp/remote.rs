//! `[mcp.NAME]` with a `url`: a server over HTTP, and the credentials sent to it.

use super::{
    super::{
        ConfigError,
        section::{Placed, Section},
    },
    expand_variable,
};
use std::{env, path::Path};
use toolyard::Redactor;
use toolyard_mcp::ServerConfig;

/// A server over HTTP.
pub(super) fn remote(
    name: &str,
    (url, at): Placed<String>,
    section: &mut Section<'_>,
    here: &Path,
) -> Result<ServerConfig, ConfigError> {
    let error = |what: &str| section.error(&at, format!("{}url {what}", section.prefix()));
    match url.split_once("://").map(|(scheme, _)| scheme) {
        Some("http") => {}
        Some("https") if cfg!(feature = "mcp-https") => {}
        Some("https") => {
            return Err(error("begins with https://: this program was built without the feature mcp-https"));
        }
        _ => return Err(error("must begin with https:// or http://")),
    }
    let server = token(ServerConfig::http(name, url), section)?;
    let server = headers(server, section.section("headers")?)?;
    Ok(match section.string("ca")? {
        Some((file, _)) => server.ca(here.join(file)),
        None => server,
    })
}

/// Reads the bearer token. The file never holds the token itself, only the name of the variable that does.
fn token(server: ServerConfig, section: &mut Section<'_>) -> Result<ServerConfig, ConfigError> {
    let Some((from, at)) = section.string("token_env")? else { return Ok(server) };
    match env::var(&from).ok().map(|token| token.trim().to_owned()).filter(|token| !token.is_empty()) {
        Some(token) => Ok(server.bearer(token)),
        None => {
            let what = "token_env: the environment variable is not set, or empty";
            Err(section.error(&at, format!("{}{what}", section.prefix())))
        }
    }
}

/// Reads the headers. A value `$NAME` is read from this program's environment, and is treated as a secret.
fn headers(mut server: ServerConfig, mut section: Section<'_>) -> Result<ServerConfig, ConfigError> {
    for (name, at, value) in section.entries() {
        let Some(text) = value.get_ref().as_str() else {
            return Err(section.error(&value.span(), format!("{}{name} must be a string", section.prefix())));
        };
        let is_secret = text.starts_with('$');
        if !is_secret && name.eq_ignore_ascii_case("authorization") {
            let what = "must not be written here: name an environment variable, \"$NAME\", or use token_env";
            return Err(section.error(&at, format!("{}{name} {what}", section.prefix())));
        }
        let value = expand_variable(text).map_err(|from| {
            let what = format!("{}{name}: the environment variable {from} is not set", section.prefix());
            section.error(&at, what)
        })?;
        server = if is_secret { server.secret_header(name, value) } else { server.header(name, value) };
    }
    section.finish()?;
    Ok(server)
}

/// Registers the secrets of the servers with the redactor. Secrets too short to be told from other text are skipped.
pub(in crate::config) fn redact_secrets(servers: &[ServerConfig], redactor: Redactor) -> Redactor {
    let secrets = servers.iter().flat_map(ServerConfig::secrets);
    secrets.fold(redactor, |redactor, secret| redactor.clone().with_secret(secret).unwrap_or(redactor))
}
