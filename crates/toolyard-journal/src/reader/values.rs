//! Values of a row. What cannot be one is an error, never a panic: a file may be damaged, or changed by others.

use crate::{error::JournalError, stamp::time};
use rusqlite::Row;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::{path::Path, time::SystemTime};
use toolyard::AgentPath;

/// Why a row cannot be read.
pub(crate) enum Fault {
    Sql(rusqlite::Error),
    Content(JournalError),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<JournalError> for Fault {
    fn from(error: JournalError) -> Self {
        Self::Content(error)
    }
}

impl Fault {
    pub(crate) fn at(self, path: &Path) -> JournalError {
        match self {
            // A column of another type than its own.
            Self::Sql(
                error @ (rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..)),
            ) => JournalError::Content { path: path.to_owned(), what: error.to_string() },
            Self::Sql(error) => JournalError::sqlite(path, "reading the journal")(error),
            Self::Content(error) => error,
        }
    }
}

/// The journal whose rows are read.
#[derive(Clone, Copy)]
pub(crate) struct At<'a>(pub(crate) &'a Path);

impl At<'_> {
    pub(crate) fn wrong(self, what: String) -> JournalError {
        JournalError::Content { path: self.0.to_owned(), what }
    }

    pub(crate) fn json<T: DeserializeOwned>(self, text: &str) -> Result<T, JournalError> {
        serde_json::from_str(text)
            .map_err(|error| self.wrong(format!("a column has JSON that cannot be read ({error})")))
    }

    /// The value that this word stands for.
    pub(crate) fn word<T: DeserializeOwned>(self, word: &str) -> Result<T, JournalError> {
        serde_json::from_value(Value::from(word))
            .map_err(|_| self.wrong(format!("'{word}' is none of the words known here")))
    }

    pub(crate) fn number<T: TryFrom<i64>>(self, number: i64) -> Result<T, JournalError> {
        T::try_from(number).map_err(|_| self.wrong(format!("a number is {number}, which it cannot be")))
    }
}

pub(crate) fn number<T: TryFrom<i64>>(row: &Row<'_>, column: usize, at: At<'_>) -> Result<T, Fault> {
    Ok(at.number(row.get(column)?)?)
}

pub(crate) fn maybe<T: TryFrom<i64>>(row: &Row<'_>, column: usize, at: At<'_>) -> Result<Option<T>, Fault> {
    Ok(row.get::<_, Option<i64>>(column)?.map(|number| at.number(number)).transpose()?)
}

pub(crate) fn value<T: DeserializeOwned>(row: &Row<'_>, column: usize, at: At<'_>) -> Result<T, Fault> {
    Ok(at.json(row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?)?)
}

pub(crate) fn word<T: DeserializeOwned>(row: &Row<'_>, column: usize, at: At<'_>) -> Result<T, Fault> {
    Ok(at.word(row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?)?)
}

pub(crate) fn time_of(row: &Row<'_>, column: usize) -> Result<SystemTime, Fault> {
    Ok(time(row.get(column)?))
}

pub(crate) fn agent(row: &Row<'_>, column: usize) -> Result<AgentPath, Fault> {
    Ok(AgentPath::from(row.get::<_, String>(column)?.as_str()))
}
