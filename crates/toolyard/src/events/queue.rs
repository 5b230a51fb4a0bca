//! The queue before a writer, and what empties it.
//!
//! Nothing runs while nothing is to be written: the first event that waits starts a *pump*, which writes until none
//! does. So paused time stands still for a write and for nothing else, and an idle engine keeps no thread.

use super::{EventWriter, Hold};
use crate::attempt::Blocking;
use std::{
    collections::VecDeque,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::Notify;
use toolyard_core::Event;

/// How many events a pump takes at once.
const AT_ONCE: usize = 1024;
/// How often a pump is started anew that was lost, before its events are left to the end of the engine.
const STARTS_MAX: usize = 3;

/// Events that wait for their writer.
pub(crate) struct Queue(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    /// Taken by whoever pumps, and by nobody else.
    writer: Mutex<Box<dyn EventWriter>>,
    most: usize,
    hold: Arc<Hold>,
    blocking: Arc<dyn Blocking>,
    /// A pump has ended.
    rests: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Arc<Event>>,
    /// Taken from there and not written yet.
    in_hand: usize,
    pumping: bool,
    full: bool,
    broken: bool,
    closed: bool,
}

impl Queue {
    /// A queue that is full with so many events.
    pub(crate) fn new(
        writer: Box<dyn EventWriter>,
        most: usize,
        hold: Arc<Hold>,
        blocking: Arc<dyn Blocking>,
    ) -> Self {
        let (state, writer, rests) = (Mutex::default(), Mutex::new(writer), Notify::new());
        Self(Arc::new(Shared { state, writer, most, hold, blocking, rests }))
    }

    /// Takes an event. It never waits, full or not.
    pub(super) fn push(&self, event: Arc<Event>) {
        let closed = {
            let mut state = self.0.state();
            if state.broken {
                return;
            }
            state.waiting.push_back(event);
            if !state.full && state.len() >= self.0.most {
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

    /// How many events are not written.
    pub(super) fn len(&self) -> usize {
        self.0.state().len()
    }

    /// Waits until every event is written.
    pub(super) async fn written(&self) {
        for _ in 0..STARTS_MAX {
            loop {
                // Made before the look: a pump that ends in between is not missed.
                let rests = self.0.rests.notified();
                if !self.0.state().pumping {
                    break;
                }
                rests.await;
            }
            {
                let mut state = self.0.state();
                if state.waiting.is_empty() {
                    return;
                }
                if std::mem::replace(&mut state.pumping, true) {
                    continue;
                }
            }
            // A pump was lost with its thread.
            Pump { queue: self.0.clone(), ran: false }.start();
        }
    }

    /// From now on whoever tells of something writes it too.
    pub(super) fn close(&self) {
        self.0.state().closed = true;
    }
}

impl State {
    fn len(&self) -> usize {
        self.waiting.len() + self.in_hand
    }
}

/// Writes until nothing waits. Lost before it ran, it leaves that to the next one.
struct Pump {
    queue: Arc<Shared>,
    ran: bool,
}

impl Pump {
    fn start(self) {
        let blocking = self.queue.blocking.clone();
        // The threads may be gone, or not to be had from here. What is lost with them tells so.
        let started = catch_unwind(AssertUnwindSafe(|| blocking.spawn(Box::pin(async move { self.run() }))));
        if started.is_err() {
            tracing::error!("no thread could be had to write events; they wait");
        }
    }

    fn run(mut self) {
        self.ran = true;
        if let Err(error) = self.queue.pump() {
            self.queue.broke(&error);
        }
        self.queue.rests.notify_waiters();
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        if !self.ran {
            self.queue.state().pumping = false;
            self.queue.rests.notify_waiters();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pump(&self) -> io::Result<()> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let mut flushed = false;
        loop {
            let events = self.take(flushed);
            if events.is_empty() && flushed {
                return Ok(());
            }
            flushed = events.is_empty();
            write(writer.as_mut(), &events)?;
        }
    }

    /// Takes what waits. With nothing left to take, and what was taken flushed, the pump has ended.
    fn take(&self, flushed: bool) -> Vec<Arc<Event>> {
        let mut state = self.state();
        let count = state.waiting.len().min(AT_ONCE);
        let events: Vec<_> = state.waiting.drain(..count).collect();
        state.in_hand = count;
        if state.full && state.len() <= self.most / 2 {
            state.full = false;
            self.hold.emptied();
        }
        if count == 0 && flushed {
            state.pumping = false;
        }
        events
    }

    /// Nothing can be written any more.
    fn broke(&self, error: &io::Error) {
        // Its text may be anything.
        tracing::error!(error = %error.kind(), "events cannot be written any more; calls with side effects are refused");
        self.hold.broke();
        let mut state = self.state();
        let full = state.full;
        *state = State { broken: true, closed: state.closed, ..State::default() };
        drop(state);
        if full {
            self.hold.emptied();
        }
    }
}

/// Writes these; flushes where there are none.
fn write(writer: &mut dyn EventWriter, events: &[Arc<Event>]) -> io::Result<()> {
    let written = catch_unwind(AssertUnwindSafe(|| match events {
        [] => writer.flush(),
        events => events.iter().try_for_each(|event| writer.write(event)),
    }));
    written.unwrap_or_else(|_| Err(io::Error::other("the writer panicked")))
}

impl Drop for Shared {
    fn drop(&mut self) {
        if !self.state().waiting.is_empty()
            && let Err(error) = self.pump()
        {
            self.broke(&error);
        }
    }
}
