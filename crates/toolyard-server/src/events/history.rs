//! The latest events of an engine, for readers that come late or come back.
//!
//! ```text
//!   sink ─► inbox of the session ─┐ in one go: many, or too many bytes,
//!   sink ─► inbox of the session ─┤ or before anybody reads
//!                                 ├─► shelf, by position: at most 64 MiB        ─► readers of everything
//!                                 └─► positions by session: at most 4096 each   ─► readers of a session
//! ```
//!
//! Sessions get their positions side by side, so an event may be published a little before one with a lower position. A
//! reader that resumes by its position would then miss that one; so for readers of everything an event waits until all
//! before it have come.
//!
//! Nobody reads without what is in the inboxes: a reader empties them first, and whoever adds an event tells those who wait
//! after it is there.

use super::{
    Kept,
    inbox::{self, Due, Inbox},
    log::{Log, Lost},
    shelf::Shelf,
};
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use std::{collections::HashMap, hash::BuildHasher as _, mem, sync::Arc};
use tokio::sync::Notify;
use toolyard::{Event, EventKind, SessionId};

/// How many events of a session are kept.
const SESSION_EVENTS_MAX: usize = 4096;

/// How many inboxes there are.
const INBOXES: usize = 16;

/// How many bytes of events are kept, and together with those that wait.
const BYTES_MAX: usize = (64 << 20) - INBOXES * inbox::BYTES_MAX;

/// How many events a reader is given at once.
const READ_MAX: usize = 256;

/// The latest events.
#[derive(Debug, Default)]
pub(crate) struct History {
    inboxes: [Inbox; INBOXES],
    /// By what the inbox of a session is chosen.
    hasher: RandomState,
    state: Mutex<State>,
    more: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    all: Shelf,
    sessions: HashMap<SessionId, OfSession, RandomState>,
    /// Room for the events of an inbox.
    coming: Vec<Event>,
}

#[derive(Debug, Default)]
struct OfSession {
    log: Log,
    is_closed: bool,
}

/// Whose events are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    All,
    Session(SessionId),
}

impl History {
    /// Keeps an event.
    pub(crate) fn add(&self, event: &Event) {
        let inbox = self.inbox(&event.session);
        let (due, followers) = inbox.add(event);
        let state = match due {
            Due::Later => None,
            Due::Soon => self.state.try_lock(),
            Due::Now => Some(self.state.lock()),
        };
        if let Some(mut state) = state {
            state.keep(inbox);
        }
        if let Some(readers) = followers {
            readers.notify_waiters();
        }
        // Whoever comes to wait after this finds the event in its inbox.
        if Arc::strong_count(&self.more) > 1 {
            self.more.notify_waiters();
        }
    }

    /// The position of the last event that all before have come to, where somebody starts to read who wants no earlier
    /// ones.
    pub(crate) fn newest(&self) -> u64 {
        let mut state = self.state.lock();
        self.inboxes.iter().for_each(|inbox| state.keep(inbox));
        state.all.complete_to()
    }

    /// The first events after this position; empty if there are none yet.
    pub(super) fn after(&self, source: &Source, position: u64) -> Result<Vec<Arc<Kept>>, Lost> {
        let mut state = self.state.lock();
        match source {
            Source::All => {
                self.inboxes.iter().for_each(|inbox| state.keep(inbox));
                state.all.after(position, READ_MAX)
            }
            Source::Session(id) => {
                state.keep(self.inbox(id));
                state.after_in(id, position)
            }
        }
    }

    /// What is notified of more events. It has to be there before whoever waits for them looks for some.
    pub(super) fn more(&self, source: &Source) -> Arc<Notify> {
        match source {
            Source::All => self.more.clone(),
            Source::Session(id) => self.inbox(id).follow(id),
        }
    }

    /// Where the events of a session come in: all of one name in the same one, so that they stay in their order.
    fn inbox(&self, id: &SessionId) -> &Inbox {
        let hash = self.hasher.hash_one(id);
        &self.inboxes[hash as usize % INBOXES]
    }
}

impl OfSession {
    /// Whether nothing of it is kept, and nothing more comes.
    fn is_over(&self) -> bool {
        self.is_closed && self.log.len() == 0
    }
}

impl State {
    /// Keeps what is in an inbox.
    fn keep(&mut self, inbox: &Inbox) {
        let mut coming = mem::take(&mut self.coming);
        inbox.take(&mut coming);
        for of_one in coming.chunk_by(|one, next| one.session == next.session) {
            self.note(of_one);
        }
        coming.drain(..).for_each(|event| self.all.put(event));
        self.coming = coming;
        self.forget_oldest();
    }

    /// Notes the positions of some events of one session.
    fn note(&mut self, events: &[Event]) {
        let Some(Event { session: id, .. }) = events.first() else { return };
        if !self.sessions.contains_key(id) {
            self.sessions.insert(id.clone(), OfSession::default());
        }
        let session = self.sessions.get_mut(id).expect("it is there or was inserted");
        for Event { kind, position, .. } in events {
            if matches!(kind, EventKind::SessionOpened) {
                // The name was another session's before, whose events are nobody's who has it now (HT-7).
                session.log = Log::default();
            }
            session.is_closed = matches!(kind, EventKind::SessionClosed);
            session.log.push(*position);
            if self.all.is_gone(*position) || session.log.len() > SESSION_EVENTS_MAX {
                session.log.pop();
            }
        }
        if session.is_over() {
            self.sessions.remove(id);
        }
    }

