//! A turn that an earlier epoch has left open is taken up in this one (JR-8).
//!
//! Its batches become those of the session that is open now, so that all that comes finds them by their numbers, and
//! whatever ends this epoch too leaves one state behind.

use super::{Done, Tables};
use crate::{
    listing::{of_name, of_name_and_turn, of_turn, with_turn},
    op::{End, Ending, Place, ResumeOp, Started, json_of, whole, word},
    schema::is_cancelled,
};
use rusqlite::{Connection, params};
use std::time::Duration;
use toolyard::{CallError, Dedupe, ErrorKind, Routing, Sandbox};

/// The turn's batches that are those of another opening of its session.
fn of_other_openings() -> String {
    format!(
        "SELECT b.id FROM batch_rows b WHERE b.id IN ({}) AND b.session != ?3",
        of_name_and_turn("?1", "?2")
    )
}

/// The batches that handlers of the turn's calls have dispatched, and those of their calls in turn.
fn below() -> String {
    format!(
        "b.id IN (WITH RECURSIVE below (id) AS (
             SELECT n.id FROM call_rows p JOIN batch_rows n ON n.parent = p.id WHERE p.batch IN ({})
             UNION SELECT n.id FROM below JOIN call_rows p ON p.batch = below.id JOIN batch_rows n ON n.parent = p.id)
         SELECT id FROM below)",
        of_turn("?1", "?2")
    )
}

impl Tables<'_> {
    pub(super) fn resumed(&mut self, resumed: &ResumeOp) -> Done {
        let ResumeOp { session, agent, turn, ended } = resumed;
        let (row, name, turn) = (self.session_row(session)?, session.as_str(), whole(*turn));
        let is_unsure = self.is_unsure(name, turn)?;
        let of_others = of_other_openings();
        // Cancels belong to the session in which they were given.
        let sql = format!(
            "UPDATE call_rows SET cancelled_ms = ?4 WHERE id IN (SELECT c.id FROM call_rows c JOIN batch_rows b
             ON b.id = c.batch WHERE c.ended_ms IS NULL AND c.cancelled_ms IS NULL AND b.id IN ({of_others}) AND {})",
            is_cancelled()
        );
        self.run(&sql, params![name, turn, row, self.now])?;
        // They hold for batches of the turn to come too. One of an opening that has nothing of the turn was of another turn,
        // which had the number and was lost.
        let sql = format!(
            "UPDATE cancel_rows SET session = ?3 WHERE what = 'turn' AND turn = ?2
             AND session != ?3 AND session IN ({})",
            with_turn("?1", "?2")
        );
        self.run(&sql, params![name, turn, row])?;
        let first = format!("SELECT min(id) - 1 FROM ({of_others})");
        self.run(
            &format!("UPDATE session_rows SET after_batch = min(after_batch, coalesce(({first}), after_batch)) WHERE id = ?3"),
            params![name, turn, row],
        )?;
        self.run(
            &format!("UPDATE batch_rows SET session = ?3 WHERE id IN ({of_others})"),
            params![name, turn, row],
        )?;
        let of_turn = "b.session = ?1 AND b.turn = ?2 AND b.parent IS NULL";
        self.close(of_turn, params![row, turn])?;
        // Wherever it was dispatched: by the handler's own agent, by another one, in the turn or in one of its own.
        let below = below();
        self.interrupt(&below, params![row, turn, self.now], is_unsure)?;
        self.close(&below, params![row, turn])?;
        let of_agent = "b.session IN (SELECT id FROM session_rows WHERE name = ?1) AND b.agent = ?2";
        for unnamed in self.unnamed_below(name, agent.as_str())? {
            self.interrupt(of_agent, params![name, unnamed, self.now], false)?;
            self.close(of_agent, params![name, unnamed])?;
        }
        ended.iter().try_for_each(|(end, started)| {
            if let Some(started) = started {
                self.was_started(&end.call, started)?;
            }
            // That of an attempt which is missing, too, and nobody has waited for it in the life in which it was made.
            self.ended(&end.call, &End { was_waited_for: false, ..end.end() })
        })
    }

    /// Notes that a call was started whose attempt is not recorded, so that its key is known.
    fn was_started(&mut self, call: &Place, started: &Started) -> Done {
        let row = self.call_row(call)?;
        let Started { key, version, side_effects, facts } = started;
        self.run(
            "INSERT INTO attempt_rows (call, number, version, side_effects, key, timeout_ms, facts, started_ms)
             SELECT ?1, 1, ?2, ?3, ?4, 0, ?5, ?6
             WHERE NOT EXISTS (SELECT 1 FROM attempt_rows a WHERE a.call = ?1)",
            params![row, version, side_effects, key, json_of(facts), self.now],
        )
    }

    /// Ends the input of such batches.
    fn close(&self, of: &str, values: impl rusqlite::Params) -> Done {
        self.run(
            &format!(
                "UPDATE batch_rows SET calls = (SELECT count(*) FROM call_rows c WHERE c.batch = batch_rows.id)
                 WHERE calls IS NULL AND id IN (SELECT b.id FROM batch_rows b WHERE b.calls IS NULL AND {of})"
            ),
            values,
        )
    }

    /// Whether an epoch has left the turn of which the last records may be missing (JR-7).
    fn is_unsure(&self, name: &str, turn: i64) -> rusqlite::Result<bool> {
        let sql = format!(
            "SELECT EXISTS (SELECT 1 FROM batch_rows b CROSS JOIN session_rows s ON s.id = b.session
             JOIN temp.unsure_epochs u ON u.id = s.epoch WHERE b.id IN ({}))",
            of_name_and_turn("?1", "?2")
        );
        self.db.prepare_cached(&sql)?.query_row(params![name, turn], |row| row.get(0))
    }

    /// Ends the open calls of such batches, at the time `?3`: those that were started, all if that is not sure, as
    /// `interrupted`, the others as `cancelled`.
    fn interrupt(&self, of: &str, values: impl rusqlite::Params + Copy, is_unsure: bool) -> Done {
        let message = "the engine's process ended while whoever has dispatched this call was running";
        let interrupted = CallError::new(ErrorKind::Interrupted, message);
        end_open(self.db, if is_unsure { Ends::All } else { Ends::Started }, &interrupted, of, values)?;
        let cancelled = CallError::new(ErrorKind::Cancelled, message).not_started();
        Ok(end_open(self.db, Ends::Others, &cancelled, of, values)?)
    }

    /// The agents of other openings below this one that have open turns, and that nobody can find by a name.
    fn unnamed_below(&self, session: &str, agent: &str) -> rusqlite::Result<Vec<String>> {
        let below = |sql: &str| -> rusqlite::Result<Vec<String>> {
            let mut found = self.db.prepare_cached(sql)?;
            let rows = found.query_map(params![session, agent], |row| row.get(0))?;
            rows.collect()
        };
        let open = below(&format!(
            "SELECT DISTINCT b.agent FROM batch_rows b CROSS JOIN session_rows s ON s.id = b.session
             WHERE b.id IN ({}) AND substr(b.agent, 1, length(?2) + 1) = ?2 || '/' AND (b.calls IS NULL OR EXISTS
                 (SELECT 1 FROM call_rows c WHERE c.batch = b.id AND c.ended_ms IS NULL))
             AND s.epoch < (SELECT max(id) FROM epoch_rows)",
            of_name("?1")
        ))?;
        let named = below(
            "SELECT DISTINCT f.agent FROM fork_rows f JOIN session_rows s ON s.id = f.session
             WHERE s.name = ?1 AND f.is_named AND substr(f.agent, 1, length(?2) + 1) = ?2 || '/'",
        )?;
        let is_under = |agent: &str, above: &str| {
            agent == above || agent.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
        };
        Ok(open.into_iter().filter(|agent| !named.iter().any(|named| is_under(agent, named))).collect())
    }
}

