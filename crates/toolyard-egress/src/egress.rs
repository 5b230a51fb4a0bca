//! The way out: from an origin to a connection with it.

use crate::{
    address::Addresses,
    dial,
    not_sent::NotSent,
    origin::{Destination, Origin, OriginError, Scheme},
    resolve::{Resolver, SystemResolver},
    stream::Stream,
    tls::Tls,
};
use std::{
    fmt,
    net::IpAddr,
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::{net::TcpStream, time::timeout};
use toolyard_core::Host;

/// How long a connection may take, with its name's resolution and its encryption.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The one way out of this machine for what tools send (SB-10): whatever dials does it here. Cheap to clone; made once,
/// because certificate authorities are loaded once for it and all its clones.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use toolyard_egress::Egress;
/// let egress = Egress::new().connect_timeout(Duration::from_secs(3));
/// # let _ = egress;
/// ```
#[derive(Clone)]
pub struct Egress {
    resolver: Arc<dyn Resolver>,
    connect_timeout: Duration,
    authorities: Option<PathBuf>,
    /// Made for the first origin that needs it.
    tls: Arc<OnceLock<Result<Tls, String>>>,
}

impl Egress {
    /// A way out with the resolver and the certificate authorities of this system.
    pub fn new() -> Self {
        Self {
            resolver: Arc::new(SystemResolver::default()),
            connect_timeout: CONNECT_TIMEOUT,
            authorities: None,
            tls: Arc::default(),
        }
    }

    /// Sets who finds the addresses of names.
    #[must_use]
    pub fn resolver(mut self, resolver: Arc<dyn Resolver>) -> Self {
        self.resolver = resolver;
        self
    }

    /// Sets how long a connection may take, with its name's resolution and its encryption; 10 s otherwise.
    #[must_use]
    pub fn connect_timeout(mut self, longest: Duration) -> Self {
        self.connect_timeout = longest;
        self
    }

    /// Trusts the certificate authorities in this file of PEM beside those of the system.
    #[must_use]
    pub fn authorities(mut self, file: impl Into<PathBuf>) -> Self {
        (self.authorities, self.tls) = (Some(file.into()), Arc::default());
        self
    }

    /// The addresses of a host that may be dialled, at least one: for clients that dial by themselves. They must dial
    /// one of these, and must not look the name up again.
    ///
    /// # Errors
    /// [`NotSent`]: it has no address, or none that may be dialled.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time.
    ///
    /// # Examples
    /// ```
    /// # tokio_test(async {
    /// use toolyard_core::Host;
    /// use toolyard_egress::{Addresses, Egress, NotSent};
    /// let host = Host::parse("0x7f.1").unwrap();
    /// let refused = Egress::new().addresses(&host, 80, Addresses::Public).await;
    /// assert!(matches!(refused, Err(NotSent::Refused { .. })));
    /// # });
    /// # fn tokio_test(test: impl Future<Output = ()>) {
    /// #     tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
    /// # }
    /// ```
    pub async fn addresses(&self, host: &Host, port: u16, may: Addresses) -> Result<Vec<IpAddr>, NotSent> {
        dial::addresses(&*self.resolver, &Destination::new(host, port), may).await
    }

    /// Whether this origin can be spoken to at all. This may read the certificate authorities, once.
    ///
    /// # Errors
    /// [`OriginError::NoTls`]
    pub(crate) fn check(&self, origin: &Origin) -> Result<(), OriginError> {
        match origin.scheme {
            Scheme::Http => Ok(()),
            Scheme::Https => self.tls().map(drop).map_err(|why| OriginError::NoTls(why.clone())),
        }
    }

    /// A connection to a destination, as it is.
    ///
    /// # Errors
    /// [`NotSent`]: there is none, or there may be none.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection.
    pub(crate) async fn dial(&self, to: &Destination, may: Addresses) -> Result<TcpStream, NotSent> {
        self.in_time(to, self.dialled(to, may)).await
    }

    /// A connection to an origin, encrypted if it is to be.
    ///
    /// # Errors
    /// [`NotSent`]: there is none, or there may be none.
    ///
    /// # Cancel safety
    /// Dropping the future ends the connection.
    pub(crate) async fn connect(&self, to: &Origin, may: Addresses) -> Result<Stream, NotSent> {
        self.in_time(&to.at, async {
            let stream = self.dialled(&to.at, may).await?;
            match to.scheme {
                Scheme::Http => Ok(Box::new(stream) as Stream),
                Scheme::Https => {
                    let tls = self.tls().map_err(|why| NotSent::unreachable(&to.at, why))?;
                    tls.encrypt(&to.at, stream).await
                }
            }
        })
        .await
    }

    async fn dialled(&self, to: &Destination, may: Addresses) -> Result<TcpStream, NotSent> {
        let addresses = dial::addresses(&*self.resolver, to, may).await?;
        let stream = dial::dial(to, addresses).await?;
        // Requests and tunnels are written as a whole: nothing is gained by waiting for more. It works without, too.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    async fn in_time<T>(
        &self,
        to: &Destination,
        connecting: impl Future<Output = Result<T, NotSent>>,
    ) -> Result<T, NotSent> {
        timeout(self.connect_timeout, connecting)
            .await
            .unwrap_or_else(|_| Err(NotSent::unreachable(to, &"it took too long to connect")))
    }

    fn tls(&self) -> Result<&Tls, &String> {
        self.tls.get_or_init(|| Tls::new(self.authorities.as_deref())).as_ref()
    }
}

impl Default for Egress {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Egress");
        debug.field("connect_timeout", &self.connect_timeout).field("authorities", &self.authorities);
        debug.finish_non_exhaustive()
    }
}
