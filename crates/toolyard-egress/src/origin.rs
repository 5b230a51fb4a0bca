//! Where something is sent: a host and a port, and how it is spoken to.

use std::{fmt, net::IpAddr};
use toolyard_core::{Host, HostError};
use url::Url;

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Destination {
    name: String,
    port: u16,
}

impl Destination {
    pub(crate) fn new(host: &Host, port: u16) -> Self {
        Self { name: host.name().to_owned(), port }
    }

    /// The host's canonical name or address, without brackets.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The host's address, if it is named by one. However it was spelt, it is recognised: names are canonical.
    pub(crate) fn address(&self) -> Option<IpAddr> {
        self.name.parse().ok()
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// The host as it is written in URLs.
    fn bracketed(&self) -> String {
        if self.name.contains(':') { format!("[{}]", self.name) } else { self.name.clone() }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.bracketed(), self.port)
    }
}

/// How an origin is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Http,
    Https,
}

impl Scheme {
    fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }
}

/// A scheme, a host and a port, as in `https://api.example.com`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) scheme: Scheme,
    pub(crate) at: Destination,
}

/// Why a text is not the URL of an origin. It does not contain the text, which may hold a secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OriginError {
    /// It is no URL.
    #[error("the URL is not valid: {0}")]
    Invalid(#[from] url::ParseError),
    /// It is a URL of something else.
    #[error("the URL begins with '{0}:', which is neither http: nor https:")]
    Scheme(String),
    /// It holds a user or a password.
    #[error("the URL must not contain a user or a password: use a header")]
    Credentials,
    /// Its host can be read in two ways.
    #[error(transparent)]
    Host(#[from] HostError),
    /// It needs TLS, which cannot be had.
    #[error("the URL begins with https:, but {0}")]
    NoTls(String),
    /// It has a path or a query, and only an origin is wanted.
    #[error("the URL must end behind its host and port")]
    Path,
}

impl Origin {
    /// The origin of a URL.
    pub(crate) fn of(url: &Url) -> Result<Self, OriginError> {
        let scheme = match url.scheme() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            other => return Err(OriginError::Scheme(other.to_owned())),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(OriginError::Credentials);
        }
        let host = Host::parse(url.host_str().unwrap_or_default())?;
        let port = url.port().unwrap_or(scheme.port());
        Ok(Self { scheme, at: Destination::new(&host, port) })
    }

    /// The value of the header `Host`: without the port that goes without saying.
    pub(crate) fn authority(&self) -> String {
        if self.at.port == self.scheme.port() { self.at.bracketed() } else { self.at.to_string() }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.authority())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(text: &str) -> Result<Origin, OriginError> {
        Origin::of(&Url::parse(text)?)
    }

    /// SB-10: however an address is written, it is known as one.
    #[test]
    fn an_address_is_recognised_however_it_is_written() {
        for text in
            ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "[::ffff:127.0.0.1]", "127.0.0.1."]
        {
            let address = origin(&format!("http://{text}:81/x")).unwrap().at.address();
            assert_eq!(address, Some("127.0.0.1".parse().unwrap()), "{text}");
        }
        assert_eq!(origin("http://[::1]").unwrap().at.address(), Some("::1".parse().unwrap()));
        assert_eq!(origin("http://a.example").unwrap().at.address(), None);
    }

    #[test]
    fn an_origin_is_shown_without_a_port_that_goes_without_saying() {
        let shown = |text: &str| origin(text).unwrap().to_string();
        assert_eq!(shown("HTTPS://API.Example.com:443/x?y"), "https://api.example.com");
        assert_eq!(shown("http://a.example:443"), "http://a.example:443");
        assert_eq!(shown("http://[::1]:80/"), "http://[::1]");
    }

    #[test]
    fn what_is_no_origin_is_refused_without_its_secrets() {
        assert_eq!(origin("ftp://a.example"), Err(OriginError::Scheme("ftp".to_owned())));
        let error = origin("http://me:hunter22@a.example").unwrap_err();
        assert!(error == OriginError::Credentials && !error.to_string().contains("hunter22"));
        assert!(matches!(origin("a.example/x"), Err(OriginError::Invalid(_))));
    }
}
