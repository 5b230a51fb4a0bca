//! How events reach their readers.
//!
//! ```text
//!   session ─ seq, under the session's lock ─► EventBus ──► sinks         lossless, synchronous, fast
//!                                              position ├─────► queue ─► writer   lossless; a thread while there is work
//!                                                   │         │ full: new calls wait   broken: mutating calls end
//!                                                   │         └─► Hold ◄── checked when a call is admitted
//!                                                   └─────► Feed ─► subscribers   bounded; a slow one misses events
//! ```
//!
//! An event is not even built unless there is a sink, a writer or a subscriber.

mod feed;
mod hold;
mod queue;
mod sequence;
mod sink;
mod subscription;

pub(crate) use hold::Hold;
pub(crate) use queue::Queue;
pub(crate) use sequence::{EventPlace, Publisher, Sequence, When};
pub use sink::{EventSink, EventWriter};
pub use subscription::{Received, Subscription};

use crate::tasks::{Contained, Tasks, caught};
use feed::{Feed, Feeding};
use std::{
    fmt,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};
use toolyard_core::Event;
use toolyard_redact::Redactor;

/// How long an engine that shuts down waits for its writers.
const FLUSH_WITHIN: Duration = Duration::from_secs(10);

pub(crate) struct EventBus {
    sinks: Vec<Contained<Arc<dyn EventSink>>>,
    queues: Vec<Queue>,
    /// Keeps secrets out of log lines.
    redactor: Option<Redactor>,
    hold: Arc<Hold>,
    feed: Arc<Feed>,
    /// How many events there were. On a cache line of its own: it is written for each event, its neighbours are only
    /// read, also by calls of engines without listeners.
    published: OwnLine,
}

/// A counter on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct OwnLine(AtomicU64);

impl EventBus {
    /// A bus with these sinks, and with a queue for each writer. `queue` makes a queue, which reports to the given
    /// `Hold`.
    pub(crate) fn new(
        sinks: Vec<Arc<dyn EventSink>>,
        writers: Vec<Box<dyn EventWriter>>,
        redactor: Option<Redactor>,
        queue: impl Fn(Box<dyn EventWriter>, &Arc<Hold>) -> Queue,
    ) -> Self {
        let hold = Arc::<Hold>::default();
        let queues = writers.into_iter().map(|writer| queue(writer, &hold)).collect();
        let sinks = sinks.into_iter().map(Contained::new).collect();
        Self { sinks, queues, redactor, hold, feed: Arc::default(), published: OwnLine::default() }
    }

    /// Tells whether calls have to be held back because events cannot be written.
    pub(crate) fn hold(&self) -> &Arc<Hold> {
        &self.hold
    }

    pub(crate) fn subscribe(&self) -> Subscription {
        Subscription::new(self.feed.clone())
    }

    /// Ends the subscriptions, once they have read what was published.
    pub(crate) fn end_subscriptions(&self) {
        self.feed.end();
    }

    /// Whether anything would read an event.
    pub(crate) fn is_listening(&self) -> bool {
        self.has_sinks() || self.has_readers()
    }

    /// Whether any reader takes events as `Arc`s.
    fn wants_shared(&self) -> bool {
        self.has_writers() || self.has_readers()
    }

    /// Whether any reader takes every event: a sink, or a writer.
    pub(crate) fn has_sinks(&self) -> bool {
        !self.sinks.is_empty() || self.has_writers()
    }

    /// Whether there are writers.
    pub(crate) fn has_writers(&self) -> bool {
        !self.queues.is_empty()
    }

    fn has_readers(&self) -> bool {
        self.feed.has_readers()
    }

    /// The positions of the next events in the engine's life (SM-9).
    fn take_positions(&self, count: u32) -> Range<u64> {
        let first = self.published.0.fetch_add(count.into(), Ordering::Relaxed) + 1;
        first..first + u64::from(count)
    }

    /// Shows an event to the sinks.
    fn show(&self, event: &Event) {
        self.to_sinks(|sink| sink.accept(event));
    }

    /// Passes an event to the writers.
    fn write(&self, event: &Arc<Event>) {
        self.queues.iter().for_each(|queue| queue.push(event.clone()));
    }

    /// The way to the subscribers, if there are any. Those that wait for what is passed to them must be
    /// [woken](Self::wake_readers) soon after.
    fn feeding(&self) -> Option<Feeding<'_>> {
        if self.has_readers() { self.feed.feeding() } else { None }
    }

    /// Wakes the subscribers that wait.
    fn wake_readers(&self) {
        self.feed.wake();
    }

    /// Passes an event to the writers alone.
    pub(crate) fn to_writers(&self, event: Event) {
        self.write(&Arc::new(event));
    }

    /// Calls every sink. A sink that panics loses only its own event.
    fn to_sinks(&self, call: impl Fn(&dyn EventSink)) {
        for sink in &self.sinks {
            if let Err(panic) = caught(|| call(sink.as_ref())) {
                panic.log("an event sink panicked and lost an event", None, self.redactor.as_ref());
            }
        }
    }

    /// Waits until all events are written, within limits (SC-8); `false` if some are not.
    pub(crate) async fn written(&self, tasks: &Tasks) -> bool {
        let all = futures::future::join_all(self.queues.iter().map(Queue::written));
        let in_time = tasks.timeout(FLUSH_WITHIN, all).await.is_some();
        if !in_time {
            let unwritten: usize = self.queues.iter().map(Queue::len).sum();
            tracing::error!(unwritten, "events could not be written in time");
        }
        in_time
    }

    /// The engine has stopped: flushes the sinks, and once all events are written, has any further ones written by
    /// `publish` itself. If writers were `late` before, does not wait for them again.
    pub(crate) async fn close(&self, tasks: &Tasks, late: bool) {
        self.to_sinks(|sink| sink.flush());
        if !late && self.written(tasks).await {
            self.queues.iter().for_each(Queue::close);
        }
    }
}

impl Drop for EventBus {
    fn drop(&mut self) {
        self.end_subscriptions();
    }
}

impl fmt::Debug for EventBus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("EventBus");
        debug.field("sinks", &self.sinks.len()).field("writers", &self.queues.len()).finish_non_exhaustive()
    }
}
