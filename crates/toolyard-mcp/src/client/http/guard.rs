//! Which addresses are dialled for a server over HTTP (SB-10).
//!
//! ```text
//!   an address ──────────────────────────────────────────► dialled: whoever wrote the URL has said which
//!   a name ─► Egress: looked up once, each address judged ─┬► dialled
//!                                                          └► NotSent::Refused: private, and not allowed
//! ```
//!
//! An address, and `localhost`, say by themselves where they lead. What any other name leads to is decided by whoever
//! answers for it, today and in an hour: a private address behind it is dialled only if that is allowed.

use crate::client::config::Remote;
use reqwest::{
    Url,
    dns::{Addrs, Name, Resolve, Resolving},
};
use std::net::SocketAddr;
use toolyard::Host;
use toolyard_egress::{Addresses, Egress};

/// Finds the addresses of a server, and leaves out those that may not be dialled.
pub(super) struct Guard {
    egress: Egress,
    may: Addresses,
    port: u16,
}

impl Guard {
    /// The guard of a server at this URL.
    pub(super) fn new(url: &Url, remote: &Remote, egress: Egress) -> Self {
        let may = Addresses::with_private(remote.allows_private || is_this_machine(url));
        Self { egress, may, port: url.port_or_known_default().unwrap_or_default() }
    }
}

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let (egress, may, port) = (self.egress.clone(), self.may, self.port);
        Box::pin(async move {
            let host = Host::parse(name.as_str())?;
            let addresses = egress.addresses(&host, port, may).await?;
            Ok(Box::new(addresses.into_iter().map(move |address| SocketAddr::new(address, port))) as Addrs)
        })
    }
}

/// Whether the name of a URL is one that means this machine everywhere (RFC 6761).
fn is_this_machine(url: &Url) -> bool {
    let name = url.host_str().unwrap_or_default().trim_end_matches('.');
    name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ServerConfig, client::http::connect::client_by};
    use std::{
        io,
        net::IpAddr,
        sync::{
            Arc,
            atomic::{AtomicUsize, Ordering},
        },
    };
    use tokio::net::TcpListener;
    use toolyard_egress::{NotPublic, NotSent, Resolver};

    /// A resolver with one answer after the other; the last one stays.
    struct Scripted(Vec<IpAddr>, AtomicUsize);

    #[async_trait::async_trait]
    impl Resolver for Scripted {
        async fn resolve(&self, _name: &str) -> io::Result<Vec<IpAddr>> {
            let at = self.1.fetch_add(1, Ordering::Relaxed).min(self.0.len() - 1);
            Ok(vec![self.0[at]])
        }
    }

    fn scripted(answers: &[&str]) -> Arc<Scripted> {
        let answers = answers.iter().map(|text| text.parse().unwrap()).collect();
        Arc::new(Scripted(answers, AtomicUsize::new(0)))
    }

    fn remote(url: &str, allow: bool) -> (Url, Remote) {
        let server = ServerConfig::http("a", url).allow_private(allow);
        (Url::parse(url).unwrap(), server.remote.unwrap())
    }

    /// Why the request that is made by this resolver is not sent.
    async fn refused(url: &str, resolver: Arc<Scripted>) -> Option<NotSent> {
        let (url, remote) = remote(url, false);
        let client = client_by(&url, &remote, Egress::new().resolver(resolver)).unwrap();
        let error = client.get(url).send().await.unwrap_err();
        let mut causes = std::iter::successors(std::error::Error::source(&error), |error| error.source());
        causes.find_map(|error| error.downcast_ref::<NotSent>()).cloned()
    }

    /// SB-10: a name that leads to a private address is refused, also when it led elsewhere before.
    #[tokio::test]
    async fn a_name_is_judged_each_time() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://tools.example:{}/", listener.local_addr().unwrap().port());
        for (address, kind) in [
            ("127.0.0.1", NotPublic::Loopback),
            ("10.0.0.1", NotPublic::Private),
            ("169.254.169.254", NotPublic::LinkLocal),
        ] {
            let why = refused(&url, scripted(&[address])).await;
            assert!(matches!(&why, Some(NotSent::Refused { why, .. }) if *why == kind), "{address}: {why:?}");
        }
        let (url, remote) = remote(&url, false);
        let guard = Guard::new(&url, &remote, Egress::new().resolver(scripted(&["1.1.1.1", "127.0.0.1"])));
        let name = || "tools.example".parse().unwrap();
        let first: Vec<SocketAddr> = guard.resolve(name()).await.unwrap().collect();
        assert_eq!(first, [SocketAddr::new("1.1.1.1".parse().unwrap(), guard.port)]);
        assert!(guard.resolve(name()).await.err().unwrap().is::<NotSent>());
        assert!(futures::FutureExt::now_or_never(listener.accept()).is_none(), "it was dialled");
    }

    /// SB-10: the address that was judged is dialled: a name is looked up once for a connection.
    #[tokio::test]
    async fn what_was_judged_is_dialled() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://tools.example:{}/", listener.local_addr().unwrap().port());
        // Nobody is at the second one.
        let resolver = scripted(&["127.0.0.1", "127.0.0.2"]);
        let (url, remote) = remote(&url, true);
        let client = client_by(&url, &remote, Egress::new().resolver(resolver.clone())).unwrap();
        let sending = tokio::spawn(client.get(url).send());
        let (accepted, _) = listener.accept().await.unwrap();
        assert_eq!(resolver.1.load(Ordering::Relaxed), 1);
        drop(accepted);
        assert!(sending.await.unwrap().is_err());
    }

    /// What says by itself that it means this machine needs no permission.
    #[test]
    fn localhost_is_this_machine() {
        let may = |url: &str| {
            let (url, remote) = remote(url, false);
            Guard::new(&url, &remote, Egress::new()).may
        };
        for url in ["http://localhost/", "http://LOCALHOST.:81/", "http://a.localhost/"] {
            assert_eq!(may(url), Addresses::Any, "{url}");
        }
        for url in ["http://localhost.example/", "http://notlocalhost/", "http://h/"] {
            assert_eq!(may(url), Addresses::Public, "{url}");
        }
    }
}
