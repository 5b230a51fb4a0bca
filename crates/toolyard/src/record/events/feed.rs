//! The events that subscribers are still to read.
//!
//! ```text
//!   publish ─► [ oldest … newest ]   at most LAG_MAX: beyond it the oldest goes, and who has not read it misses it
//!                ▲          ▲
//!                one reader another, each at its own place: what all have taken is kept no longer
//! ```
//!
//! A reader takes up to TAKEN_MAX events at once, and reads those before it comes back.
//! Who publishes several events wakes the readers once, after the last of them. Wakers are cloned, woken and dropped, and
//! events dropped, with no lock held.

use super::Received;
use parking_lot::{Mutex, MutexGuard};
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

/// How many events a reader takes at once.
const TAKEN_MAX: usize = 64;

/// The events that a reader has taken and is still to read.
pub(super) type Taken = VecDeque<Arc<Event>>;

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
    /// How many events came before the one that it takes next.
    place: u64,
    /// Woken when there is something to read.
    waker: Option<Waker>,
}

/// Adds events, all at once for the readers.
pub(super) struct Feeding<'a> {
    state: MutexGuard<'a, State>,
    /// What was too much; dropped when the readers go on.
    missed: Vec<Arc<Event>>,
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

    /// Begins to add events; `None` if nobody would read them.
    pub(super) fn feeding(&self) -> Option<Feeding<'_>> {
        let state = self.state.lock();
        // The last reader may have gone meanwhile; then nobody misses an event.
        let is_read = !state.over && !state.readers.is_empty();
        is_read.then(|| Feeding { state, missed: Vec::new() })
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

    /// What a reader that has read all that it had `taken` reads next, if there already is something.
    pub(super) fn try_read(&self, key: ReaderKey, taken: &mut Taken) -> Option<Received> {
        self.state.lock().read(key, taken)
    }

    /// The same; ready with `None` if nothing more comes. Otherwise its task is woken when it does.
    pub(super) fn poll_read(
        &self,
        key: ReaderKey,
        taken: &mut Taken,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Received>> {
        {
            let mut state = self.state.lock();
            let received = state.read(key, taken);
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
        let received = state.read(key, taken);
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

impl Feeding<'_> {
    /// Adds an event.
    pub(super) fn push(&mut self, event: Arc<Event>) {
        let state = &mut *self.state;
        if state.events.len() >= LAG_MAX {
            self.missed.extend(state.events.pop_front());
            state.gone += 1;
        }
        state.events.push_back(event);
    }

    /// Lets the readers go on. Returns whether one of them waits, which must be [woken](Feed::wake) soon.
    pub(super) fn end(self) -> bool {
        let Self { state, missed } = self;
        let is_awaited = state.readers.iter().any(|(_, reader)| reader.waker.is_some());
        drop(state);
        drop(missed);
        is_awaited
    }
}

impl State {
    /// How many events there were.
    fn end(&self) -> u64 {
        self.gone + self.events.len() as u64
    }

    /// Takes what no reader is still to take.
    fn take_read(&mut self) -> Vec<Arc<Event>> {
        let count = self.read_by_all();
        self.gone += count as u64;
        self.events.drain(..count).collect()
    }

    /// What this reader reads next; what it reads after that goes into `taken`. Events that everybody has taken then
    /// are not kept.
    fn read(&mut self, key: ReaderKey, taken: &mut Taken) -> Option<Received> {
        let gone = self.gone;
        let place = &mut self.readers[key].place;
        if *place < gone {
            return Some(Received::Missed(gone - mem::replace(place, gone)));
        }
        let at = usize::try_from(*place - gone).expect("as many as are kept");
        let until = self.events.len().min(at + TAKEN_MAX);
        *place = gone + until as u64;
        // None, unless it is the last of the slowest readers.
        let read_by_all = self.read_by_all();
        if read_by_all == self.events.len() && taken.is_empty() {
            mem::swap(&mut self.events, taken); // the usual case: a single reader, which keeps up
        } else {
            taken.extend(self.events.drain(..read_by_all));
            taken.extend(self.events.range(at..until - read_by_all).cloned());
        }
        self.gone += read_by_all as u64;
        taken.pop_front().map(Received::Event)
    }

    /// How many events no reader is still to take.
    fn read_by_all(&self) -> usize {
        let first = self.readers.iter().map(|(_, reader)| reader.place).min().unwrap_or(self.end());
        usize::try_from(first.saturating_sub(self.gone)).expect("as many as are kept")
    }
}

#[cfg(test)]
mod tests;
