//! What a journal gives back to the next engine (JR-5, JR-8, JR-10).
//!
//! ```text
//!   rows of a name ─► keys.rs ─► Past          rows of a turn ─► turns.rs ─► PastTurn
//!                                             sessions ─► sessions.rs ─► PastSession, PastRequest
//! ```

mod keys;
mod sessions;
mod turns;

use crate::{
    error::JournalError,
    journal::Journal,
    reader::{OpenTurn, Reader},
    settings::Settings,
};
use parking_lot::{Mutex, MutexGuard};
use std::{collections::HashSet, path::Path};
use toolyard::{AgentPath, Past, PastRequest, PastSession, RecordError, SessionId, event::Epoch};

/// How many names are remembered that were opened in this epoch. Beyond that any name may have been.
const NAMES_MAX: usize = 65_536;

/// What reads beside the writer, for the engine.
#[derive(Default)]
pub(crate) struct Lookup {
    reader: Mutex<Option<Reader>>,
    opened: Mutex<HashSet<SessionId>>,
}

impl Lookup {
    /// Notes that a session of this name was opened in this epoch.
    pub(crate) fn opened(&self, session: &SessionId) {
        let mut opened = self.opened.lock();
        if opened.len() < NAMES_MAX {
            opened.insert(session.clone());
        }
    }

    /// Whether records of this name may still be on their way.
    fn may_be_open(&self, session: &SessionId) -> bool {
        let opened = self.opened.lock();
        opened.len() >= NAMES_MAX || opened.contains(session)
    }

    /// Closes the connection that reads: SQLite tidies the file up when its last connection is closed, the writer's.
    pub(crate) fn close(&self) {
        *self.reader.lock() = None;
    }

    /// The connection that reads, opened when it is first used.
    fn reader(&self, path: &Path) -> Result<MutexGuard<'_, Option<Reader>>, JournalError> {
        let mut reader = self.reader.lock();
        if reader.is_none() {
            *reader = Some(Reader::open(path)?);
        }
        Ok(reader)
    }
}

impl Journal {
    /// Reads, once what was given is written.
    fn read<T>(&self, read: impl FnOnce(&Reader) -> Result<T, JournalError>) -> Result<T, RecordError> {
        self.inner.queue.wait_until_written()?;
        self.read_now(read)
    }

    fn read_now<T>(&self, read: impl FnOnce(&Reader) -> Result<T, JournalError>) -> Result<T, RecordError> {
        let found = self.inner.lookup.reader(self.path()).and_then(|mut reader| match &mut *reader {
            Some(reader) => read(reader),
            None => Reader::open(self.path()).and_then(|reader| read(&reader)),
        });
        found.map_err(|error| RecordError::new("the journal cannot be read").caused_by(error))
    }

    pub(crate) fn past_of(&self, session: &SessionId) -> Result<Past, RecordError> {
        let own = self.inner.engine.get().map(ToString::to_string);
        match self.inner.lookup.may_be_open(session) {
            true => self.read(|reader| reader.past(session, own.as_deref(), self.inner.settings)),
            false => self.read_now(|reader| reader.past(session, own.as_deref(), self.inner.settings)),
        }
    }

    pub(crate) fn left_open(&self) -> Result<Vec<toolyard::OpenTurn>, RecordError> {
        let own = self.inner.engine.get().map(ToString::to_string);
        self.read(|reader| {
            let epochs = reader.epochs()?;
            let is_own = |turn: &OpenTurn| {
                let epoch = epochs.iter().find(|epoch| epoch.epoch == turn.epoch);
                own.is_some() && epoch.is_some_and(|epoch| epoch.engine == own)
            };
            let open = reader.open_turns()?.into_iter().filter(|turn| !is_own(turn));
            open.map(|turn| reader.described(turn)).collect()
        })
    }

    pub(crate) fn session_of(&self, name: &SessionId) -> Result<Option<PastSession>, RecordError> {
        match self.inner.lookup.may_be_open(name) {
            true => self.read(|reader| reader.past_session(name)),
            // Nothing of it is on its way.
            false => self.read_now(|reader| reader.past_session(name)),
        }
    }

    /// The engines of earlier epochs, the first first.
    pub(crate) fn earlier_epochs(&self) -> Result<Vec<Epoch>, RecordError> {
        let own = self.inner.engine.get();
        let all = self.read(Reader::epochs)?;
        let engines = all.into_iter().filter_map(|epoch| epoch.engine?.parse().ok());
        Ok(engines.filter(|engine| own != Some(engine)).collect())
    }

    pub(crate) fn all_sessions(&self) -> Result<Vec<PastSession>, RecordError> {
        self.read(Reader::past_sessions)
    }

    pub(crate) fn request_of(
        &self,
        session: &SessionId,
        request: &str,
    ) -> Result<Option<PastRequest>, RecordError> {
        self.read(|reader| reader.past_request(session, request))
    }

    pub(crate) fn turn_of(
        &self,
        session: &SessionId,
        turn: u64,
    ) -> Result<Option<toolyard::PastTurn>, RecordError> {
        self.read(|reader| reader.past_turn(session, turn))
    }
}

impl Reader {
    /// What is known of a name, for the engine of this epoch.
    fn past(&self, session: &SessionId, own: Option<&str>, kept: Settings) -> Result<Past, JournalError> {
        let _snapshot = self.snapshot()?;
        let Some((earlier, turns, batches)) = self.numbers(session, own)? else { return Ok(Past::default()) };
        let forks = self.unnamed_agents(session)?;
        let (open_turns, interrupted) = self.left_by(session, own)?;
        Ok(Past {
            is_known: earlier > 0,
            turns,
            batches,
            forks: forks.iter().filter_map(agent_number).max().unwrap_or(0),
            keys: self.keys(session, kept)?,
            open_turns,
            interrupted,
        })
    }
}

/// The number of an agent that nobody has named.
fn agent_number(agent: &AgentPath) -> Option<u64> {
    agent.name().parse().ok()
}
