//! The queue of a writer, and the pump that empties it.
//!
//! Nothing runs while there is nothing to write: the first waiting event starts a *pump*, which writes until none is
//! left. So paused time stands still for a write and for nothing else, and an idle engine keeps no thread.

use super::{EventWriter, Hold};
use crate::tasks::{Blocking, Contained, caught};
use parking_lot::Mutex;
use std::{collections::VecDeque, io, sync::Arc};
use tokio::sync::Notify;
use toolyard_core::Event;
use toolyard_redact::Redactor;

/// How many events a pump takes at once.
const AT_ONCE: usize = 1024;
/// How often `written` restarts a lost pump, before it leaves the events to the queue's drop.
const STARTS_MAX: usize = 3;

/// The events that wait for one writer.
pub(crate) struct Queue(Arc<Shared>);

struct Shared {
    state: Mutex<QueuedEvents>,
    /// Locked only by the pump.
    writer: Mutex<Contained<Box<dyn EventWriter>>>,
    capacity: usize,
    hold: Arc<Hold>,
    blocking: Arc<dyn Blocking>,
    /// Keeps secrets out of log lines.
    redactor: Option<Redactor>,
    /// Notified when a pump has ended.
    pump_ended: Notify,
}

#[derive(Default)]
struct QueuedEvents {
    waiting: VecDeque<Arc<Event>>,
    /// How many were taken from `waiting` and are not written yet.
    being_written: usize,
    pumping: bool,
    full: bool,
    broken: bool,
    closed: bool,
}

impl Queue {
    /// Makes a queue that counts as full with `capacity` events.
    pub(crate) fn new(
        writer: Box<dyn EventWriter>,
        capacity: usize,
        hold: Arc<Hold>,
        blocking: Arc<dyn Blocking>,
        redactor: Option<Redactor>,
    ) -> Self {
        let (state, writer, pump_ended) =
            (Mutex::default(), Mutex::new(Contained::new(writer)), Notify::new());
        Self(Arc::new(Shared { state, writer, capacity, hold, blocking, redactor, pump_ended }))
    }

    /// Takes an event. Never waits, even if the queue is full.
    pub(crate) fn push(&self, event: Arc<Event>) {
        let closed = {
            let mut state = self.0.state.lock();
            if state.broken {
                return;
            }
            state.waiting.push_back(event);
            if !state.full && state.len() >= self.0.capacity {
                state.full = true;
                self.0.hold.filled();
            }
            if std::mem::replace(&mut state.pumping, true) {
                return;
            }
            state.closed
        };
        let pump = Pump { queue: self.0.clone(), ran: false };
        if closed { pump.run() } else { pump.start() }
    }

    /// How many events are not written yet.
    pub(crate) fn len(&self) -> usize {
        self.0.state.lock().len()
    }

    /// Waits until every event is written.
    pub(crate) async fn written(&self) {
        for _ in 0..STARTS_MAX {
            loop {
                // Created before the check, so that a pump ending in between is not missed.
                let pump_ended = self.0.pump_ended.notified();
                if !self.0.state.lock().pumping {
                    break;
                }
                pump_ended.await;
            }
            {
                let mut state = self.0.state.lock();
                if state.waiting.is_empty() {
                    return;
                }
                if std::mem::replace(&mut state.pumping, true) {
                    continue;
                }
            }
            // The last pump was lost with its thread.
            Pump { queue: self.0.clone(), ran: false }.start();
        }
    }

    /// From now on, `push` writes events on the caller's thread.
    pub(crate) fn close(&self) {
        self.0.state.lock().closed = true;
    }
}

impl QueuedEvents {
    fn len(&self) -> usize {
        self.waiting.len() + self.being_written
    }
}

/// Writes until no event waits. If it is lost before it ran, the next pump does that.
struct Pump {
    queue: Arc<Shared>,
    ran: bool,
}

impl Pump {
    fn start(self) {
        let (blocking, redactor) = (self.queue.blocking.clone(), self.queue.redactor.clone());
        // The threads may be gone or unavailable from here. A pump that is lost with them reports it in its drop.
        let started = caught(|| blocking.spawn_writer(Box::pin(async move { self.run() })));
        if let Err(panic) = started {
            let what = "could not start a thread to write events; they stay queued";
            panic.log(what, None, redactor.as_ref());
        }
    }

    fn run(mut self) {
        self.ran = true;
        if let Err(error) = self.queue.pump() {
            self.queue.mark_broken(&error);
        }
        self.queue.pump_ended.notify_waiters();
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        if !self.ran {
            self.queue.state.lock().pumping = false;
            self.queue.pump_ended.notify_waiters();
        }
    }
}

impl Shared {
    fn pump(&self) -> io::Result<()> {
        let mut writer = self.writer.lock();
        let mut flushed = false;
        loop {
            let events = self.take(flushed);
            if events.is_empty() && flushed {
                return Ok(());
            }
            flushed = events.is_empty();
            self.write(&mut ***writer, &events)?;
        }
    }

    /// Writes these events, or flushes if there are none.
    fn write(&self, writer: &mut dyn EventWriter, events: &[Arc<Event>]) -> io::Result<()> {
        let written = caught(|| match events {
            [] => writer.flush(),
            events => events.iter().try_for_each(|event| writer.write(event)),
        });
        written.unwrap_or_else(|panic| {
            panic.log("a writer of events panicked", None, self.redactor.as_ref());
            Err(io::Error::other("the writer panicked"))
        })
    }

    /// Takes waiting events. If there are none and all taken ones are flushed, the pump ends.
    fn take(&self, flushed: bool) -> Vec<Arc<Event>> {
        let mut state = self.state.lock();
        let count = state.waiting.len().min(AT_ONCE);
        let events: Vec<_> = state.waiting.drain(..count).collect();
        state.being_written = count;
        if state.full && state.len() <= self.capacity / 2 {
            state.full = false;
            self.hold.emptied();
        }
        if count == 0 && flushed {
            state.pumping = false;
        }
        events
    }

    /// The writer has failed; nothing is written any more.
    fn mark_broken(&self, error: &io::Error) {
        // Only its kind is logged, because its text may contain anything.
        tracing::error!(error = %error.kind(), "events can no longer be written; calls with side effects are refused");
        self.hold.mark_broken();
        let mut state = self.state.lock();
        let full = state.full;
        *state = QueuedEvents { broken: true, closed: state.closed, ..QueuedEvents::default() };
        drop(state);
        if full {
            self.hold.emptied();
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.state.lock().waiting.is_empty()
            && let Err(error) = self.pump()
        {
            self.mark_broken(&error);
        }
    }
}
