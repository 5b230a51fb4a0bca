//! A journal in a directory of its own, and engines that have it as their recorder.

use std::path::PathBuf;
use tempfile::TempDir;
use toolyard::{Confirmations, Engine, EngineBuilder, ToolContext, ToolOutput, ToolSpec, tool_fn};
use toolyard_journal::{CallState, EndRow, Journal, Reader, Settings, Turn};

pub(crate) struct Scene {
    directory: TempDir,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().join("agent.journal")
    }

    pub(crate) fn open(&self) -> Journal {
        Journal::open(self.path(), Settings::default()).unwrap()
    }

    pub(crate) fn reader(&self) -> Reader {
        Reader::open(self.path()).unwrap()
    }

    pub(crate) fn turn(&self, number: u64) -> Turn {
        self.reader().turn("demo", number).unwrap().unwrap()
    }

    pub(crate) fn sql(&self) -> rusqlite::Connection {
        let db = rusqlite::Connection::open(self.path()).unwrap();
        db.busy_timeout(std::time::Duration::from_secs(10)).unwrap();
        db
    }
}

/// An engine with tools that write (`save`) and read (`look`), to which more can be added.
pub(crate) fn engine(journal: &Journal) -> EngineBuilder {
    let save = tool_fn(ToolSpec::write("save"), |(): (), _: ToolContext| async { Ok("saved") });
    let look = tool_fn(ToolSpec::read("look"), |(): (), _: ToolContext| async { Ok("seen") });
    let confirmations = Confirmations::auto();
    Engine::builder().tool(save).tool(look).confirmations(confirmations).recorder(journal.clone())
}

/// The end of a call, which it has.
pub(crate) fn end(state: &CallState) -> &EndRow {
    match state {
        CallState::Ended(end) => end,
        other => panic!("the call has not ended: {other:?}"),
    }
}

/// The text of its output.
pub(crate) fn text(state: &CallState) -> String {
    end(state).status.as_ref().map(ToolOutput::to_text).unwrap()
}
