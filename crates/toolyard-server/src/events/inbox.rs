//! Events of some sessions that wait to be kept, and who follows these sessions.
//!
//! Each event would otherwise be kept under the one lock that all sessions share. Here it is added to its neighbours under a
//! lock of a few sessions, in memory that is in a cache, and many are kept in one go.

use super::kept::{self, weight};
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use std::{collections::HashMap, mem, sync::Arc};
use tokio::sync::Notify;
use toolyard::{Event, SessionId};

/// From how many events on they are kept if nobody else is about to keep some.
const EVENTS_SOON: usize = 16;

/// From how many bytes of events on they are.
const BYTES_SOON: usize = 32 << 10;

/// From how many events on whoever adds one waits until they are kept.
const EVENTS_MAX: usize = 64;

/// From how many bytes of events on whoever adds one waits.
pub(super) const BYTES_MAX: usize = 128 << 10;

/// Events that wait to be kept. On cache lines of its own, because each is written by another thread.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct Inbox(Mutex<Coming>);

#[derive(Debug, Default)]
struct Coming {
    /// In the order of their publication.
    events: Vec<Event>,
    bytes: usize,
    /// The sessions that somebody follows, or has followed a while ago.
    followed: HashMap<SessionId, Arc<Notify>, RandomState>,
}

/// How soon the events that wait have to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    Later,
    /// If nobody else is about to keep some.
    Soon,
    Now,
}

impl Inbox {
    /// Adds an event. Returns who has to be told of it, if anybody follows its session.
    pub(super) fn add(&self, event: &Event) -> (Due, Option<Arc<Notify>>) {
        let mut coming = self.0.lock();
        coming.events.push(kept::copy(event));
        coming.bytes += coming.events.last().map_or(0, weight);
        (coming.due(), coming.followers(&event.session))
    }

    /// Moves the events into a list that is empty.
    pub(super) fn take(&self, events: &mut Vec<Event>) {
        debug_assert!(events.is_empty(), "those in it would come again");
        let mut coming = self.0.lock();
        mem::swap(&mut coming.events, events);
        coming.bytes = 0;
    }

    /// What is notified of each event of a session from now on, for as long as it is held.
    pub(super) fn follow(&self, id: &SessionId) -> Arc<Notify> {
        let mut coming = self.0.lock();
        coming.followed.retain(|_, more| Arc::strong_count(more) > 1);
        coming.followed.entry(id.clone()).or_default().clone()
    }
}

impl Coming {
    fn due(&self) -> Due {
        let (events, bytes) = (self.events.len(), self.bytes);
        if events >= EVENTS_MAX || bytes >= BYTES_MAX {
            Due::Now
        } else if events >= EVENTS_SOON || bytes >= BYTES_SOON {
            Due::Soon
        } else {
            Due::Later
        }
    }

    fn followers(&mut self, id: &SessionId) -> Option<Arc<Notify>> {
        if self.followed.is_empty() {
            return None; // and nothing is looked up
        }
        let more = self.followed.get(id)?;
        if Arc::strong_count(more) > 1 {
            return Some(more.clone());
        }
        self.followed.remove(id);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard::{AgentPath, EventKind};

    fn delta(bytes: usize) -> Event {
        let text = "x".repeat(bytes);
        Event::new(SessionId::from("a"), AgentPath::root(), EventKind::OutputDelta { text })
    }

    /// HT-10: what waits is bounded in number and in bytes.
    #[test]
    fn what_waits_is_bounded() {
        let due = |bytes, count: usize| {
            let inbox = Inbox::default();
            (0..count).map(|_| inbox.add(&delta(bytes)).0).last()
        };
        let expect = |bytes, count, expected| assert_eq!(due(bytes, count), Some(expected), "{count}");
        expect(1, EVENTS_SOON - 1, Due::Later);
        expect(1, EVENTS_SOON, Due::Soon);
        expect(1, EVENTS_MAX - 1, Due::Soon);
        expect(1, EVENTS_MAX, Due::Now);
        expect(BYTES_SOON / 2, 1, Due::Soon);
        expect(BYTES_MAX / 2, 1, Due::Now);
        let (inbox, mut taken) = (Inbox::default(), Vec::new());
        inbox.add(&delta(BYTES_MAX / 2));
        inbox.take(&mut taken);
        assert_eq!((taken.len(), inbox.add(&delta(1)).0), (1, Due::Later));
    }

    /// HT-10: nothing is kept of who has followed a session.
    #[test]
    fn followers_are_forgotten() {
        let (inbox, id) = (Inbox::default(), SessionId::from("a"));
        let followed = || inbox.0.lock().followed.len();
        let more = inbox.follow(&id);
        assert!(inbox.add(&delta(1)).1.is_some_and(|told| Arc::ptr_eq(&told, &more)));
        drop(more);
        assert_eq!(followed(), 1);
        assert!(inbox.add(&delta(1)).1.is_none() && followed() == 0);
        drop(inbox.follow(&id));
        let _other = inbox.follow(&SessionId::from("b"));
        assert_eq!(followed(), 1);
    }
}
