//! Dials what may be dialled: an address is judged when it is known, and that one is dialled.

use crate::{address::Addresses, not_sent::NotSent, origin::Destination, resolve::Resolver};
use futures::{StreamExt, stream::FuturesUnordered};
use std::{
    io,
    net::{IpAddr, SocketAddr},
    time::Duration,
};
use tokio::{net::TcpStream, time::timeout};

/// The most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 8;

/// How long an address has to answer before the next one is tried beside it: one of the families may be broken.
const NEXT_AFTER: Duration = Duration::from_millis(300);

/// The addresses of a destination that may be dialled; at least one.
///
/// # Errors
/// [`NotSent`]: it has none, or none that may be dialled.
pub(crate) async fn addresses(
    resolver: &dyn Resolver,
    to: &Destination,
    may: Addresses,
) -> Result<Vec<IpAddr>, NotSent> {
    if let Some(address) = to.address() {
        may.check(address).map_err(|why| NotSent::refused(to, why))?;
        return Ok(vec![address]);
    }
    let found = resolver.resolve(to.name()).await.map_err(|error| NotSent::unreachable(to, &error))?;
    let (mut allowed, mut refused) = (Vec::new(), None);
    for address in found {
        match may.check(address) {
            Ok(()) => allowed.push(address),
            Err(why) => refused = Some(why),
        }
    }
    allowed.truncate(ADDRESSES_MAX);
    match (allowed.is_empty(), refused) {
        (false, _) => Ok(allowed),
        (true, Some(why)) => Err(NotSent::refused(to, why)),
        (true, None) => Err(NotSent::unreachable(to, &"its name has no address")),
    }
}

/// A connection to the first of the addresses that answers.
///
/// # Errors
/// [`NotSent`]: none does.
///
/// # Cancel safety
/// Dropping the future ends all connections that have begun.
pub(crate) async fn dial(to: &Destination, addresses: Vec<IpAddr>) -> Result<TcpStream, NotSent> {
    let unreachable = |error: io::Error| NotSent::unreachable(to, &error);
    let (mut dialling, mut failed) = (FuturesUnordered::new(), None);
    for address in addresses {
        dialling.push(TcpStream::connect(SocketAddr::new(address, to.port())));
        match timeout(NEXT_AFTER, dialling.next()).await {
            Ok(Some(Ok(stream))) => return Ok(stream),
            Ok(Some(Err(error))) => failed = Some(error),
            Ok(None) | Err(_) => {}
        }
    }
    while let Some(dialled) = dialling.next().await {
        match dialled {
            Ok(stream) => return Ok(stream),
            Err(error) => failed = Some(error),
        }
    }
    Err(unreachable(failed.unwrap_or_else(|| io::ErrorKind::NotConnected.into())))
}
