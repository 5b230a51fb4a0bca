//! The sessions of a journal, as their next engine opens them again, and what requests have brought to them.

use crate::{
    error::JournalError,
    reader::{BatchRow, Reader, values},
};
use rusqlite::{Row, params};
use toolyard::{PastAgent, PastRequest, PastSession, SessionId};

/// A name's newest session, `n`, with what it was described by last: also others than whoever describes it open it. It is
/// cancelled if it was since it was described, or, if it never was, since it was opened.
const SESSION: &str = "
    SELECT n.name, n.is_named, json_extract(d.terms, '$.description'),
        EXISTS (SELECT 1 FROM session_rows s JOIN cancel_rows k ON k.session = s.id
            WHERE s.name = n.name AND s.id >= coalesce(d.id, n.id) AND k.what = 'session' AND k.agent = 'root')
    FROM session_rows n LEFT JOIN session_rows d ON d.id = (SELECT max(o.id) FROM session_rows o
        WHERE o.name = n.name AND json_extract(o.terms, '$.description') IS NOT NULL)";

fn past_session(row: &Row<'_>, _: values::At<'_>) -> Result<PastSession, values::Fault> {
    Ok(PastSession {
        session: row.get::<_, String>(0)?.into(),
        is_named: row.get(1)?,
        description: row.get::<_, Option<String>>(2)?.map(Into::into),
        is_cancelled: row.get(3)?,
        agents: Vec::new(),
    })
}

impl Reader {
    /// The sessions that were not cancelled as a whole.
    pub(super) fn past_sessions(&self) -> Result<Vec<PastSession>, JournalError> {
        let _snapshot = self.snapshot()?;
        // By the index of names: the newest of each.
        let newest = "SELECT max(id) FROM session_rows GROUP BY name";
        let all =
            self.rows(&format!("{SESSION} WHERE n.id IN ({newest}) ORDER BY n.id"), [], past_session)?;
        let open = all.into_iter().filter(|past| !past.is_cancelled);
        open.map(|past| self.with_agents(past)).collect()
    }

    /// The session of this name, cancelled or not.
    pub(super) fn past_session(&self, name: &SessionId) -> Result<Option<PastSession>, JournalError> {
        let _snapshot = self.snapshot()?;
        let newest = "SELECT max(id) FROM session_rows WHERE name = ?1";
        let found =
            self.rows(&format!("{SESSION} WHERE n.id = ({newest})"), [name.as_str()], past_session)?;
        found.into_iter().next().map(|past| self.with_agents(past)).transpose()
    }

    /// With the agents that were named from outside of calls, since a session of this name was cancelled as a whole. A life of
    /// the engine may have ended before it had made all of them again.
    fn with_agents(&self, past: PastSession) -> Result<PastSession, JournalError> {
        if past.is_cancelled || past.description.is_none() {
            return Ok(past);
        }
        let sql = "SELECT f.agent, json_extract(f.terms, '$.description'), max(f.id) FROM fork_rows f
                   JOIN session_rows s ON s.id = f.session WHERE s.name = ?1 AND f.is_named AND f.made_by IS NULL
                   AND NOT EXISTS (SELECT 1 FROM cancel_rows k JOIN session_rows o ON o.id = k.session
                       WHERE o.name = ?1 AND o.id >= s.id AND k.what = 'session' AND k.agent = 'root')
                   GROUP BY f.agent ORDER BY length(f.agent), f.agent";
        let agents = self.rows(sql, [past.session.as_str()], |row, _| {
            Ok(PastAgent {
                agent: values::agent(row, 0)?,
                description: row.get::<_, Option<String>>(1)?.map(Into::into),
            })
        })?;
        Ok(PastSession { agents, ..past })
    }

    pub(super) fn past_request(
        &self,
        session: &SessionId,
        request: &str,
    ) -> Result<Option<PastRequest>, JournalError> {
        let _snapshot = self.snapshot()?;
        let sql =
            "SELECT b.turn, b.session, b.number FROM batch_rows b JOIN session_rows s ON s.id = b.session
                   WHERE b.request = ?1 AND s.name = ?2 AND b.parent IS NULL
                   AND EXISTS (SELECT 1 FROM call_rows c WHERE c.batch = b.id AND c.code IS NOT 'shutting_down')
                   ORDER BY b.id DESC LIMIT 1";
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
