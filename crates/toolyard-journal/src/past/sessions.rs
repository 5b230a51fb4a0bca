//! The sessions of a journal, as their next engine opens them again, and what requests have brought to them.

use crate::{
    error::JournalError,
    reader::{BatchRow, Reader, values},
};
use rusqlite::params;
use toolyard::{PastAgent, PastRequest, PastSession, SessionId};

impl Reader {
    /// The sessions that were not cancelled as a whole, or the one of this name, cancelled or not.
    pub(super) fn past_sessions(&self, name: Option<&SessionId>) -> Result<Vec<PastSession>, JournalError> {
        let _snapshot = self.snapshot()?;
        let sql = "SELECT s.name, s.is_named, json_extract(s.terms, '$.description'), EXISTS (SELECT 1 FROM cancel_rows k
                       WHERE k.session = s.id AND k.what = 'session' AND k.agent = 'root') AS is_cancelled
                   FROM session_rows s WHERE s.id = (SELECT max(o.id) FROM session_rows o WHERE o.name = s.name)
                   AND (s.name = ?1 OR (?1 IS NULL AND NOT is_cancelled)) ORDER BY s.id";
        let mut all = self.rows(sql, [name.map(SessionId::as_str)], |row, _| {
            Ok(PastSession {
                session: row.get::<_, String>(0)?.into(),
                is_named: row.get(1)?,
                description: row.get::<_, Option<String>>(2)?.map(Into::into),
                is_cancelled: row.get(3)?,
                agents: Vec::new(),
            })
        })?;
        for past in &mut all {
            past.agents = self.named_agents(&past.session)?;
        }
        Ok(all)
    }

    /// The agents that were named from outside of calls, since a session of this name was cancelled as a whole. A life of the
    /// engine may have ended before it had made all of them again.
    fn named_agents(&self, session: &SessionId) -> Result<Vec<PastAgent>, JournalError> {
        let sql = "SELECT f.agent, json_extract(f.terms, '$.description'), max(f.id) FROM fork_rows f
                   JOIN session_rows s ON s.id = f.session WHERE s.name = ?1 AND f.is_named AND f.made_by IS NULL
                   AND NOT EXISTS (SELECT 1 FROM cancel_rows k JOIN session_rows o ON o.id = k.session
                       WHERE o.name = ?1 AND o.id >= s.id AND k.what = 'session' AND k.agent = 'root')
                   GROUP BY f.agent ORDER BY length(f.agent), f.agent";
        self.rows(sql, [session.as_str()], |row, _| {
            Ok(PastAgent {
                agent: values::agent(row, 0)?,
                description: row.get::<_, Option<String>>(1)?.map(Into::into),
            })
        })
    }

    pub(super) fn past_request(
        &self,
        session: &SessionId,
        request: &str,
    ) -> Result<Option<PastRequest>, JournalError> {
        let _snapshot = self.snapshot()?;
        let sql =
            "SELECT b.turn, b.session, b.number FROM batch_rows b JOIN session_rows s ON s.id = b.session
                   WHERE b.request = ?1 AND s.name = ?2 AND b.parent IS NULL ORDER BY b.id DESC LIMIT 1";
        let found = self.rows(sql, params![request, session.as_str()], |row, at| {
            Ok((
                values::number::<u64>(row, 0, at)?,
                row.get::<_, i64>(1)?,
                values::number::<u64>(row, 2, at)?,
            ))
        })?;
        let Some((turn, id, number)) = found.into_iter().next() else { return Ok(None) };
        let batch = self.batches(id, turn)?.into_iter().find(|batch| batch.batch == number);
        Ok(batch.map(|BatchRow { agent, calls, .. }| PastRequest {
            turn,
            agent,
            calls: calls.into_iter().map(|call| call.call).collect(),
        }))
    }
}
