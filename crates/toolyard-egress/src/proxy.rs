//! The proxy that confined processes have as their only way out (SB-10).
//!
//! ```text
//!   a process in an empty network namespace, or one that is told of the proxy
//!     │ CONNECT api.example.com:443      opaque, to what is granted, without a secret
//!     │ GET http://api.example.com/x     the same for plain HTTP
//!     │ GET /NAME/x                      to the upstream NAME, which gets its secret here
//!     ▼
//!   Listener ─► Connection ─► Wish ─► granted? ─► judged and dialled by Egress ─► origin
//!               one request    │       │ no        │ may not be dialled
//!               metered        ▼       ▼           ▼
//!               │           400, 403 with a sentence, 404, 429, 502
//!               └─► Visit ─► Observer, when it has ended
//! ```

mod connection;
mod covered;
mod grants;
mod hand_on;
mod hop;
mod limits;
mod listen;
mod mask;
mod meter;
mod quota;
mod refusal;
mod traffic;
mod upstream;
mod visit;
mod wish;

pub use limits::ProxyLimits;
pub use listen::Listener;
pub use quota::Quota;
pub use traffic::Traffic;
pub use upstream::Upstream;
pub use visit::{Door, Observer, Verdict, Visit};

use crate::{address::Addresses, egress::Egress};
use connection::Connection;
use grants::Grants;
use meter::Budget;
use std::{collections::BTreeMap, convert::Infallible, fmt, sync::Arc, time::Duration};
use tokio::{sync::Semaphore, task::JoinSet, time::sleep};
use toolyard_core::{Host, HostPattern};

/// The variables that tell programs of a proxy: some read them in small letters alone, some in capitals. They are for a
/// program's convenience; what confines it is that it has no other way.
pub const PROXY_VARIABLES: [&str; 6] =
    ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

/// The wait before the next connection is accepted after one could not be.
const AFTER_ERROR: Duration = Duration::from_millis(100);

/// A proxy for programs that have no other way out (SB-10).
///
/// It has two doors. By `CONNECT host:port` a program reaches a host that is granted, in whatever protocol both speak;
/// `GET http://host/…`, and every other method, is its twin for plain HTTP. By `/NAME/…` it reaches the upstream of
/// that name: the proxy speaks TLS itself and adds the secret, so that the program never holds it. An `Authorization`
/// of the program is dropped there, responses are asked for without compression, and where the secret comes back in one
/// it is covered.
///
/// Each connection carries one request.
///
/// # Examples
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use tokio::net::TcpListener;
/// use toolyard_egress::{Addresses, Egress, Proxy, Upstream};
/// let egress = Egress::new();
/// let secret = ("x-api-key", "hunter22");
/// let models = Upstream::new("models", "http://models.example", Addresses::Public, [secret], &egress)?;
/// let proxy = Proxy::new(&egress).grant("*.example.com:443".parse()?, Addresses::Public).upstream(models);
/// let listener = TcpListener::bind("127.0.0.1:0").await?;
/// let running = tokio::spawn(proxy.serve(listener)); // until it is aborted
/// # let _ = running;
/// # Ok(())
/// # }
/// ```
pub struct Proxy {
    egress: Egress,
    grants: Grants,
    upstreams: BTreeMap<Arc<str>, Upstream>,
    limits: ProxyLimits,
    observer: Arc<dyn Observer>,
    traffic: Traffic,
}

/// What all connections of a proxy share.
struct Doors {
    egress: Egress,
    grants: Grants,
    upstreams: BTreeMap<Arc<str>, Upstream>,
    limits: ProxyLimits,
    observer: Arc<dyn Observer>,
    budget_up: Arc<Budget>,
    budget_down: Arc<Budget>,
    traffic: Traffic,
}

impl Proxy {
    /// A proxy that lets nothing pass.
    pub fn new(egress: &Egress) -> Self {
        Self {
            egress: egress.clone(),
            grants: Grants::default(),
            upstreams: BTreeMap::new(),
            limits: ProxyLimits::default(),
            observer: Arc::new(visit::Nobody),
            traffic: Traffic::default(),
        }
    }

    /// Grants hosts, by tunnel and for plain HTTP, at these addresses.
    #[must_use]
    pub fn grant(mut self, hosts: HostPattern, may: Addresses) -> Self {
        self.grants.push(hosts, may);
        self
    }

    /// Grants the hosts of which this says which addresses they may have, beside those that are granted otherwise. It is
    /// asked for every connection, by the host's canonical name with its port, and must not block.
    ///
    /// # Examples
    /// Hosts on which two lists agree:
    /// ```
    /// use toolyard_core::HostPattern;
    /// use toolyard_egress::{Addresses, Egress, Proxy};
    /// let lists: [HostPattern; 2] = ["*.example.com".parse()?, "*:443".parse()?];
    /// let all_agree = move |host: &_| lists.iter().all(|list| list.covers(host));
    /// let proxy = Proxy::new(&Egress::new()).grant_by(move |host| all_agree(host).then_some(Addresses::Public));
    /// # let _ = proxy;
    /// # Ok::<(), toolyard_core::HostPatternError>(())
    /// ```
    #[must_use]
    pub fn grant_by(mut self, judge: impl Fn(&Host) -> Option<Addresses> + Send + Sync + 'static) -> Self {
        self.grants.push_judge(judge);
        self
    }

    /// Opens the door `/NAME/…` to an upstream, in place of another one of its name.
    #[must_use]
    pub fn upstream(mut self, upstream: Upstream) -> Self {
        self.upstreams.insert(upstream.name.clone(), upstream);
        self
    }

    /// Sets the bounds.
    #[must_use]
    pub fn limits(mut self, limits: ProxyLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets who is told of each connection.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observer = observer;
        self
    }

    /// What passes through it, to be read while it serves and afterwards.
    ///
    /// # Examples
    /// ```
    /// use toolyard_egress::{Egress, Proxy};
    /// let proxy = Proxy::new(&Egress::new());
    /// let traffic = proxy.traffic();
    /// assert_eq!((traffic.connections(), traffic.bytes_up(), traffic.bytes_down()), (0, 0, 0));
    /// ```
    pub fn traffic(&self) -> Traffic {
        self.traffic.clone()
    }

    /// Serves connections until the future is dropped.
    ///
    /// # Cancel safety
    /// Dropping the future ends all connections, and the observer is told of each.
    pub async fn serve(self, mut listener: impl Listener) -> Infallible {
        let Self { egress, grants, upstreams, limits, observer, traffic } = self;
        let (budget_up, budget_down) =
            (Budget::new(limits.bytes_up).into(), Budget::new(limits.bytes_down).into());
        let doors = Doors { egress, grants, upstreams, limits, observer, budget_up, budget_down, traffic };
        let doors = Arc::new(doors);
        let places = Arc::new(Semaphore::new(limits.connections.clamp(1, Semaphore::MAX_PERMITS)));
        let mut connections = JoinSet::new();
        loop {
            let place = places.clone().acquire_owned().await.expect("the semaphore is not closed");
            let Ok(stream) = listener.next().await else {
                sleep(AFTER_ERROR).await;
                continue;
            };
            let connection = Connection::new(doors.clone());
            connections.spawn(async move {
                connection.serve(stream).await;
                drop(place);
            });
            while connections.try_join_next().is_some() {}
        }
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Proxy");
        debug
            .field("grants", &self.grants)
            .field("upstreams", &self.upstreams.values())
            .field("limits", &self.limits);
        debug.finish_non_exhaustive()
    }
}
