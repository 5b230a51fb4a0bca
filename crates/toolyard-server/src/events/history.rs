//! The latest events of an engine, for readers that come late or come back.
//!
//! ```text
//!   sink ─► by position ─► shelf: at most 64 MiB               ─► readers of everything
//!              └─► positions by session: at most 4096 each     ─► readers of a session
//! ```
//!
//! Sessions get their positions side by side, so an event may be published a little before one with a lower position. A
//! reader that resumes by its position would then miss that one; so for readers of everything an event waits until all
//! before it have come.

use super::{
    Kept,
    kept::weight,
    log::{Log, Lost},
    shelf::{Shelf, Slot},
};
use foldhash::fast::RandomState;
use parking_lot::Mutex;
use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};
use tokio::sync::Notify;
use toolyard::{Event, EventKind, SessionId};

/// How many events of a session are kept.
const SESSION_EVENTS_MAX: usize = 4096;

/// How many bytes of events are kept altogether.
const BYTES_MAX: usize = 64 << 20;

/// How many events a reader is given at once.
const READ_MAX: usize = 256;

/// The latest events.
#[derive(Debug, Default)]
pub(crate) struct History {
    state: Mutex<State>,
    more: Arc<Notify>,
}

#[derive(Debug, Default)]
struct State {
    all: Shelf,
    bytes: usize,
    /// The position up to which all events have come.
    complete_to: u64,
    /// Events that came before others with lower positions.
    early: BTreeMap<u64, Slot>,
    sessions: HashMap<SessionId, OfSession, RandomState>,
}

#[derive(Debug, Default)]
struct OfSession {
    log: Log,
    more: Arc<Notify>,
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
        let (of_session, has_more, forgotten) = {
            let mut state = self.state.lock();
            let of_session = state.add_to_session(event);
            let has_more = state.add(event);
            (of_session, has_more, state.forget_oldest())
        };
        drop(forgotten); // outside of the lock
        if let Some(readers) = of_session {
            readers.notify_waiters();
        }
        // Whoever comes to wait after this finds the event there.
        if has_more && Arc::strong_count(&self.more) > 1 {
            self.more.notify_waiters();
        }
    }

    /// The position of the last event that all before have come to, where somebody starts to read who wants no earlier
    /// ones.
    pub(crate) fn newest(&self) -> u64 {
        self.state.lock().complete_to
    }

    /// The first events after this position; empty if there are none yet.
    pub(super) fn after(&self, source: &Source, position: u64) -> Result<Vec<Arc<Kept>>, Lost> {
        let mut state = self.state.lock();
        match source {
            Source::All => state.all.after(position, READ_MAX),
            Source::Session(id) => state.after_in(id, position),
        }
    }

    /// What is notified of more events.
    pub(super) fn more(&self, source: &Source) -> Arc<Notify> {
        match source {
            Source::All => self.more.clone(),
            Source::Session(id) => self.state.lock().sessions.entry(id.clone()).or_default().more.clone(),
        }
    }
}

impl State {
    /// Returns what notifies the readers of its session, if there are any.
    fn add_to_session(&mut self, event: &Event) -> Option<Arc<Notify>> {
        let id = &event.session;
        if !self.sessions.contains_key(id) {
            self.sessions.insert(id.clone(), OfSession::default());
        }
        let session = self.sessions.get_mut(id).expect("it is there or was inserted");
        if matches!(event.kind, EventKind::SessionOpened) {
            // The name was another session's before, whose events are nobody's who has it now (HT-7).
            session.log = Log::default();
        }
        session.is_closed = matches!(event.kind, EventKind::SessionClosed);
        session.log.push(event.position);
        if session.log.len() > SESSION_EVENTS_MAX {
            session.log.pop();
        }
        (Arc::strong_count(&session.more) > 1).then(|| session.more.clone())
    }

    /// The first events of a session after a position.
    fn after_in(&mut self, id: &SessionId, position: u64) -> Result<Vec<Arc<Kept>>, Lost> {
        let Some(session) = self.sessions.get(id) else { return Ok(Vec::new()) };
        let (all, early) = (&mut self.all, &mut self.early);
        let read = |position| all.get(position).or_else(|| early.get_mut(&position)).map(Slot::read);
        Ok(session.log.after(position, READ_MAX)?.filter_map(read).collect())
    }

    /// Returns whether readers of everything have more to read.
    fn add(&mut self, event: &Event) -> bool {
        self.bytes += weight(event);
        let (before, position) = (self.complete_to, event.position);
        if position == before + 1 {
            self.complete_to += 1;
            // Copied to where it stays: an event is large.
            self.all.push_with(|| Slot::new(event));
        } else {
            self.early.insert(position, Slot::new(event));
        }
        while let Some(next) = self.early.remove(&(self.complete_to + 1)) {
            self.complete_to += 1;
            self.all.push_with(|| next);
        }
        self.complete_to > before
    }

    /// Forgets the oldest events that are too many, and returns the last of them, which is nearly always the only one.
    fn forget_oldest(&mut self) -> Option<Slot> {
        let mut forgotten = None;
        while self.bytes > BYTES_MAX
            && let Some(oldest) = self.all.pop()
        {
            self.bytes -= oldest.weight();
            let Event { session: id, position, .. } = oldest.event();
            if let Some(session) = self.sessions.get_mut(id) {
                session.log.pop_if(*position);
                // A reader that waits for a closed session holds its notifier, and is told of its end otherwise.
                if session.is_closed && session.log.len() == 0 {
                    self.sessions.remove(id);
                }
            }
            forgotten = Some(oldest);
        }
        forgotten
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
        let state = history.state.lock();
        assert!(state.bytes <= BYTES_MAX && state.all.len() < 2000);
        let (all, session) = (state.all.len() as u64, state.sessions[&SessionId::from("a")].log.len() as u64);
        drop(state);
        assert_eq!(history.after(&Source::All, 0).unwrap_err(), Lost(3 * most - all));
        assert_eq!(history.after(&Source::Session("a".into()), 5).unwrap_err(), Lost(3 * most - session));
        assert_eq!(positions(history.after(&Source::All, 3 * most - 1)), [3 * most]);
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
        assert_eq!(history.state.lock().sessions.len(), 1);
    }
}
