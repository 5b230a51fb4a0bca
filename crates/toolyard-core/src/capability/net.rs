//! Grants for hosts.

use crate::ContentHash;
use std::{fmt, num::ParseIntError, str::FromStr};
use url::Url;

/// Why a text is not a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' does not name a host: {why}")]
pub struct HostError {
    /// The rejected text.
    pub text: String,
    why: String,
}

/// A host as an HTTP client reads it: names in lower-case ASCII, and numeric spellings resolved to the address.
///
/// # Examples
/// ```
/// use toolyard_core::Host;
/// let name = |text: &str| Host::parse(text).unwrap().name().to_owned();
/// assert_eq!(name("https://user:pw@API.Example.com:8443/x?y#z"), "api.example.com");
/// assert_eq!(name("example.com.:80"), "example.com");
/// assert_eq!(name("0x7f.1"), "127.0.0.1"); // and 2130706433, 0177.0.0.1
/// assert_eq!(name("[::FFFF:127.0.0.1]"), "127.0.0.1");
/// assert!(Host::parse("a b").is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    name: String,
    port: Option<u16>,
}

impl Host {
    /// Reads the host from a URL, or from a host with or without a port.
    ///
    /// # Errors
    /// [`HostError`] if the text names no host, or names it in a way that clients may read differently.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        let refuse = |why: &str| HostError { text: text.to_owned(), why: why.to_owned() };
        // Clients interpret these differently.
        if text.chars().any(|char| char.is_control() || char.is_whitespace() || char == '\\') {
            return Err(refuse("white space, control characters and backslashes are not allowed"));
        }
        if text.split_once("://").is_some_and(|(_, rest)| rest.starts_with('/')) {
            return Err(refuse("some clients read the part after a third slash as the host"));
        }
        if text
            .split_once(':')
            .is_some_and(|(scheme, rest)| is_special_scheme(scheme) && !rest.starts_with("//"))
        {
            return Err(refuse("some clients read the part after the scheme as the host"));
        }
        let is_bare = !text.contains("://");
        if is_bare && text.contains(['/', '?', '#', '@']) {
            return Err(refuse("it is neither a URL nor a host"));
        }
        let url = if is_bare { Url::parse(&format!("http://{text}")) } else { Url::parse(text) };
        let url = url.map_err(|error| refuse(&error.to_string()))?;
        // A bare host has a port only if one follows the name or the address in brackets.
        let behind = text.rsplit(']').next().and_then(|rest| rest.split_once(':'));
        let has_port = !is_bare || behind.is_some_and(|(_, port)| !port.is_empty());
        let host = match url.host() {
            Some(url::Host::Domain(_)) if !is_special_scheme(url.scheme()) => Self::parse_as_http(&url),
            Some(host) => Some(canonical(&host)),
            None => None,
        };
        let name = host.filter(|name| !name.is_empty()).ok_or_else(|| refuse("it contains no host"))?;
        Ok(Self { name, port: url.port_or_known_default().filter(|_| has_port) })
    }

    /// The host of a URL whose scheme the URL standard does not define, parsed as in an HTTP URL.
    fn parse_as_http(url: &Url) -> Option<String> {
        let host = url::Host::parse(url.host_str()?).ok()?;
        Some(canonical(&host))
    }

    /// The canonical name or address, without a port.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn is_address(&self) -> bool {
        self.name.parse::<std::net::IpAddr>().is_ok()
    }
}

/// Whether the URL standard defines how hosts are parsed for this scheme.
fn is_special_scheme(scheme: &str) -> bool {
    ["http", "https", "ws", "wss", "ftp"].iter().any(|known| known.eq_ignore_ascii_case(scheme))
}

