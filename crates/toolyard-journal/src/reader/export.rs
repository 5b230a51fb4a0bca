//! Every record, as the views have it.

use super::Reader;
use crate::{error::JournalError, listing::by_session, schema::of_batches};
use rusqlite::{Params, params, types::ValueRef};
use serde_json::{Map, Value};

/// The records of a session: the view, the name of one of its rows, and their order, which does not depend on how they are found.
const OF_SESSION: [(&str, &str, &str); 8] = [
    ("sessions", "session", "opened_ms"),
    ("forks", "fork", "made_ms, agent"),
    ("batches", "batch", "batch, arrived_ms, turn, agent, request"),
    ("calls", "call", "batch, place, arrived_ms, turn, agent, call_id"),
    ("attempts", "attempt", "batch, place, attempt, started_ms, turn, call_id"),
    ("questions", "question", "batch, place, asked_ms, request, turn, call_id"),
    ("verdicts", "verdict", "batch, place, found_ms, turn, call_id"),
    ("cancels", "cancel", "given_ms, agent, what, turn, batch, place, call_id"),
];

impl Reader {
    /// Gives each record to `each`, which gets its kind (`epoch`, `session`, `fork`, `batch`, `call`, `attempt`, `question`,
    /// `verdict`, `cancel`) and the columns of its row in the view of such records ([`VIEWS`](crate::VIEWS)): numbers,
    /// texts, nulls, and of columns that begin with `is_` booleans. JSON in a column is a text as it is there.
    ///
    /// An epoch is followed by the sessions that were opened in it, a session by what belongs to it; with a name, only
    /// sessions of that name are given, and the epochs that have one. What has not changed is given in the same order. All
    /// of it is of one moment: what is written meanwhile is not among it, and the log of the file grows until this ends.
    ///
    /// # Errors
    /// [`JournalError`] if the file cannot be read, as an error of `each`, with which it ends too.
    ///
    /// # Examples
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("agent.journal");
    /// # toolyard_journal::Journal::open(&path, toolyard_journal::Settings::default())?.close()?;
    /// use toolyard_journal::{JournalError, Reader};
    /// let mut kinds = Vec::new();
    /// Reader::open(&path)?.export(None, |kind, row| {
    ///     assert_eq!(row["epoch"], 1);
    ///     kinds.push(kind);
    ///     Ok::<(), JournalError>(())
    /// })?;
    /// assert_eq!(kinds, ["epoch"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn export<E: From<JournalError>>(
        &self,
        session: Option<&str>,
        mut each: impl FnMut(&'static str, Map<String, Value>) -> Result<(), E>,
    ) -> Result<(), E> {
        let _snapshot = self.snapshot()?;
        let epochs = "SELECT * FROM epochs WHERE ?1 IS NULL OR epoch IN (SELECT epoch FROM sessions WHERE session = ?1)
                      ORDER BY epoch";
        let names = "SELECT session FROM sessions WHERE epoch = ?1 AND (?2 IS NULL OR session = ?2)
                     GROUP BY session ORDER BY min(opened_ms), session";
        self.each_row(epochs, params![session], |row| {
            let epoch = row.get("epoch").and_then(Value::as_i64).unwrap_or_default();
            each("epoch", row)?;
            self.each_row(names, params![epoch, session], |row| {
                let name = row.get("session").and_then(Value::as_str).unwrap_or_default();
                for (view, kind, order) in OF_SESSION {
                    let rows = of_session(view);
                    let sql = format!("{rows} ORDER BY {order}");
                    self.each_row(&sql, params![epoch, name], |row| each(kind, row))?;
                }
                Ok(())
            })
        })
    }

    fn each_row<E: From<JournalError>>(
        &self,
        sql: &str,
        values: impl Params,
        mut each: impl FnMut(Map<String, Value>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut query = self.db.prepare_cached(sql).map_err(self.failed())?;
        let names: Vec<String> = query.column_names().map(str::to_owned).collect();
        let mut rows = query.query(values).map_err(self.failed())?;
        while let Some(row) = rows.next().map_err(self.failed())? {
            let cells = names.iter().enumerate().map(|(at, name)| {
                let cell = row.get_ref(at).map_err(self.failed())?;
                Ok((name.clone(), json(name, cell)))
            });
            each(cells.collect::<Result<_, JournalError>>()?)?;
        }
        Ok(())
    }
}

/// The query of the rows that a view has of the sessions of the name `?2` in the epoch `?1`: by the sessions, where the view itself
/// would be looked through as a whole.
fn of_session(view: &str) -> String {
    let of_batches = of_batches().into_iter().find(|(name, ..)| *name == view);
    match of_batches {
        Some((_, what, joined)) => {
            format!("SELECT * FROM ({})", by_session(&what, joined, "s.epoch = ?1 AND s.name = ?2"))
        }
        None => format!("SELECT * FROM {view} WHERE epoch = ?1 AND session = ?2"),
    }
}

/// A cell of this column as JSON.
fn json(column: &str, cell: ValueRef<'_>) -> Value {
    match cell {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) if column.starts_with("is_") => (number != 0).into(),
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;
    use rusqlite::Connection;

    /// JR-14: a session's rows are asked for by their session with the columns of their view, and in an order of these.
    #[test]
    fn every_view_is_asked_in_its_order() {
        let mut db = Connection::open_in_memory().expect("it takes no file");
        schema::create(&mut db).expect("it is new");
        let columns = |sql: &str| -> Vec<String> {
            let query = db.prepare(sql).expect("it is SQL");
            query.column_names().map(str::to_owned).collect()
        };
        for (view, _, order) in OF_SESSION {
            let asked = columns(&format!("{} ORDER BY {order}", of_session(view)));
            assert_eq!(asked, columns(&format!("SELECT * FROM {view}")), "{view}");
        }
    }
}
