//! What a name has used: its numbers and its keys.

use crate::{
    error::JournalError,
    listing::{highest, of_name, of_name_and_turn},
    reader::{Reader, values},
    settings::Settings,
    stamp,
};
use rusqlite::{Row, params};
use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};
use toolyard::{AgentPath, CallError, PastKey, PastKeyEnd, PastKeyState, Sandbox, SessionId, ToolOutput};

/// How an attempt with a key has ended, as its row has it.
struct Ended {
    text: String,
    is_error: bool,
    at_ms: i64,
}

impl Reader {
    /// How often a name was opened before this epoch of the engine, and the highest numbers of a turn and of a batch under
    /// it; `None` if it was never used.
    pub(super) fn numbers(
        &self,
        session: &SessionId,
        own: Option<&str>,
    ) -> Result<Option<(u64, u64, u64)>, JournalError> {
        let sql = "SELECT count(*), coalesce(max(s.removed_turn), 0), coalesce(max(s.removed_batch), 0),
                   count(CASE WHEN e.engine IS ?2 THEN NULL ELSE 1 END)
                   FROM session_rows s JOIN epoch_rows e ON e.id = s.epoch WHERE s.name = ?1";
        let opened = self.rows(sql, params![session.as_str(), own], |row, at| {
            let (turns, batches) = (values::number::<u64>(row, 1, at)?, values::number::<u64>(row, 2, at)?);
            Ok((row.get::<_, i64>(0)? > 0, (values::number(row, 3, at)?, turns, batches)))
        })?;
        let opened = opened.into_iter().find(|(is_used, _)| *is_used);
        let Some((_, (earlier, turns, batches))) = opened else { return Ok(None) };
        let there = self.rows(&highest("?1"), [session.as_str()], |row, at| {
            let (turn, batch): (Option<u64>, Option<u64>) =
                (values::maybe(row, 0, at)?, values::maybe(row, 1, at)?);
            Ok((turn.unwrap_or(0), batch.unwrap_or(0)))
        })?;
        let there = there.into_iter().next().unwrap_or_default();
        Ok(Some((earlier, turns.max(there.0), batches.max(there.1))))
    }

    /// The agents of a name that nobody has named.
    pub(super) fn unnamed_agents(&self, session: &SessionId) -> Result<Vec<AgentPath>, JournalError> {
        let sql = "SELECT f.agent FROM fork_rows f JOIN session_rows s ON s.id = f.session
                   WHERE s.name = ?1 AND NOT f.is_named";
        self.rows(sql, [session.as_str()], |row, _| values::agent(row, 0))
    }

