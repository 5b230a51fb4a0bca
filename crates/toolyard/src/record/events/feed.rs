//! The events that subscribers are still to read.
//!
//! ```text
//!   publish ─► [ oldest … newest ]   at most LAG_MAX: beyond it the oldest goes, and who has not read it misses it
//!                ▲          ▲
//!                one reader another, each at its own place: what all have read is kept no longer
//! ```
//!
//! Who publishes several events wakes the readers once, after the last of them. Wakers are cloned, woken and dropped, and
//! events dropped, with no lock held.

use super::Received;
use parking_lot::Mutex;
use slab::Slab;
use smallvec::SmallVec;
use std::{
    collections::VecDeque,
    mem,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Waker},
};
use toolyard_core::Event;

/// How many events a subscriber may lag behind before it misses some.
const LAG_MAX: usize = 4096;

/// The events of one engine for its subscribers.
#[derive(Default)]
pub(super) struct Feed {
    /// How many readers there are, for those who ask without the lock: it is read several times per call.
    readers: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: VecDeque<Arc<Event>>,
    /// How many events came before those.
    gone: u64,
    readers: Slab<Reader>,
    /// Nothing more comes.
    over: bool,
}

/// A reader among those of a feed.
struct Reader {
    /// How many events came before the one that it reads next.
    place: u64,
    /// Woken when there is something to read.
    waker: Option<Waker>,
}

/// The key of a reader.
pub(super) type ReaderKey = usize;

impl Feed {
    /// Adds a reader, of the events that are published from now on.
    pub(super) fn join(&self) -> ReaderKey {
        self.readers.fetch_add(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        let place = state.end();
        state.readers.insert(Reader { place, waker: None })
    }

    /// Removes a reader, and what was kept for it alone.
    pub(super) fn leave(&self, key: ReaderKey) {
        self.readers.fetch_sub(1, Ordering::Relaxed);
        let mut state = self.state.lock();
        let reader = state.readers.remove(key);
        let unread = state.take_read();
        drop(state);
        drop((reader, unread));
    }

    /// Whether there is any reader.
    #[inline]
    pub(super) fn has_readers(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0
    }

    /// Adds an event. Returns whether a reader waits, which must be [woken](Self::wake) soon.
    pub(super) fn push(&self, event: Arc<Event>) -> bool {
        let mut state = self.state.lock();
        // The last reader may have gone meanwhile; then nobody misses the event.
        if state.over || state.readers.is_empty() {
            drop(state);
            drop(event);
            return false;
        }
        let missed = if state.events.len() < LAG_MAX { None } else { state.take_oldest() };
        state.events.push_back(event);
        let is_awaited = state.readers.iter().any(|(_, reader)| reader.waker.is_some());
        drop(state);
        drop(missed);
        is_awaited
    }

    /// Wakes the readers that wait.
    pub(super) fn wake(&self) {
        let wakers: SmallVec<[Waker; 4]> =
            self.state.lock().readers.iter_mut().filter_map(|(_, reader)| reader.waker.take()).collect();
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Ends it: its readers get what was published, and then the end.
    pub(super) fn end(&self) {
        self.state.lock().over = true;
        self.wake();
    }

    /// What a reader reads next, if there already is something.
    pub(super) fn try_read(&self, key: ReaderKey) -> Option<Received> {
        self.state.lock().read(key)
    }

    /// What a reader reads next; ready with `None` if nothing more comes. Otherwise its task is woken when it does.
    pub(super) fn poll_read(&self, key: ReaderKey, cx: &mut Context<'_>) -> Poll<Option<Received>> {
        {
            let mut state = self.state.lock();
            let received = state.read(key);
            if received.is_some() || state.over {
                return Poll::Ready(received);
            }
            if state.readers[key].waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
                return Poll::Pending;
            }
        }
        let waker = cx.waker().clone();
        let mut state = self.state.lock();
        // Something may have come in between.
        let received = state.read(key);
        if received.is_some() || state.over {
            drop(state);
            drop(waker);
            return Poll::Ready(received);
        }
        let before = state.readers[key].waker.replace(waker);
        drop(state);
        drop(before);
        Poll::Pending
    }
}

impl State {
    /// How many events there were.
    fn end(&self) -> u64 {
        self.gone + self.events.len() as u64
    }

    fn take_oldest(&mut self) -> Option<Arc<Event>> {
        let oldest = self.events.pop_front();
        self.gone += u64::from(oldest.is_some());
        oldest
    }

    /// What this reader reads next. An event that everybody has read then is not kept.
    fn read(&mut self, key: ReaderKey) -> Option<Received> {
        let gone = self.gone;
        let place = &mut self.readers[key].place;
        if *place < gone {
            return Some(Received::Missed(gone - mem::replace(place, gone)));
        }
        let at = usize::try_from(*place - gone).expect("as many as are kept");
        let event = self.events.get(at)?;
        *place += 1;
        if at == 0 && self.readers.iter().all(|(_, reader)| reader.place > gone) {
            return self.take_oldest().map(Received::Event);
        }
        Some(Received::Event(event.clone()))
    }

    /// Takes what no reader is still to read.
    fn take_read(&mut self) -> Vec<Arc<Event>> {
        let first = self.readers.iter().map(|(_, reader)| reader.place).min().unwrap_or(self.end());
        let count = usize::try_from(first.saturating_sub(self.gone)).expect("as many as are kept");
        self.gone += count as u64;
        self.events.drain(..count).collect()
    }
}

#[cfg(test)]
mod tests;
