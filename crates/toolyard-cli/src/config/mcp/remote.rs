//! `[mcp.NAME]` with a `url`: a server over HTTP, and the credentials sent to it.

use super::super::{
    section::{Placed, Section},
    variables,
};
use std::{env, path::Path};
use toolyard_mcp::ServerConfig;

/// A server over HTTP.
pub(super) fn remote(
    name: &str,
    (url, at): Placed<String>,
    section: &mut Section<'_>,
    here: &Path,
) -> ServerConfig {
    let wrong = |what: &str| section.report(&at, format!("{}url {what}", section.prefix()));
    match url.split_once("://").map(|(scheme, _)| scheme) {
        Some("http") => {}
        Some("https") if cfg!(feature = "mcp-https") => {}
        Some("https") => {
            wrong("begins with https://: this program was built without the feature mcp-https");
        }
        _ => wrong("must begin with https:// or http://"),
    }
    let server = token(ServerConfig::http(name, url), section);
    let server = headers(server, section.section("headers"));
    let server = server.allow_private(section.boolean("allow_private").unwrap_or_default());
    match section.string("ca") {
        Some((file, _)) => server.ca(here.join(file)),
        None => server,
    }
}

/// Reads the bearer token. The file never holds the token itself, only the name of the variable that does.
fn token(server: ServerConfig, section: &mut Section<'_>) -> ServerConfig {
    let Some((from, at)) = section.string("token_env") else { return server };
    match env::var(&from).ok().map(|token| token.trim().to_owned()).filter(|token| !token.is_empty()) {
        Some(token) => server.bearer(token),
        None => {
            let what = "token_env: the environment variable is not set, or empty";
            section.report(&at, format!("{}{what}", section.prefix()));
            server
        }
    }
}

/// Reads the headers. A value `$NAME` is read from this program's environment, and is treated as a secret.
fn headers(mut server: ServerConfig, mut section: Section<'_>) -> ServerConfig {
    for (name, at, value) in section.entries() {
        let Some(text) = value.get_ref().as_str() else {
            section.report(&value.span(), format!("{}{name} must be a string", section.prefix()));
            continue;
        };
        let is_secret = text.starts_with('$');
        if !is_secret && name.eq_ignore_ascii_case("authorization") {
            let what = "must not be written here: name an environment variable, \"$NAME\", or use token_env";
            section.report(&at, format!("{}{name} {what}", section.prefix()));
            continue;
        }
        match variables::expand(text) {
            Ok(value) if is_secret => server = server.secret_header(name, value),
            Ok(value) => server = server.header(name, value),
            Err(from) => {
                let what = format!("{}{name}: the environment variable {from} is not set", section.prefix());
                section.report(&at, what);
            }
        }
    }
    section.finish();
    server
}
