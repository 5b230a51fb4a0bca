//! Readers that may miss events.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::broadcast;
use toolyard_core::Event;

/// An item of a [`Subscription`].
#[derive(Debug, Clone)]
pub enum Received {
    /// The next event.
    Event(Arc<Event>),
    /// The subscriber was too slow and missed this many events. It continues with the oldest event still kept.
    Missed(u64),
}

/// A bounded view of the event stream. A slow reader never slows the engine (OB-3).
#[derive(Debug)]
pub struct Subscription {
    pub(crate) events: broadcast::Receiver<Arc<Event>>,
    pub(crate) readers: Arc<AtomicUsize>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Subscription {
    /// Waits for the next event; `None` when the engine has [shut down](crate::engine::Engine::shutdown) or is gone, and every
    /// event was read.
    ///
    /// # Cancel safety
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Received> {
        match self.events.recv().await {
            Ok(event) => Some(Received::Event(event)),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Received::Missed(missed)),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }

    /// The next event, if there already is one.
    pub fn try_next(&mut self) -> Option<Received> {
        match self.events.try_recv() {
            Ok(event) => Some(Received::Event(event)),
            Err(broadcast::error::TryRecvError::Lagged(missed)) => Some(Received::Missed(missed)),
            Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed) => None,
        }
    }
}

/// How many events a subscriber may lag behind before it misses some.
pub(crate) const SUBSCRIBER_LAG_MAX: usize = 4096;
