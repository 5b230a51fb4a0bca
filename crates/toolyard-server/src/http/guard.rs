//! What is refused before anything else is looked at: requests that a page elsewhere could make (HT-8), and heads that
//! two programs could read differently.

use crate::problem::Problem;
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, header, uri::Authority};
use std::{net::SocketAddr, sync::Arc};

/// The names under which a server is reached, and the origins of its pages.
#[derive(Debug, Clone)]
pub(crate) struct Hosts(Arc<Names>);

#[derive(Debug)]
struct Names {
    port: u16,
    /// How a client names it that was given its address.
    own: String,
    /// Whether connections are encrypted, so that its own origin is.
    is_encrypted: bool,
    /// Whether only this machine reaches it, so that only its own names are right.
    is_loopback: bool,
    address: SocketAddr,
    hosts: Vec<String>,
    origins: Vec<String>,
}

impl Hosts {
    /// Those of a server at this address, with those that are configured.
    pub(crate) fn new(address: SocketAddr, is_encrypted: bool, hosts: &[String], origins: &[String]) -> Self {
        let lower = |names: &[String]| names.iter().map(|name| name.to_ascii_lowercase()).collect();
        Self(Arc::new(Names {
            port: address.port(),
            own: address.to_string(),
            is_encrypted,
            is_loopback: address.ip().is_loopback(),
            address,
            hosts: lower(hosts),
            origins: lower(origins),
        }))
    }

    /// Whether a request to this host is meant for this server.
    fn is_host(&self, host: &str) -> bool {
        if host == self.0.own {
            return true; // as most do
        }
        let host = host.to_ascii_lowercase();
        let Names { port, is_encrypted, address, hosts, .. } = &*self.0;
        if hosts.contains(&host) {
            return true;
        }
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let is_port = authority.port_u16().unwrap_or(if *is_encrypted { 443 } else { 80 }) == *port;
        let own = authority.host().trim_start_matches('[').trim_end_matches(']');
        let is_name = match own.parse::<std::net::IpAddr>() {
            // Any address of a server that listens on all of them may be its own.
            Ok(ip) => {
                ip == address.ip()
                    || address.ip().is_unspecified()
                    || (self.0.is_loopback && ip.is_loopback())
            }
            Err(_) => own == "localhost" || own.ends_with(".localhost"),
        };
        is_port && is_name && !host.contains('@')
    }

    fn is_origin(&self, origin: &str) -> bool {
        let origin = origin.to_ascii_lowercase();
        if self.0.origins.contains(&origin) {
            return true;
        }
        let of = |scheme| origin.strip_prefix(scheme);
        // Without encryption of its own there may be a proxy that has it.
        let own = of("https://").or_else(|| of("http://").filter(|_| !self.0.is_encrypted));
        own.is_some_and(|host| self.is_host(host))
    }

    /// Passes if a request is meant for this server, and comes from no page elsewhere.
    pub(super) fn check(&self, target: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
        let refused = |code, detail: &str| Err(Problem::new(StatusCode::FORBIDDEN, code, detail));
        let [host, origin, ..] = deciding(headers)?;
        let Some(host) = host else {
            return Err(Problem::malformed("the request has no Host"));
        };
        let named = target.authority().map_or(host, |named| named.as_str());
        if !named.eq_ignore_ascii_case(host) {
            return Err(Problem::malformed("the target names another host than Host"));
        }
        if !self.is_host(host) {
            return refused("host", "this Host is not the server's: name it in [server] hosts if it is");
        }
        match origin {
            Some(origin) if !self.is_origin(origin) => refused(
                "origin",
                "pages of this Origin may not use the server: name it in [server] origins if they may",
            ),
            _ => Ok(()),
        }
    }
}

/// How many headers decide about a request.
const DECIDING_COUNT: usize = 4;

/// The headers that decide about a request.
static DECIDING: [HeaderName; DECIDING_COUNT] =
    [header::HOST, header::ORIGIN, header::AUTHORIZATION, header::CONTENT_TYPE];

