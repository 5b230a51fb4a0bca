//! The rows of sessions and batches that were used last, so that not every record looks for them.

use std::collections::HashMap;
use toolyard::SessionId;

/// How many rows of each kind are remembered, at most.
const REMEMBERED: usize = 4096;

/// Of each name the session that was opened last, with its batches.
#[derive(Default)]
pub(crate) struct Ids {
    sessions: HashMap<SessionId, Session>,
    /// How many batches all of them have.
    batches: usize,
}

struct Session {
    row: i64,
    batches: HashMap<u64, i64>,
}

impl Ids {
    /// Forgets all: a transaction has made rows and was rolled back.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The session of this name is now the one with this row. The batches of the last one are forgotten.
    pub(super) fn open_session(&mut self, session: &SessionId, row: i64) {
        if self.sessions.len() >= REMEMBERED {
            self.clear();
        }
        let opened = Session { row, batches: HashMap::new() };
        if let Some(last) = self.sessions.insert(session.clone(), opened) {
            self.batches -= last.batches.len();
        }
    }

    pub(super) fn session(&self, session: &SessionId) -> Option<i64> {
        Some(self.sessions.get(session)?.row)
    }

    /// Remembers a batch, if it is of the session that was opened last under this name.
    pub(super) fn keep_batch(&mut self, name: &SessionId, session: i64, batch: u64, row: i64) {
        if self.batches >= REMEMBERED {
            self.clear();
        }
        let Some(of) = self.sessions.get_mut(name).filter(|of| of.row == session) else { return };
        if of.batches.insert(batch, row).is_none() {
            self.batches += 1;
        }
    }

    pub(super) fn batch(&self, session: &SessionId, batch: u64) -> Option<i64> {
        self.sessions.get(session)?.batches.get(&batch).copied()
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
        ids.keep_batch(&session, 1, 7, 70);
        assert_eq!((ids.session(&session), ids.batch(&session, 7)), (Some(1), Some(70)));
        ids.open_session(&session, 2);
        ids.keep_batch(&session, 1, 8, 80);
        let batches = [7, 8].map(|batch| ids.batch(&session, batch));
        assert_eq!((ids.session(&session), batches, ids.batches), (Some(2), [None; 2], 0));
    }

    /// No more is remembered than the bound, however many sessions and batches there are.
    #[test]
    fn it_is_bounded() {
        let mut ids = Ids::default();
        for number in 0..3 * REMEMBERED as u64 {
            let session = SessionId::from(format!("session-{}", number / 2));
            let row = i64::try_from(number / 2).expect("it is small");
            if number % 2 == 0 {
                ids.open_session(&session, row);
            }
            ids.keep_batch(&session, row, number, 1);
            let counted: usize = ids.sessions.values().map(|session| session.batches.len()).sum();
            assert!(ids.sessions.len() <= REMEMBERED && ids.batches <= REMEMBERED && ids.batches == counted);
        }
    }
}