fn canonical<S: AsRef<str>>(host: &url::Host<S>) -> String {
    match host {
        url::Host::Domain(name) => name.as_ref().trim_end_matches('.').to_ascii_lowercase(),
        url::Host::Ipv4(address) => address.to_string(),
        // The same address, spelt in the other family.
        url::Host::Ipv6(address) => {
            address.to_ipv4_mapped().map_or_else(|| address.to_string(), |address| address.to_string())
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Why a text is not a host pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostPatternError {
    /// A star in a place other than the first label.
    #[error("'{0}': a star must be alone or replace the first labels of a name, as in '*.example.com'")]
    Star(String),
    /// The port is not a valid number.
    #[error("'{text}': {source}")]
    Port {
        /// The pattern.
        text: String,
        /// What is wrong with its port.
        source: ParseIntError,
    },
    /// The host is not valid.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// Permission to use some hosts, such as `api.example.com` (PO-1b).
///
/// `*.example.com` covers every name below it but not `example.com` itself, and `*` covers every host. A suffix such
/// as `:443` limits each of them to one port. A pattern applies to the host that a call names. What that name resolves
/// to is up to the client, which a [sandbox](crate::Sandbox) can confine and a pattern cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostPattern {
    name: Name,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Name {
    Any,
    /// Names that end with this suffix, which starts with a dot.
    Subdomain(String),
    Exactly(String),
}

impl Name {
    /// The narrower of two names, if one covers the other.
    fn common(&self, other: &Self) -> Option<Self> {
        let is_below = |name: &str, suffix: &str| {
            Host::parse(name).is_ok_and(|host| !host.is_address()) && name.ends_with(suffix)
        };
        match (self, other) {
            (Self::Any, name) | (name, Self::Any) => Some(name.clone()),
            (Self::Subdomain(one), Self::Subdomain(other)) => {
                let (long, short) = if one.len() >= other.len() { (one, other) } else { (other, one) };
                long.ends_with(short.as_str()).then(|| Self::Subdomain(long.clone()))
            }
            (Self::Subdomain(suffix), Self::Exactly(name))
            | (Self::Exactly(name), Self::Subdomain(suffix)) => {
                is_below(name, suffix).then(|| Self::Exactly(name.clone()))
            }
            (Self::Exactly(one), Self::Exactly(other)) => (one == other).then(|| self.clone()),
        }
    }
}

impl HostPattern {
    /// Whether the pattern covers this host. The port matters only if the pattern has one.
    pub fn covers(&self, host: &Host) -> bool {
        let name = match &self.name {
            Name::Any => true,
            Name::Subdomain(suffix) => !host.is_address() && host.name.ends_with(suffix.as_str()),
            Name::Exactly(name) => *name == host.name,
        };
        name && (self.port.is_none() || self.port == host.port)
    }

    /// What both patterns cover; `None` if that is nothing.
    pub(super) fn common(&self, other: &Self) -> Option<Self> {
        let port = match (self.port, other.port) {
            (Some(one), Some(other)) if one != other => return None,
            (one, other) => one.or(other),
        };
        Some(Self { name: self.name.common(&other.name)?, port })
    }

    pub(super) fn fingerprint(&self) -> [u8; 32] {
        let Self { name, port } = self;
        let (kind, name) = match name {
            Name::Any => ("any", ""),
            Name::Subdomain(suffix) => ("below", suffix.as_str()),
            Name::Exactly(name) => ("exactly", name.as_str()),
        };
        let port = port.map(|port| ContentHash::new("port").number(port.into()).finish());
        ContentHash::new(kind).text(name).option(port).finish()
    }

    /// Whether the pattern covers every host.
    pub fn is_any(&self) -> bool {
        self.name == Name::Any && self.port.is_none()
    }
}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        let (name, port) = split_port(text)?;
        let name = match name.strip_prefix('*') {
            Some("") => Name::Any,
            Some(rest) if rest.starts_with('.') && !rest.contains('*') => {
                Name::Subdomain(format!(".{}", Host::parse(&rest[1..])?.name))
            }
            None if !name.contains('*') => Name::Exactly(Host::parse(name)?.name),
            _ => return Err(HostPatternError::Star(text.to_owned())),
        };
        Ok(Self { name, port })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Name::Any => f.write_str("*")?,
            Name::Subdomain(suffix) => write!(f, "*{suffix}")?,
            // The colons of an address are not the one before a port.
            Name::Exactly(name) if name.contains(':') => write!(f, "[{name}]")?,
            Name::Exactly(name) => f.write_str(name)?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Splits a pattern into the name and the port.
fn split_port(text: &str) -> Result<(&str, Option<u16>), HostPatternError> {
    match text.rsplit_once(':') {
        // The last group of an address in brackets is not a port.
        Some((name, port)) if !port.ends_with(']') && !text.contains("://") => {
            let port = port.parse();
            let port = port.map_err(|source| HostPatternError::Port { text: text.to_owned(), source })?;
            Ok((name, Some(port)))
        }
        _ => Ok((text, None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> String {
        Host::parse(text).map_or_else(|error| error.to_string(), |host| host.name)
    }

    /// A pattern that is written down is the same when it is read.
    #[test]
    fn a_pattern_is_read_as_it_is_shown() {
        for text in ["*", "*:443", "*.example.com", "a.example.com:80", "10.0.0.1", "[::1]", "[::1]:80"] {
            let pattern: HostPattern = text.parse().unwrap();
            assert_eq!(pattern.to_string(), text);
        }
    }

    /// PO-1b: an address is the same however its numbers are written.
    #[test]
    fn an_address_is_the_same_however_it_is_written() {
        for text in [
            "127.0.0.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "127.1",
            "http://0x7F.0.0.1/",
            "[::ffff:127.0.0.1]",
            "http://127.0.0.1.:80",
            "redis://0177.0.0.1:6379",
            "１２７.0.0.1",
            "127。0。0。1",
        ] {
            assert_eq!(name(text), "127.0.0.1", "{text}");
        }
        assert_eq!(name("[::1]:80"), "::1");
    }

    /// PO-1b: a text that clients may read in two ways is not a host.
    #[test]
    fn what_is_ambiguous_is_refused() {
        for text in [
            "",
            "http://",
            "evil.com/a",
            "user@evil.com",
            "evil.com#a.example",
            "http://a.example\\@evil.com",
            "a b",
            "a.example\n",
            "http:///a",
            "http:8080",
            "HTTPS:a.example:443",
            "http:a.example://evil.com",
            "http:/evil.com://a.example",
            "999.999.999.999",
            "a.example:99999",
            "mailto:a@b",
            "file:///etc/passwd",
        ] {
            assert!(Host::parse(text).is_err(), "{text}: {}", name(text));
        }
        assert_eq!(name("http://a.example@evil.com/"), "evil.com");
        assert_eq!(name("HTTPS://EXAMPLE.COM"), "example.com");
        assert_eq!(name("http://bücher.example"), "xn--bcher-kva.example");
    }

    /// PO-1b: a star stands for whole labels.
    #[test]
    fn a_pattern_covers_whole_labels() {
        let covers = |pattern: &str, host: &str| {
            pattern.parse::<HostPattern>().unwrap().covers(&Host::parse(host).unwrap())
        };
        assert!(covers("*.example.com", "a.b.EXAMPLE.com."));
        assert!(!covers("*.example.com", "example.com") && !covers("*.example.com", "badexample.com"));
        assert!(covers("example.com", "https://example.com/x") && !covers("example.com", "a.example.com"));
        assert!(
            covers("example.com:443", "https://example.com") && !covers("example.com:443", "example.com")
        );
        assert!(!covers("a.com:80", "a.com:") && covers("a.com:80", "http://a.com:"));
        assert!(
            covers("*:8080", "x:8080") && covers("[::1]", "http://[::1]:9/") && covers("[::1]:9", "[::1]:9")
        );
        assert!(covers("127.0.0.1", "2130706433") && !covers("*.example.com", "127.0.0.1"));
        assert!(
            covers("a.com:80", "a.com:80") && !covers("a.com:80", "a.com") && covers("[::1]:80", "[::1]:80")
        );
        assert!(covers("*", "x") && "*".parse::<HostPattern>().unwrap().is_any());
        for wrong in ["a.*.com", "*a.com", "**", "a:b", "a.com:0x1", "", "*.", "a b"] {
            assert!(wrong.parse::<HostPattern>().is_err(), "{wrong}");
        }
    }
}
