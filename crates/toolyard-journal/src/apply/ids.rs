//! The rows of sessions and batches that were used last, so that not every record looks for them.

use crate::listing::LISTED_EACH;
use std::{collections::HashMap, hash::Hash, mem::take};
use toolyard::SessionId;

/// How many rows of each kind are remembered at least, if there are so many, and at most twice as many.
const REMEMBERED: usize = 16_384;

/// Of each name the session that was opened last; batches by the row of their session, and their number.
#[derive(Default)]
pub(crate) struct Ids {
    sessions: Lately<SessionId, i64>,
    batches: Lately<(i64, u64), i64>,
    /// How many batches were made since all were listed, and how many when the transaction began.
    unlisted: u32,
    unlisted_before: u32,
}

impl Ids {
    /// A transaction begins.
    pub(crate) fn begin(&mut self) {
        self.unlisted_before = self.unlisted;
    }

    /// Forgets all: the transaction has made rows and was rolled back.
    pub(crate) fn clear(&mut self) {
        *self = Self { unlisted: self.unlisted_before, ..Self::default() };
    }

    /// A batch was made. Whether those that are not listed yet are to be.
    pub(super) fn is_list_due(&mut self) -> bool {
        self.unlisted = self.unlisted.saturating_add(1);
        self.unlisted >= LISTED_EACH
    }

    pub(super) fn are_listed(&mut self) {
        self.unlisted = 0;
    }

    /// The session of this name is now the one with this row.
    pub(super) fn open_session(&mut self, session: &SessionId, row: i64) {
        self.sessions.insert(session.clone(), row);
    }

    pub(super) fn session(&mut self, session: &SessionId) -> Option<i64> {
        self.sessions.get(session)
    }

    /// Remembers a batch of the session with this row.
    pub(super) fn keep_batch(&mut self, session: i64, batch: u64, row: i64) {
        self.batches.insert((session, batch), row);
    }

    /// A batch of the session that was opened last under this name.
    pub(super) fn batch(&mut self, session: &SessionId, batch: u64) -> Option<i64> {
        let session = self.session(session)?;
        self.batches.get(&(session, batch))
    }
}

/// What was used last. Once it is full, what was not used since it was full the last time is forgotten.
struct Lately<K, V> {
    new: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K, V> Default for Lately<K, V> {
    fn default() -> Self {
        Self { new: HashMap::new(), old: HashMap::new() }
    }
}

impl<K: Eq + Hash, V: Copy> Lately<K, V> {
    fn insert(&mut self, key: K, value: V) {
        if self.new.len() >= REMEMBERED {
            self.old = take(&mut self.new);
        }
        self.new.insert(key, value);
    }

    fn get(&mut self, key: &K) -> Option<V> {
        if let Some(value) = self.new.get(key) {
            return Some(*value);
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.insert(key, value);
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session that is opened again has none of the last one's batches, and those of another one are not taken for its own.
    #[test]
    fn a_session_that_is_opened_again_has_no_batches() {
        let (mut ids, session) = (Ids::default(), SessionId::from("demo"));
        ids.open_session(&session, 1);
        ids.keep_batch(1, 7, 70);
        assert_eq!((ids.session(&session), ids.batch(&session, 7)), (Some(1), Some(70)));
        ids.open_session(&session, 2);
        ids.keep_batch(1, 8, 80);
        let batches = [7, 8].map(|batch| ids.batch(&session, batch));
        assert_eq!((ids.session(&session), batches), (Some(2), [None; 2]));
    }

    /// No more is remembered than the bound, however many sessions and batches there are; what is used is remembered.
    #[test]
    fn what_was_used_last_is_remembered() {
        let (mut ids, used) = (Ids::default(), SessionId::from("used"));
        ids.open_session(&used, -1);
        ids.keep_batch(-1, 1, -1);
        for number in 0..5 * REMEMBERED as u64 {
            let row = i64::try_from(number).expect("it is small");
            let session = SessionId::from(format!("session-{number}"));
            ids.open_session(&session, row);
            ids.keep_batch(row, number, row);
            assert_eq!(ids.batch(&session, number), Some(row));
            assert_eq!(ids.batch(&used, 1), Some(-1));
            let Ids { sessions, batches, .. } = &ids;
            assert!(sessions.new.len() + sessions.old.len() <= 2 * REMEMBERED);
            assert!(batches.new.len() + batches.old.len() <= 2 * REMEMBERED);
        }
        assert_eq!(ids.session(&SessionId::from("session-0")), None);
    }
}