    /// How many of its turns earlier epochs have left open, and how many of their calls that change something were running.
    pub(super) fn left_by(&self, session: &SessionId, own: Option<&str>) -> Result<(u64, u64), JournalError> {
        let own = self.epochs()?.into_iter().find(|epoch| own.is_some() && epoch.engine.as_deref() == own);
        let own = own.map_or(-1, |epoch| epoch.epoch);
        let of_name = of_name("?1");
        let of_others = format!(
            "FROM batch_rows b CROSS JOIN session_rows s ON s.id = b.session WHERE b.id IN ({of_name}) AND s.epoch != ?2"
        );
        let count = |sql: String| {
            let all =
                self.rows(&sql, params![session.as_str(), own], |row, at| values::number(row, 0, at))?;
            Ok::<_, JournalError>(all.into_iter().next().unwrap_or(0))
        };
        // As `Reader::open_turns` has them.
        let open = format!(
            "SELECT count(*) FROM (SELECT 1 {of_others} AND (b.calls IS NULL
                 OR EXISTS (SELECT 1 FROM call_rows c WHERE c.batch = b.id AND c.ended_ms IS NULL))
             GROUP BY b.session, b.turn, b.agent HAVING count(*) > count(b.parent))"
        );
        let interrupted = format!(
            "SELECT count(*) FROM call_rows c WHERE c.batch IN (SELECT b.id {of_others}) AND c.ended_ms IS NULL
             AND EXISTS (SELECT 1 FROM attempt_rows a WHERE a.call = c.id AND a.side_effects NOT IN ('pure', 'read'))"
        );
        Ok((count(open)?, count(interrupted)?))
    }

    /// The requests that have brought the batches of a turn, and whether its session is named.
    pub(super) fn requests(
        &self,
        session: &SessionId,
        turn: u64,
    ) -> Result<(bool, Vec<Arc<str>>), JournalError> {
        let sql = format!(
            "SELECT s.is_named, b.request FROM batch_rows b CROSS JOIN session_rows s ON s.id = b.session
             WHERE b.id IN ({}) AND b.parent IS NULL ORDER BY b.id",
            of_name_and_turn("?1", "?2")
        );
        let all = self.rows(&sql, params![session.as_str(), crate::op::whole(turn)], |row, _| {
            Ok((row.get::<_, bool>(0)?, row.get::<_, Option<String>>(1)?))
        })?;
        let is_named = all.iter().any(|(is_named, _)| *is_named);
        Ok((is_named, all.into_iter().filter_map(|(_, request)| request.map(Into::into)).collect()))
    }

    /// The keys of a name that are kept, each with what came of the call that was started last under it. That need not be the one
    /// that came last: an earlier one may have been taken up since. Rows of attempts are in the order in which they were given.
    pub(super) fn keys(&self, session: &SessionId, kept: Settings) -> Result<Vec<PastKey>, JournalError> {
        let now = stamp::millis(SystemTime::now());
        let sql = format!(
            "WITH used AS (SELECT a.call, a.number,
                       row_number() OVER (PARTITION BY c.tool, a.key ORDER BY a.rowid DESC) AS place
                       FROM call_rows c CROSS JOIN attempt_rows a ON a.call = c.id
                       WHERE c.batch IN ({}) AND a.key IS NOT NULL AND a.started_ms > ?2 AND c.key_released_ms IS NULL)
                   SELECT c.tool, a.key, c.arguments, EXISTS (SELECT 1 FROM answer_rows n WHERE n.call = c.id
                       AND n.edited IS NOT NULL), a.version, json_extract(a.facts, '$.is_repeatable'), c.ended_ms,
                   CASE WHEN c.code IS NOT NULL OR c.ended_ms >= ?3 THEN c.status ELSE '' END, c.code IS NOT NULL,
                   a.ended_ms, a.status, a.is_retried, coalesce(c.attempts, a.number), c.sandbox, a.arguments
                   FROM used u JOIN attempt_rows a ON a.call = u.call AND a.number = u.number
                   JOIN call_rows c ON c.id = a.call WHERE u.place = 1",
            of_name("?1")
        );
        let before = |kept: Duration| now.saturating_sub(crate::op::whole(kept.as_millis()));
        let (keys, results) = (before(kept.keep_keys), before(kept.keep_results));
        let mut all =
            self.rows(&sql, params![session.as_str(), keys, results], |row, at| key(row, at, results))?;
        // Behind the others: they count where nothing else is kept under their key.
        all.extend(self.unsure_keys(session, keys)?);
        Ok(all)
    }

    /// The keys of calls that came later than this, whose attempts are missing because records of their epoch, or of one that
    /// has taken them up, may be (JR-7): those that have no end, and those that were interrupted, whichever epoch has noted
    /// that.
    fn unsure_keys(&self, session: &SessionId, after: i64) -> Result<Vec<PastKey>, JournalError> {
        let sql = format!(
            "SELECT c.tool, c.key, c.arguments FROM batch_rows b CROSS JOIN session_rows s ON s.id = b.session
             CROSS JOIN call_rows c ON c.batch = b.id WHERE b.id IN ({}) AND c.key IS NOT NULL
             AND c.arrived_ms > ?2 AND c.key_released_ms IS NULL AND ((c.ended_ms IS NULL AND s.epoch <= ?3)
                 OR (c.code = 'interrupted' AND c.attempts > 0 AND c.dedupe = 'fresh'))
             AND NOT EXISTS (SELECT 1 FROM attempt_rows a WHERE a.call = c.id) ORDER BY c.id DESC",
            of_name("?1")
        );
        let all = self.rows(&sql, params![session.as_str(), after, self.unsure_until()?], |row, _| {
            let (tool, key): (String, String) = (row.get(0)?, row.get(1)?);
            // One whose arguments cannot be read has not passed the gate.
            let arguments = serde_json::from_str(&row.get::<_, String>(2)?).ok();
            Ok(arguments.map(|arguments| PastKey {
                tool: tool.into(),
                key: key.into(),
                arguments,
                state: PastKeyState::Unsure,
            }))
        })?;
        Ok(all.into_iter().flatten().collect())
    }
}

/// A key, whose result is kept if it is not older than this.
fn key(row: &Row<'_>, at: values::At<'_>, oldest: i64) -> Result<PastKey, values::Fault> {
    let (sent, is_edited): (String, bool) = (row.get(2)?, row.get(3)?);
    // A key stands for what has passed the layers; what a person has changed is not it.
    let arguments = match row.get::<_, Option<String>>(14)?.filter(|_| !is_edited) {
        Some(run) => at.json(&run)?,
        None => at.json(&sent)?,
    };
    let of_call = row
        .get::<_, Option<i64>>(6)?
        .map(|at_ms| Ok::<_, rusqlite::Error>(Ended { at_ms, text: row.get(7)?, is_error: row.get(8)? }));
    let of_attempt = match row.get::<_, Option<bool>>(11)? {
        Some(false) => {
            let text: String = row.get(10)?;
            let is_error = at.json::<serde_json::Value>(&text)?.get("code").is_some();
            Some(Ended { at_ms: row.get(9)?, text, is_error })
        }
        _ => None,
    };
    let attempts = values::number(row, 12, at)?;
    let sandbox: Option<Sandbox> = row.get::<_, Option<String>>(13)?.map(|it| at.word(&it)).transpose()?;
    let end = match of_attempt.map(Ok).or(of_call).transpose()? {
        None => PastKeyEnd::Open,
        // What an error leaves depends on it.
        Some(ended) if !ended.is_error && ended.at_ms < oldest => PastKeyEnd::Expired,
        Some(Ended { text, is_error, .. }) => PastKeyEnd::Ended {
            status: match is_error {
                false => Ok(at.json::<ToolOutput>(&text)?),
                true => Err(at.json::<CallError>(&text)?),
            },
            attempts,
            sandbox: sandbox.unwrap_or(Sandbox::Host),
            no_side_effect: false,
        },
    };
    Ok(PastKey {
        tool: row.get::<_, String>(0)?.into(),
        key: row.get::<_, String>(1)?.into(),
        arguments,
        state: PastKeyState::Started { version: row.get(4)?, is_repeatable: row.get(5)?, end },
    })
}
