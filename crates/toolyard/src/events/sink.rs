//! Readers that miss no event.

use std::io;
use toolyard_core::Event;

/// Takes every event, in the order of its session's `seq`, none left out (OB-3), at once.
///
/// Called on the way of calls and under a lock of theirs: for what is quick and in memory. A sink that is slow makes
/// calls slow, and one that panics has lost an event. What writes to a disk or a wire is an [`EventWriter`]. A sink must
/// not call the engine, a session or a turn.
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

/// Writes every event, in the order of its session's `seq`, none left out (OB-3), where writing takes time: to a disk, a
/// wire, a journal.
///
/// A queue stands before it, and it runs beside the calls, where handlers run that block
/// ([`Blocking`](crate::Blocking)), for as long as there are events.
///
/// - **A full queue** ([`Limits::events_queue_max`](crate::Limits::events_queue_max), 65 536 events) holds new calls
///   back at the begin of their run, before they have anything. When half of it is written they go; after 30 s they end
///   `internal`, reason `sink`, not started. Calls that were admitted before go on, and none of their events is lost: the
///   queue grows beyond its bound by what they tell, which is three events each, two for every further attempt, and what
///   they stream; beside that by the two events of each call that is answered without being run.
/// - **A broken one**, one that says an error or panics, is given up: nothing more is written, and from then on calls
///   with side effects end `internal`, reason `sink`, before they start or are tried again, for nothing runs unrecorded
///   (PO-6). Calls that only look go on.
///
/// When the engine shuts down all is written before its actors stop, or 10 s have passed (SC-8). An engine that is
/// dropped writes what is left where it is dropped.
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
    /// Writes one event, or takes it to be written by [`flush`](Self::flush).
    ///
    /// # Errors
    /// When it is not written: the writer is given up then.
    fn write(&mut self, event: &Event) -> io::Result<()>;

    /// Writes what has been taken: no event waits at this moment.
    ///
    /// # Errors
    /// When that is not written: the writer is given up then.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