/// The texts of these, each of which may be there once.
fn deciding(headers: &HeaderMap) -> Result<[Option<&str>; DECIDING_COUNT], Problem> {
    let mut texts = [None; DECIDING_COUNT];
    // In one pass: there are few headers, and finding one of them by its name takes longer.
    for (name, value) in headers {
        let Some(at) = DECIDING.iter().position(|deciding| deciding == name) else { continue };
        if texts[at].replace(value.to_str().unwrap_or_default()).is_some() {
            return Err(Problem::malformed("a header that decides about the request is there twice"));
        }
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(at: &str, target: &str, headers: &[(&'static str, &'static str)]) -> bool {
        passes_as(false, at, target, headers)
    }

    fn passes_as(
        is_encrypted: bool,
        at: &str,
        target: &str,
        headers: &[(&'static str, &'static str)],
    ) -> bool {
        let hosts = Hosts::new(
            at.parse().unwrap(),
            is_encrypted,
            &["tools.example.com".into()],
            &["https://ui.example.com".into()],
        );
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        hosts.check(&target.parse().unwrap(), &map).is_ok()
    }

    /// HT-8: only the server's own names reach it.
    #[test]
    fn only_its_own_hosts_are_served() {
        let host = |host| passes("127.0.0.1:8080", "/", &[("host", host)]);
        for own in [
            "127.0.0.1:8080",
            "localhost:8080",
            "[::1]:8080",
            "LOCALHOST:8080",
            "a.localhost:8080",
            "tools.example.com",
        ] {
            assert!(host(own), "{own}");
        }
        for foreign in [
            "evil.example:8080",
            "127.0.0.1",
            "127.0.0.1:81",
            "10.0.0.1:8080",
            "",
            "localhost.evil.example:8080",
            "x@127.0.0.1:8080",
        ] {
            assert!(!host(foreign), "{foreign}");
        }
        assert!(
            passes("0.0.0.0:80", "/", &[("host", "10.0.0.1")])
                && !passes("0.0.0.0:80", "/", &[("host", "a.example")])
        );
        assert!(!passes("127.0.0.1:8080", "/", &[]));
    }

    /// HT-8: a page of another origin cannot use it, whatever it asks for.
    #[test]
    fn other_origins_are_refused() {
        let host = ("host", "127.0.0.1:8080");
        let origin = |origin| passes("127.0.0.1:8080", "/", &[host, ("origin", origin)]);
        assert!(
            origin("http://127.0.0.1:8080")
                && origin("http://localhost:8080")
                && origin("https://ui.example.com")
        );
        for foreign in
            ["http://127.0.0.1:81", "http://evil.example", "null", "", "https://ui.example.com.evil.example"]
        {
            assert!(!origin(foreign), "{foreign}");
        }
    }

    /// HT-8: where connections are encrypted, its own origin is an encrypted one, and the port that goes without saying is
    /// that of HTTPS.
    #[test]
    fn an_encrypted_server_has_an_encrypted_origin() {
        let passes = |at, host, origin| passes_as(true, at, "/", &[("host", host), ("origin", origin)]);
        assert!(passes("127.0.0.1:443", "localhost", "https://localhost"));
        assert!(!passes("127.0.0.1:443", "localhost", "http://localhost:443"));
        assert!(!passes("127.0.0.1:80", "localhost", "https://localhost:80"));
        assert!(passes("127.0.0.1:8443", "127.0.0.1:8443", "https://localhost:8443"));
        assert!(!passes("127.0.0.1:8443", "127.0.0.1:8443", "https://localhost"));
    }

    /// What decides is there once, and a target names no other host.
    #[test]
    fn heads_have_one_meaning() {
        let host = ("host", "127.0.0.1:8080");
        let passes = |target, headers: &[_]| passes("127.0.0.1:8080", target, headers);
        assert!(passes("http://127.0.0.1:8080/x", &[host]) && !passes("http://evil.example/x", &[host]));
        assert!(!passes("/", &[host, host]));
        assert!(!passes("/", &[host, ("authorization", "a"), ("authorization", "a")]));
    }
}