    /// The first events of a session after a position.
    fn after_in(&mut self, id: &SessionId, position: u64) -> Result<Vec<Arc<Kept>>, Lost> {
        let Some(session) = self.sessions.get(id) else { return Ok(Vec::new()) };
        let all = &mut self.all;
        let read = |position| all.read(position);
        Ok(session.log.after(position, READ_MAX)?.filter_map(read).collect())
    }

    /// Forgets the oldest events that are too many.
    fn forget_oldest(&mut self) {
        let Self { all, sessions, .. } = self;
        let mut forget = |oldest: &Event| {
            let Event { session: id, position, .. } = oldest;
            if let Some(session) = sessions.get_mut(id) {
                session.log.pop_if(*position);
                if session.is_over() {
                    sessions.remove(id);
                }
            }
        };
        while all.bytes() > BYTES_MAX && all.pop_with(&mut forget) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolyard::AgentPath;

    fn event(session: &str, position: u64, kind: EventKind) -> Event {
        let mut event = Event::new(SessionId::from(session), AgentPath::root(), kind);
        event.position = position;
        event
    }

    fn positions(read: Result<Vec<Arc<Kept>>, Lost>) -> Vec<u64> {
        read.unwrap().iter().map(|event| event.position()).collect()
    }

    /// SM-9: readers of everything get events in the order of their positions, and none before those that precede it.
    #[test]
    fn events_wait_for_those_before_them() {
        let history = History::default();
        for (session, position) in [("a", 1), ("b", 3), ("b", 4)] {
            history.add(&event(session, position, EventKind::Attempt));
        }
        assert_eq!(positions(history.after(&Source::All, 0)), [1]);
        assert_eq!(positions(history.after(&Source::Session("b".into()), 3)), [4]);
        history.add(&event("a", 2, EventKind::Attempt));
        assert_eq!(positions(history.after(&Source::All, 1)), [2, 3, 4]);
        assert_eq!(history.newest(), 4);
    }

    /// HT-10: what is kept is bounded, and who has missed something is told how far.
    #[test]
    fn what_is_kept_is_bounded() {
        let history = History::default();
        let text = "x".repeat(32 << 10);
        let most = SESSION_EVENTS_MAX as u64;
        for position in 1..=3 * most {
            history.add(&event("a", position, EventKind::OutputDelta { text: text.clone() }));
        }
        assert_eq!(history.newest(), 3 * most);
        let state = history.state.lock();
        assert!(state.all.bytes() <= BYTES_MAX);
        let session = state.sessions[&SessionId::from("a")].log.len() as u64;
        drop(state);
        assert!(session < 2000);
        let lost = Lost(3 * most - session);
        assert_eq!(history.after(&Source::All, 0).unwrap_err(), lost);
        assert_eq!(history.after(&Source::Session("a".into()), 5).unwrap_err(), lost);
        assert_eq!(positions(history.after(&Source::All, 3 * most - 1)), [3 * most]);
    }

    /// HT-10: a text that is cut counts as what is kept of it, so that others are kept beside it.
    #[test]
    fn a_text_that_is_cut_counts_as_it_is_kept() {
        let history = History::default();
        let text = "x".repeat(1 << 20);
        (1..=200).for_each(|at| history.add(&event("a", at, EventKind::OutputDelta { text: text.clone() })));
        assert_eq!(positions(history.after(&Source::All, 0)), (1..=200).collect::<Vec<_>>());
    }

    /// HT-7: whoever has the name of a session that has closed reads nothing of that one.
    #[test]
    fn a_name_that_is_taken_again_has_no_past() {
        let history = History::default();
        history.add(&event("a", 1, EventKind::SessionOpened));
        history.add(&event("a", 2, EventKind::SessionClosed));
        history.add(&event("a", 3, EventKind::SessionOpened));
        assert_eq!(positions(history.after(&Source::Session("a".into()), 0)), [3]);
        assert_eq!(positions(history.after(&Source::All, 0)), [1, 2, 3]);
    }

    /// HT-10: nothing is kept of a closed session once its events are gone.
    #[test]
    fn closed_sessions_are_forgotten() {
        let history = History::default();
        history.add(&event("a", 1, EventKind::SessionOpened));
        history.add(&event("a", 2, EventKind::SessionClosed));
        let text = "x".repeat(60 << 10);
        (3..2000).for_each(|at| history.add(&event("b", at, EventKind::OutputDelta { text: text.clone() })));
        assert_eq!(history.newest(), 1999);
        assert_eq!(history.state.lock().sessions.len(), 1);
    }
    /// HT-10: what comes so late that it is older than all that is kept is not kept, nor its session.
    #[test]
    fn what_comes_too_late_is_not_kept() {
        let history = History::default();
        let text = "x".repeat(60 << 10);
        (1..2000)
            .for_each(|at| history.add(&event("b", at + 2, EventKind::OutputDelta { text: text.clone() })));
        history.add(&event("a", 1, EventKind::SessionOpened));
        assert_eq!(history.after(&Source::Session("a".into()), 0).unwrap_err(), Lost(1));
        history.add(&event("a", 2, EventKind::SessionClosed));
        assert!(history.after(&Source::Session("a".into()), 2).unwrap().is_empty());
        assert_eq!((history.newest(), history.state.lock().sessions.len()), (2001, 1));
    }
}
