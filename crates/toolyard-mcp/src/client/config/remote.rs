//! A server over HTTP: where it is and what is sent to it.

use super::{Hidden, ServerConfig};
use std::path::PathBuf;
use toolyard::ContentHash;

/// How to reach a server over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Remote {
    pub(crate) url: String,
    pub(crate) bearer: Option<Hidden>,
    pub(crate) headers: Vec<Header>,
    pub(crate) ca: Option<PathBuf>,
    /// Whether its name may lead to an address that is not public.
    pub(crate) allows_private: bool,
}

/// A header of every request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) name: String,
    pub(crate) value: Hidden,
    is_secret: bool,
}

impl Remote {
    /// A hash of where it is and of what is sent to it.
    pub(super) fn fingerprint(&self) -> [u8; 32] {
        let Self { url, bearer, headers, ca, allows_private } = self;
        let header = |Header { name, value, is_secret }: &Header| value.fingerprint(name, *is_secret);
        let bearer = bearer.as_ref().map(|token| token.fingerprint("authorization", true));
        let ca = ca.as_ref().map(|ca| ContentHash::new("path").path(ca).finish());
        let hash = ContentHash::new("mcp remote 1").text(url).option(bearer);
        let hash = hash.list(headers.iter().map(header)).option(ca);
        // What may lead to private addresses reaches other things; what may not is known as it was before that was said.
        if *allows_private { hash.text("private").finish() } else { hash.finish() }
    }

    /// The secrets that are sent to it.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let headers = self.headers.iter().filter(|header| header.is_secret).map(|header| &header.value);
        self.bearer.iter().chain(headers).map(|secret| secret.0.as_str())
    }
}

impl ServerConfig {
    /// A server of this name over streamable HTTP, at this URL. `https://` needs the feature `https`; with `http://`
    /// nothing is encrypted. Requests are sent without a proxy of the environment, to an address that was judged right
    /// before (SB-10): a host that is written as an address, or as `localhost`, is dialled as it is; any other name must
    /// lead to public addresses, unless [`allow_private`](Self::allow_private) says otherwise.
    pub fn http(name: impl Into<String>, url: impl Into<String>) -> Self {
        let url = url.into();
        let remote = Remote { url, bearer: None, headers: Vec::new(), ca: None, allows_private: false };
        Self { remote: Some(remote), ..Self::new(name, "") }
    }

    /// Sets the bearer token for a server over HTTP. No other server gets it: redirects to others are not followed.
    #[must_use]
    pub fn bearer(self, token: impl Into<String>) -> Self {
        self.with_remote(|remote| remote.bearer = Some(Hidden(token.into())))
    }

    /// Sets a header of every request to a server over HTTP.
    #[must_use]
    pub fn header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let header = Header { name: name.into(), value: Hidden(value.into()), is_secret: false };
        self.with_remote(|remote| remote.headers.push(header))
    }

    /// Sets a header whose value is a secret; see [`secrets`](Self::secrets).
    #[must_use]
    pub fn secret_header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let header = Header { name: name.into(), value: Hidden(value.into()), is_secret: true };
        self.with_remote(|remote| remote.headers.push(header))
    }

    /// Trusts the certificate authorities in this PEM file for a server over HTTPS, in addition to those that the
    /// system trusts.
    #[must_use]
    pub fn ca(self, file: impl Into<PathBuf>) -> Self {
        self.with_remote(|remote| remote.ca = Some(file.into()))
    }

    /// Sets whether the name of a server over HTTP may lead to addresses that are not public, such as those of a company's
    /// own network. Otherwise whoever answers for that name could point it at a service of this machine or its networks.
    ///
    /// # Examples
    /// ```
    /// # use toolyard_mcp::ServerConfig;
    /// let wiki = ServerConfig::http("wiki", "http://wiki.corp.example/mcp").allow_private(true);
    /// # let _ = wiki;
    /// ```
    #[must_use]
    pub fn allow_private(self, allow: bool) -> Self {
        self.with_remote(|remote| remote.allows_private = allow)
    }

    fn with_remote(mut self, change: impl FnOnce(&mut Remote)) -> Self {
        if let Some(remote) = &mut self.remote {
            change(remote);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let server = ServerConfig::http("a", "http://h").bearer("token-1").secret_header("x-key", "key-2");
        let server = server.header("x-team", "tools-3");
        assert_eq!(server.secrets().collect::<Vec<_>>(), ["token-1", "key-2"]);
        let server = server.env("LEVEL", "info-4").secret_env("KEY", "key-5");
        assert_eq!(server.secrets().collect::<Vec<_>>(), ["key-5", "token-1", "key-2"]);
        let shown = format!("{server:?}");
        assert!(shown.contains("KEY") && !shown.contains("key-5"), "{shown}");
        assert!(shown.contains("x-key") && !shown.contains("token-1") && !shown.contains("key-2"), "{shown}");
    }

    /// SM-7: the address counts, and what is sent to it but for secrets.
    #[test]
    fn a_remote_server_is_known_by_its_address() {
        let base = || ServerConfig::http("a", "https://h/mcp");
        let others = [
            base(),
            ServerConfig::http("a", "https://h/mcp2"),
            ServerConfig::new("a", "https://h/mcp"),
            base().bearer("1"),
            base().header("x-tenant", "1"),
            base().header("x-tenant", "2"),
            base().secret_header("x-key", "1"),
            base().ca("/ca.pem"),
            base().allow_private(true),
        ];
        let different: std::collections::BTreeSet<_> = others.iter().map(ServerConfig::reached).collect();
        assert_eq!(different.len(), others.len());
        assert_eq!(base().bearer("1").reached(), base().bearer("2").reached());
        let key = |value: &str| base().secret_header("x-key", value).reached();
        assert_eq!(key("1"), key("2"));
    }
}
