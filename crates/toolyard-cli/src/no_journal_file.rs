//! Journals, in a program that was built without the feature `journal`: it writes none.

use crate::{cli::JournalArgs, error::Error, setup::Setup};
use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};
use toolyard::{Engine, EngineBuilder};
use toolyard_agents::Recorded;

/// The journal of a run: none.
#[derive(Debug, Clone, Default)]
pub(crate) struct JournalFile {}

impl JournalFile {
    /// Opens none.
    ///
    /// # Errors
    /// [`Error::Usage`], if the arguments name one.
    pub(crate) async fn open(args: &JournalArgs, _: &Setup) -> Result<Self, Error> {
        match args.journal {
            None => Ok(Self {}),
            Some(_) => Err(Error::Usage(
                "--journal: this program has no journal: build it with the feature 'journal', which takes a C compiler: \
                 cargo install --path crates/toolyard-cli --features journal"
                    .to_owned(),
            )),
        }
    }

    /// There is none.
    pub(crate) fn is_open(&self) -> bool {
        false
    }

    /// Changes nothing.
    pub(crate) fn attach(&self, builder: EngineBuilder) -> EngineBuilder {
        builder
    }

    /// None.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Nothing.
    ///
    /// # Errors
    /// None.
    pub(crate) fn recorded(
        &self,
        _: &str,
        _: Arc<OnceLock<Engine>>,
    ) -> Result<Option<Arc<dyn Recorded>>, Error> {
        Ok(None)
    }

    /// Does nothing.
    ///
    /// # Errors
    /// None.
    pub(crate) async fn close(self) -> Result<(), Error> {
        Ok(())
    }
}