/// Which open calls end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// Those that were started, or may have been because records of their epoch may be missing (JR-7). Whether a read was
    /// started is not recorded; what its handler has dispatched is.
    Started,
    /// The others.
    Others,
    /// All, as if they had been started.
    All,
}

/// Ends such calls of such batches with this error, at the time `?3`.
pub(crate) fn end_open(
    db: &Connection,
    ends: Ends,
    error: &CallError,
    of: &str,
    values: impl rusqlite::Params,
) -> rusqlite::Result<()> {
    let ending = json_of(&Ending::new(Routing::ShortCircuit, 0, false, Duration::ZERO, Duration::ZERO));
    // These texts are the program's own; quotes in them are doubled.
    let quoted = |text: String| text.replace('\'', "''");
    let (status, code) = (quoted(json_of(error)), word(&error.kind));
    let (dedupe, sandbox) = (word(&Dedupe::Fresh), word(&Sandbox::Host));
    let started = "(EXISTS (SELECT 1 FROM attempt_rows a WHERE a.call = call_rows.id)
        OR EXISTS (SELECT 1 FROM batch_rows n WHERE n.parent = call_rows.id)
        OR EXISTS (SELECT 1 FROM batch_rows b JOIN session_rows s ON s.id = b.session
            JOIN temp.unsure_epochs u ON u.id = s.epoch WHERE b.id = call_rows.batch))";
    let (which, least) = match ends {
        Ends::Started => (started.to_owned(), 1),
        Ends::Others => (format!("NOT {started}"), 0),
        Ends::All => ("1".to_owned(), 1),
    };
    db.prepare_cached(&format!(
        "UPDATE call_rows SET ended_ms = ?3, status = '{status}', code = '{code}', ending = '{ending}',
             dedupe = '{dedupe}', sandbox = '{sandbox}', was_waited_for = 0,
             attempts = max({least}, (SELECT count(*) FROM attempt_rows a WHERE a.call = call_rows.id))
             WHERE {which} AND id IN (SELECT c.id FROM call_rows c INDEXED BY call_open JOIN batch_rows b ON b.id = c.batch
                 WHERE c.ended_ms IS NULL AND {of})"
    ))?
    .execute(values)?;
    Ok(())
}
