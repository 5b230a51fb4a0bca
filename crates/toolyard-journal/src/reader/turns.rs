//! Turns at a glance, and the questions that are open.

use super::{
    Reader,
    values::{agent, number, time_of, value, word},
};
use crate::{error::JournalError, op::whole, schema::is_cancelled};
use rusqlite::params;
use serde_json::Value;
use std::time::SystemTime;
use toolyard::{AgentPath, CallDigest, CallId, RequestId, SessionId};

/// Whether a question has an answer. One to what was asked before, under the same id, is none (JR-9).
const ANSWERED: &str = "EXISTS (SELECT 1 FROM answer_rows n WHERE n.call = q.call AND n.request = q.request AND n.digest = q.digest
        AND n.links IS q.links)";

/// Which turns are told of: all, unless it says otherwise.
///
/// # Examples
/// ```
/// use toolyard_journal::Which;
/// let open = Which::default().of_session("demo").open();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[must_use]
pub struct Which {
    session: Option<String>,
    is_open: bool,
    last: Option<u64>,
}

impl Which {
    /// Those of the sessions of this name.
    pub fn of_session(mut self, name: impl Into<String>) -> Self {
        self.session = Some(name.into());
        self
    }

    /// Those that are open, as [`Reader::open_turns`] says.
    pub fn open(mut self) -> Self {
        self.is_open = true;
        self
    }

    /// So many of those that began last.
    pub fn last(mut self, turns: u64) -> Self {
        self.last = Some(turns);
        self
    }
}

/// A turn of an agent at a glance. Each of its calls is counted once.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TurnRow {
    /// The epoch that has recorded it.
    pub epoch: i64,
    /// Its session.
    pub session: SessionId,
    /// Whether somebody has named the session (SM-8).
    pub is_named: bool,
    /// Its agent.
    pub agent: AgentPath,
    /// Its number in its session.
    pub turn: u64,
    /// When it began.
    pub began: SystemTime,
    /// Whether it is open, as [`Reader::open_turns`] says.
    pub is_open: bool,
    /// Calls that have a result, but for those that ended because they were cancelled.
    pub ended: u64,
    /// Calls that were started and have no result.
    pub attempted: u64,
    /// Calls that were not started, and may be.
    pub not_started: u64,
    /// Calls that ended because they were cancelled, and those that were not started and will not be, because a cancel is
    /// recorded.
    pub cancelled: u64,
    /// Questions that nobody has answered, about calls that may still run.
    pub open_questions: u64,
}

/// A question that nobody has answered, about a call that may still run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct OpenQuestion {
    /// The epoch that has recorded the call.
    pub epoch: i64,
    /// Its session.
    pub session: SessionId,
    /// Its agent.
    pub agent: AgentPath,
    /// Its turn.
    pub turn: u64,
    /// Its batch.
    pub batch: u64,
    /// Its place in its batch, from 0.
    pub place: u32,
    /// The id that its caller gave it.
    pub call_id: CallId,
    /// Its tool.
    pub tool: String,
    /// The id of the question.
    pub request: RequestId,
    /// The digest of what is asked about.
    pub digest: CallDigest,
    /// The arguments that were shown.
    pub arguments: Value,
    /// The question of another call that it shares.
    pub shares: Option<RequestId>,
    /// When it was asked last.
    pub asked: SystemTime,
}

impl Reader {
    /// The turns, each agent's by itself, the newest first.
    ///
    /// # Errors
    /// [`JournalError`] if the file cannot be read, or has what makes no sense.
    pub fn turns(&self, which: &Which) -> Result<Vec<TurnRow>, JournalError> {
        let is_cancelled = is_cancelled();
        let sql = format!(
            "WITH seen AS (
                SELECT b.id, b.session, b.agent, b.turn, b.arrived_ms, b.parent, b.calls IS NULL AS takes_calls, c.id AS call,
                    c.id IS NOT NULL AND c.ended_ms IS NULL AS has_no_end,
                    CASE WHEN c.id IS NULL THEN NULL WHEN c.code = 'cancelled' THEN 'cancelled'
                        WHEN c.ended_ms IS NOT NULL THEN 'ended'
                        WHEN EXISTS (SELECT 1 FROM attempt_rows a WHERE a.call = c.id)
                            OR EXISTS (SELECT 1 FROM batch_rows n WHERE n.parent = c.id) THEN 'attempted'
                        WHEN {is_cancelled} THEN 'cancelled'
                        ELSE 'not_started' END AS state
                FROM batch_rows b JOIN session_rows s ON s.id = b.session LEFT JOIN call_rows c ON c.batch = b.id
                WHERE ?1 IS NULL OR s.name = ?1)
            SELECT s.epoch, s.name, s.is_named, t.agent, t.turn, min(t.arrived_ms),
                max((t.takes_calls OR t.has_no_end) AND t.parent IS NULL) AS is_open,
                sum(t.state IS 'ended'), sum(t.state IS 'attempted'), sum(t.state IS 'not_started'),
                sum(t.state IS 'cancelled'),
                sum(CASE WHEN t.state IN ('attempted', 'not_started') THEN (SELECT count(*) FROM question_rows q
                    WHERE q.call = t.call AND NOT {ANSWERED}) ELSE 0 END)
            FROM seen t JOIN session_rows s ON s.id = t.session GROUP BY t.session, t.turn, t.agent
            HAVING is_open OR NOT ?2 ORDER BY min(t.id) DESC LIMIT ?3"
        );
        let values = params![which.session, which.is_open, which.last.map_or(-1, whole)];
        self.rows(&sql, values, |row, at| {
            Ok(TurnRow {
                epoch: row.get(0)?,
                session: row.get::<_, String>(1)?.into(),
                is_named: row.get(2)?,
                agent: agent(row, 3)?,
                turn: number(row, 4, at)?,
                began: time_of(row, 5)?,
                is_open: row.get(6)?,
                ended: number(row, 7, at)?,
                attempted: number(row, 8, at)?,
                not_started: number(row, 9, at)?,
                cancelled: number(row, 10, at)?,
                open_questions: number(row, 11, at)?,
            })
        })
    }

    /// The questions that nobody has answered, the oldest first: of calls that have not ended and are not cancelled.
    ///
    /// # Errors
    /// As for [`turns`](Self::turns).
    pub fn open_questions(&self) -> Result<Vec<OpenQuestion>, JournalError> {
        let sql = format!(
            "SELECT s.epoch, s.name, b.agent, b.turn, b.number, c.place, c.call_id, c.tool, q.request, q.digest, q.arguments,
                q.shares, q.asked_ms
            FROM call_rows c JOIN question_rows q ON q.call = c.id JOIN batch_rows b ON b.id = c.batch
            JOIN session_rows s ON s.id = b.session WHERE c.ended_ms IS NULL
            AND NOT {ANSWERED} AND NOT {} ORDER BY q.asked_ms, c.id",
            is_cancelled()
        );
        self.rows(&sql, [], |row, at| {
            Ok(OpenQuestion {
                epoch: row.get(0)?,
                session: row.get::<_, String>(1)?.into(),
                agent: agent(row, 2)?,
                turn: number(row, 3, at)?,
                batch: number(row, 4, at)?,
                place: number(row, 5, at)?,
                call_id: row.get::<_, String>(6)?.into(),
                tool: row.get(7)?,
                request: word(row, 8, at)?,
                digest: word(row, 9, at)?,
                arguments: value(row, 10, at)?,
                shares: row.get::<_, Option<String>>(11)?.map(|it| at.word(&it)).transpose()?,
                asked: time_of(row, 12)?,
            })
        })
    }
}
