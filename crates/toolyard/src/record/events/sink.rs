//! Readers that miss no event.

use std::io;
use toolyard_core::Event;

/// Takes every event synchronously, in the order of its session's `seq` and without a gap (OB-3).
///
/// It is called on the calls' path and under one of their locks, so it should be fast and in memory. A slow sink
/// slows calls down, also the next call that waits for the permits of one that ends, and a sink that panics has lost an event. To write to a disk or a network, use an
/// [`EventWriter`]. A sink must not call the engine, a session or a turn.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn accept(&self, event: &Event);

    /// Makes everything accepted so far durable; called when the engine stops.
    fn flush(&self) {}
}

impl<F: Fn(&Event) + Send + Sync> EventSink for F {
    fn accept(&self, event: &Event) {
        self(event);
    }
}

/// Writes every event, in the order of its session's `seq` and without a gap (OB-3), where writing takes time: to a
/// disk, a network, a journal.
///
/// The writer has a queue and runs beside the calls, where blocking handlers run ([`Blocking`](crate::tasks::Blocking)), for
/// as long as there are events.
///
/// - **A full queue** ([`Limits::events_queue_max`](crate::config::Limits::events_queue_max), 65 536 events) holds new calls
///   back at the start of their run, before they hold anything. They proceed once half of the queue is written; after
///   30 s they end `internal`, reason `sink`, not started. Calls admitted before continue, and none of their events
///   is lost: the queue grows beyond its bound by their events, which are three per call, two per further attempt,
///   and the output they stream, and by the two events of each call that is answered without running.
/// - **A broken writer**, one that returns an error or panics, is not used again. From then on calls with side
///   effects end `internal`, reason `sink`, before they start or are retried, because nothing may run unrecorded
///   (PO-6). Read-only calls continue.
///
/// A shutdown of the engine waits until all events are written, for at most 10 s, before it stops its actors (SC-8).
/// An engine that is dropped writes the rest in its drop.
///
/// # Examples
/// ```
/// use std::io::{self, Write};
/// use toolyard::{Event, EventWriter};
///
/// struct Lines<W>(W);
///
/// impl<W: Write + Send> EventWriter for Lines<W> {
///     fn write(&mut self, event: &Event) -> io::Result<()> {
///         serde_json::to_writer(&mut self.0, event)?;
///         self.0.write_all(b"\n")
///     }
///     fn flush(&mut self) -> io::Result<()> {
///         self.0.flush()
///     }
/// }
/// ```
pub trait EventWriter: Send {
    /// Writes one event, or buffers it for [`flush`](Self::flush).
    ///
    /// # Errors
    /// If the event is not written. The writer is not used again.
    fn write(&mut self, event: &Event) -> io::Result<()>;

    /// Writes what has been buffered, because no further event waits at the moment.
    ///
    /// # Errors
    /// If that is not written. The writer is not used again.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
