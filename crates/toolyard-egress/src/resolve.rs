//! From the name of a host to its addresses.

use std::{
    io,
    net::{IpAddr, ToSocketAddrs},
    sync::Arc,
};
use tokio::{sync::Semaphore, task::spawn_blocking};
use toolyard_core::async_trait;

/// How many names are looked up at once. Each has a thread, also after nobody waits for it any more.
const LOOKUPS_MAX: usize = 16;

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

/// The resolver of this system, which looks up at most 16 names at once.
#[derive(Debug, Clone)]
pub struct SystemResolver {
    places: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }
}

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let place = self.places.clone().acquire_owned().await.expect("the semaphore is not closed");
        let name = name.to_owned();
        let looking_up = spawn_blocking(move || {
            let found = (name.as_str(), 0).to_socket_addrs();
            drop(place);
            found
        });
        // It panics never, and is cancelled only with its runtime.
        let found = looking_up.await.map_err(io::Error::other)??;
        Ok(found.map(|address| address.ip()).collect())
    }
}
