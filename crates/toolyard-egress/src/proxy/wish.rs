//! What a program wants of a proxy.

use super::{refusal::Refusal, upstream::Upstream};
use crate::origin::{Destination, Origin, Scheme};
use http::{Method, Uri, request::Parts};
use std::{collections::BTreeMap, sync::Arc};
use toolyard_core::Host;
use url::Url;

/// What a program wants.
#[derive(Debug)]
pub(super) enum Wish<'a> {
    /// A tunnel to this host.
    Tunnel(Destination),
    /// A request to this origin, for this path.
    Forward(Origin, Uri),
    /// A request to this upstream, for this path.
    Upstream(&'a Upstream, Uri),
}

impl<'a> Wish<'a> {
    /// What the head of a request wishes for.
    ///
    /// # Errors
    /// [`Refusal`]: nothing that there could be.
    pub(super) fn of(head: &Parts, upstreams: &'a BTreeMap<Arc<str>, Upstream>) -> Result<Self, Refusal> {
        if head.method == Method::CONNECT {
            return tunnel(&head.uri).map(Self::Tunnel);
        }
        if head.uri.scheme().is_some() {
            return forward(&head.uri);
        }
        let path = head.uri.path_and_query().map_or("", |path| path.as_str());
        let Some(rest) = path.strip_prefix('/') else {
            return Err(Refusal::invalid("this proxy takes a whole URL, or a path that begins with a name"));
        };
        // A trace sends back what it was sent.
        if head.method == Method::TRACE {
            return Err(Refusal::denied("TRACE is not allowed"));
        }
        let (name, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let upstream = upstreams.get(name).ok_or_else(|| {
            Refusal::not_found("no upstream of this proxy has the name that this path begins with")
        })?;
        let rest = if rest.starts_with('/') { rest.to_owned() } else { format!("/{rest}") };
        Ok(Self::Upstream(upstream, path_of(&rest)?))
    }
}

fn tunnel(uri: &Uri) -> Result<Destination, Refusal> {
    let (Some(authority), Some(port)) = (uri.authority(), uri.port_u16()) else {
        return Err(Refusal::invalid("CONNECT takes a host and a port"));
    };
    // Not what it is: it may hold a password.
    let host = Host::parse(authority.as_str()).map_err(|_| Refusal::invalid("the host is not valid"))?;
    Ok(Destination::new(&host, port))
}

fn forward<'a>(uri: &Uri) -> Result<Wish<'a>, Refusal> {
    let url = Url::parse(&uri.to_string()).map_err(|error| Refusal::invalid(error.to_string()))?;
    let origin = Origin::of(&url)?;
    if origin.scheme == Scheme::Https {
        return Err(Refusal::denied("this proxy takes https: by CONNECT alone"));
    }
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Ok(Wish::Forward(origin, path_of(path)?))
}

fn path_of(path: &str) -> Result<Uri, Refusal> {
    path.parse().map_err(|_| Refusal::invalid("the path is not valid"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Addresses, Egress};
    use http::Request;

    fn wish(method: &str, uri: &str) -> Result<String, String> {
        let upstream =
            Upstream::new("models", "http://models.example", Addresses::Public, [], &Egress::new()).unwrap();
        let upstreams = BTreeMap::from([(upstream.name.clone(), upstream)]);
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        match Wish::of(&request.into_parts().0, &upstreams) {
            Ok(Wish::Tunnel(to)) => Ok(to.to_string()),
            Ok(Wish::Forward(to, path)) => Ok(format!("{to} {path}")),
            Ok(Wish::Upstream(to, path)) => Ok(format!("{} {path}", to.name)),
            Err(refusal) => Err(refusal.why),
        }
    }

    /// SB-10: a host is known by its canonical name, by whichever door.
    #[test]
    fn a_host_is_known_by_its_canonical_name() {
        assert_eq!(wish("CONNECT", "API.example.com:443").unwrap(), "api.example.com:443");
        assert_eq!(wish("CONNECT", "0x7f.1:443").unwrap(), "127.0.0.1:443");
        assert_eq!(wish("CONNECT", "[::FFFF:127.0.0.1]:443").unwrap(), "127.0.0.1:443");
        assert_eq!(wish("GET", "http://A.example/x/../y?z").unwrap(), "http://a.example /x/../y?z");
        assert_eq!(wish("GET", "http://2130706433:81").unwrap(), "http://127.0.0.1:81 /");
        wish("CONNECT", "me:hunter22@a.example:443").unwrap_err();
        wish("GET", "http://me:hunter22@a.example/").unwrap_err();
        wish("GET", "https://a.example/").unwrap_err();
        wish("GET", "ftp://a.example/").unwrap_err();
    }

    /// SB-10: a path begins with the name of an upstream, as a whole.
    #[test]
    fn a_path_begins_with_the_name_of_an_upstream() {
        assert_eq!(wish("GET", "/models/v1/x?y").unwrap(), "models /v1/x?y");
        assert_eq!(wish("GET", "/models").unwrap(), "models /");
        assert_eq!(wish("GET", "/models?y").unwrap(), "models /?y");
        assert_eq!(wish("GET", "/models//x").unwrap(), "models //x");
        for path in ["/", "/model", "/models2/x", "/MODELS/x", "//models/x", "/%6dodels/x", "*"] {
            assert!(wish("OPTIONS", path).is_err(), "{path}");
        }
        assert_eq!(wish("TRACE", "/models/x").unwrap_err(), "TRACE is not allowed");
    }
}
