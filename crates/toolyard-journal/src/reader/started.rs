//! The calls of a session that were started, each to be read by itself.

use super::{CallRow, Reader, values::agent};
use crate::{error::JournalError, listing::of_name};
use rusqlite::params;
use toolyard::{AgentPath, CallId};

/// A call of which a start is recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StartedCall {
    /// Its agent.
    pub agent: AgentPath,
    /// The id that its caller gave it.
    pub call_id: CallId,
    row: i64,
}

impl Reader {
    /// The calls of the sessions of this name that were started, of all agents, those of handlers too, in the order in which
    /// they came, and those that may have been because records of their epoch, or of a later one, may be
    /// missing (JR-7). One whose start was
    /// recorded, and that has ended before it, is none of them.
    /// [`started_call`](Self::started_call) reads one.
    ///
    /// # Errors
    /// [`JournalError`] if the file cannot be read, or has what makes no sense.
    pub fn started_calls(&self, session: &str) -> Result<Vec<StartedCall>, JournalError> {
        let sql = format!(
            "SELECT c.id, b.agent, c.call_id FROM batch_rows b CROSS JOIN session_rows s ON s.id = b.session
             CROSS JOIN call_rows c ON c.batch = b.id WHERE b.id IN ({})
             AND (c.attempts > 0 OR (c.ended_ms IS NULL
                 AND (s.epoch <= ?2 OR EXISTS (SELECT 1 FROM attempt_rows a WHERE a.call = c.id))))
             ORDER BY c.id",
            of_name("?1")
        );
        self.rows(&sql, params![session, self.unsure_until()?], |row, _| {
            Ok(StartedCall {
                agent: agent(row, 1)?,
                call_id: row.get::<_, String>(2)?.into(),
                row: row.get(0)?,
            })
        })
    }

    /// What is recorded of such a call; `None` if it was pruned since.
    ///
    /// # Errors
    /// As for [`started_calls`](Self::started_calls).
    pub fn started_call(&self, call: &StartedCall) -> Result<Option<CallRow>, JournalError> {
        Ok(self.calls_by("c.id", call.row)?.into_iter().next())
    }
}
