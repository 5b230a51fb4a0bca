//! Where events go.
//!
//! ```text
//!   session ─ seq, under the session's lock ─► EventBus ──► sinks         lossless, called in order
//!                                                   └─────► subscribers   bounded; a slow one is told what it missed
//! ```
//!
//! With no sink and no subscriber an event is not even built.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::sync::broadcast;
use toolyard_core::Event;

/// Takes every event, in the order of its session's `seq`, none left out (OB-3).
///
/// Called on the way of calls and under a lock of theirs: a sink that is slow makes calls slow, so one that writes
/// to a disk or a wire puts a buffer in between; and a sink must not call the engine, a session or a turn.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn accept(&self, event: &Event);

    /// Everything accepted so far is to be safe now; called when the engine stops.
    fn flush(&self) {}
}

impl<F: Fn(&Event) + Send + Sync> EventSink for F {
    fn accept(&self, event: &Event) {
        self(event);
    }
}

/// What a [`Subscription`] gives.
#[derive(Debug, Clone)]
pub enum Received {
    /// The next event.
    Event(Arc<Event>),
    /// The reader was too slow: so many events are gone. It goes on with the oldest that is kept.
    Missed(u64),
}

/// A bounded view of the event stream. A slow reader never slows the engine (OB-3).
#[derive(Debug)]
pub struct Subscription {
    events: broadcast::Receiver<Arc<Event>>,
    readers: Arc<AtomicUsize>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Subscription {
    /// The next event; `None` when the engine is gone.
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

    /// The next event if one is there already.
    pub fn try_next(&mut self) -> Option<Received> {
        match self.events.try_recv() {
            Ok(event) => Some(Received::Event(event)),
            Err(broadcast::error::TryRecvError::Lagged(missed)) => Some(Received::Missed(missed)),
            Err(broadcast::error::TryRecvError::Empty | broadcast::error::TryRecvError::Closed) => None,
        }
    }
}

/// How many events a subscriber may be behind before it misses some.
const SUBSCRIBER_LAG_MAX: usize = 4096;

pub(crate) struct EventBus {
    sinks: Vec<Arc<dyn EventSink>>,
    subscribers: broadcast::Sender<Arc<Event>>,
    /// How many subscribers there are; the channel's own count is behind a lock, and this one is read several
    /// times a call.
    readers: Arc<AtomicUsize>,
}

impl EventBus {
    pub(crate) fn new(sinks: Vec<Arc<dyn EventSink>>) -> Self {
        Self { sinks, subscribers: broadcast::Sender::new(SUBSCRIBER_LAG_MAX), readers: Arc::default() }
    }

    pub(crate) fn subscribe(&self) -> Subscription {
        self.readers.fetch_add(1, Ordering::Relaxed);
        Subscription { events: self.subscribers.subscribe(), readers: self.readers.clone() }
    }

    /// Whether anybody would see an event.
    pub(crate) fn is_listening(&self) -> bool {
        !self.sinks.is_empty() || self.has_readers()
    }

    /// Whether every event is kept by somebody.
    pub(crate) fn is_kept(&self) -> bool {
        !self.sinks.is_empty()
    }

    fn has_readers(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0
    }

    fn publish(&self, event: Event) {
        self.to_sinks(|sink| sink.accept(&event));
        if self.has_readers() {
            // The last reader may have gone meanwhile: then nobody misses it.
            let _ = self.subscribers.send(Arc::new(event));
        }
    }

    /// Calls every sink. One that panics costs its own event and nothing else.
    fn to_sinks(&self, call: impl Fn(&dyn EventSink)) {
        for sink in &self.sinks {
            if catch_unwind(AssertUnwindSafe(|| call(sink.as_ref()))).is_err() {
                tracing::error!("an event sink panicked; it has lost an event");
            }
        }
    }

    pub(crate) fn flush(&self) {
        self.to_sinks(|sink| sink.flush());
    }
}

impl fmt::Debug for EventBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBus").field("sinks", &self.sinks.len()).finish_non_exhaustive()
    }
}

/// Numbers the events of one session, from 1 and without a gap (OB-2).
#[derive(Debug, Default)]
pub(crate) struct Sequence {
    last: Mutex<u64>,
}

impl Sequence {
    /// Numbers the event and hands it on, in one step: readers see a session's numbers in order.
    pub(crate) fn publish(&self, bus: &EventBus, mut event: Event) {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last += 1;
        event.seq = *last;
        bus.publish(event);
    }
}
