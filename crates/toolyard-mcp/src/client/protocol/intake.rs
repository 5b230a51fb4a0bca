//! Bounds the long messages that all servers of a program send at once, over either transport: memory that each server
//! alone could fill must not be filled by all of them together.
//!
//! ```text
//!   pipe ─► Paced ─► lines ─► parsed        a short message passes
//!   body ─► Pace ─► chunks ─► parsed        a long one takes one of a few places, until it is parsed
//!             │
//!             └── no place: the pipe or the body is not read, so the server waits
//! ```

#[cfg(feature = "http")]
mod pace;
mod paced;

#[cfg(feature = "http")]
pub(crate) use pace::Pace;
pub(crate) use paced::Paced;

use std::{sync::Arc, time::Duration};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::Instant,
};

/// Size up to which a message needs no place, in bytes.
const SHORT_BYTES: usize = 256 << 10;

/// Maximum number of longer messages that are read or parsed at once, over all servers: 64 MiB of them.
const PLACES: usize = 4;

/// How long a server may take to send the rest of a long message: others may be waiting for its place.
const REST_TIMEOUT: Duration = Duration::from_secs(60);

/// A server took too long to send the rest of a long message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it took more than {} s to send one message", REST_TIMEOUT.as_secs())]
pub(crate) struct Slow;

/// The places for long messages, shared by all servers.
#[derive(Debug, Clone)]
pub(crate) struct Intake(Arc<Semaphore>);

impl Default for Intake {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(PLACES)))
    }
}

/// A place, and the end of its time.
#[derive(Debug)]
struct Place {
    deadline: Instant,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    fn new(permit: OwnedSemaphorePermit) -> Self {
        Self { deadline: Instant::now() + REST_TIMEOUT, _permit: permit }
    }
}
