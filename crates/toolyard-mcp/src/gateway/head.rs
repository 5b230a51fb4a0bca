//! Heads of requests that two programs could read differently, such as this one and a proxy in front of it.

use super::posted::SESSION;
use http::{HeaderMap, HeaderName, Uri, header};

/// Whether a head can be read in one way only: what decides about the request is there at most once, and a target with
/// an authority names the same one as `Host`.
pub(super) fn is_unambiguous(target: &Uri, headers: &HeaderMap) -> bool {
    let session = HeaderName::from_static(SESSION);
    let single = [header::HOST, header::ORIGIN, header::AUTHORIZATION, session];
    single.iter().all(|name| headers.get_all(name).iter().nth(1).is_none()) && is_at_home(target, headers)
}

/// A target without an authority is at home anywhere.
fn is_at_home(target: &Uri, headers: &HeaderMap) -> bool {
    let Some(named) = target.authority() else { return true };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    host.is_some_and(|host| host.eq_ignore_ascii_case(named.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn passes(target: &str, headers: &[(&'static str, &'static str)]) -> bool {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        is_unambiguous(&target.parse().unwrap(), &headers.iter().map(pair).collect())
    }

    /// A header that decides and is there twice is refused, even with one value.
    #[test]
    fn what_decides_is_there_once() {
        for name in ["host", "origin", "authorization", "mcp-session-id"] {
            assert!(passes("/mcp", &[(name, "a")]), "{name}");
            assert!(!passes("/mcp", &[(name, "a"), (name, "a")]), "{name}");
        }
        assert!(passes("/mcp", &[("accept", "a"), ("accept", "b")]));
    }

    /// A target may name its host only as `Host` does.
    #[test]
    fn a_target_names_no_other_host() {
        let host = ("host", "127.0.0.1:80");
        assert!(passes("http://127.0.0.1:80/mcp", &[host]) && passes("/mcp", &[host]));
        for foreign in ["http://evil.example/mcp", "http://127.0.0.1:81/mcp", "http://u@127.0.0.1:80/mcp"] {
            assert!(!passes(foreign, &[host]), "{foreign}");
        }
        assert!(!passes("http://127.0.0.1:80/mcp", &[]));
    }
}
