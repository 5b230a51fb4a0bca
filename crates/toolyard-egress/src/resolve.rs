//! From the name of a host to its addresses.

use std::{io, net::IpAddr};
use tokio::net::lookup_host;
use toolyard_core::async_trait;

/// Finds the addresses of a host. Whatever it answers is judged before it is dialled.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// The addresses of a name, the best ones first. A name is never an address, however that is spelt.
    ///
    /// # Errors
    /// Why none can be found.
    ///
    /// # Cancel safety
    /// The future may be dropped at any time.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of this system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}
