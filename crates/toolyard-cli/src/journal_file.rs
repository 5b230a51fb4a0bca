//! The journal that an engine of this program writes: what a crash must not lose.

use crate::{
    cli::{JournalArgs, Survives},
    error::{Error, chain},
    journal::Answers,
    setup::Setup,
};
use std::{
    io::{IsTerminal, stderr},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::task::spawn_blocking;
use toolyard::{Engine, EngineBuilder};
use toolyard_agents::Recorded;
use toolyard_journal::{Durability, Journal, JournalError, Settings};

/// The journal of a run, if it has one.
#[derive(Debug, Clone, Default)]
pub(crate) struct JournalFile(Option<Journal>);

impl JournalFile {
    /// Opens the journal that the arguments name, and keeps tools from writing it.
    ///
    /// # Errors
    /// [`Error::Usage`]: another program has it, it is none, or cannot be written.
    pub(crate) async fn open(args: &JournalArgs, setup: &Setup) -> Result<Self, Error> {
        let Some(file) = args.journal.clone() else { return Ok(Self(None)) };
        governed_by(&file).iter().for_each(|file| setup.guard(file));
        let durability = match args.durability {
            Survives::Full => Durability::Full,
            Survives::Process => Durability::Process,
        };
        let settings = Settings::default().durability(durability);
        let opened = spawn_blocking(move || opened(&file, settings)).await;
        match opened {
            Ok(Ok(journal)) => Ok(Self(Some(journal))),
            Ok(Err(error)) => Err(unusable(&error)),
            Err(error) => Err(Error::Usage(format!("--journal: {error}"))),
        }
    }

    /// Whether there is one.
    pub(crate) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Has the engine record in it.
    pub(crate) fn attach(&self, builder: EngineBuilder) -> EngineBuilder {
        match &self.0 {
            Some(journal) => builder.recorder(journal.clone()),
            None => builder,
        }
    }

    /// Its files, which no tool writes.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.0.as_ref().map(|journal| governed_by(journal.path())).unwrap_or_default()
    }

    /// What it has of the calls of agents in a session of this name, which nobody uses yet. The engine is that of this life,
    /// once it is built.
    ///
    /// # Errors
    /// [`Error::Usage`], if the journal cannot be read.
    pub(crate) fn recorded(
        &self,
        session: &str,
        engine: Arc<OnceLock<Engine>>,
    ) -> Result<Option<Arc<dyn Recorded>>, Error> {
        let Some(journal) = &self.0 else { return Ok(None) };
        let answers = Answers::of(journal.path(), session, engine).map_err(|error| unusable(&error))?;
        Ok(Some(Arc::new(answers)))
    }

    /// Writes what was given, and lets go of the file.
    ///
    /// # Errors
    /// [`Error::Usage`], if not all of it could be written.
    pub(crate) async fn close(self) -> Result<(), Error> {
        let Some(journal) = self.0 else { return Ok(()) };
        match spawn_blocking(move || journal.close()).await {
            Ok(closed) => closed.map_err(|error| unusable(&error)),
            Err(error) => Err(Error::Usage(format!("--journal: {error}"))),
        }
    }
}

/// Opens a journal, and says on a terminal for whom that waits.
fn opened(file: &Path, settings: Settings) -> Result<Journal, JournalError> {
    match Journal::open(file, settings.lock_wait(Duration::ZERO)) {
        Err(held @ (JournalError::Held { .. } | JournalError::StillRuns { .. })) => {
            if stderr().is_terminal() {
                anstream::eprintln!("toolyard: --journal: waiting for at most 10 s: {held}");
            }
            Journal::open(file, settings)
        }
        opened => opened,
    }
}

fn unusable(error: &JournalError) -> Error {
    Error::Usage(format!("--journal: {}", chain(error)))
}

/// The files of a journal.
fn governed_by(file: &Path) -> Vec<PathBuf> {
    let beside = |ending: &str| {
        let mut name = file.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    vec![file.to_owned(), beside(".lock"), beside(".programs"), beside("-wal"), beside("-shm")]
}
