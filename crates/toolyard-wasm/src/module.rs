//! A compiled module, ready to be run.

use crate::{
    ended::{Broken, Ended},
    guest::Guest,
    run::Run,
    runtime::Inner,
};
use std::{fmt, future, io, sync::Arc};
use wasmtime::{ExternType, InstancePre, Module as Code, component::Component};
use wasmtime_wasi::p2::bindings::CommandPre;

/// What every binary form begins with; the next four bytes say which form it is.
const MAGIC: [u8; 4] = *b"\0asm";
/// A module: version 1.
const MODULE: [u8; 4] = [1, 0, 0, 0];

/// What cannot be run as a module.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
    /// It is in no binary form of WebAssembly.
    #[error("it is no WebAssembly module: it does not begin like one")]
    NoModule,
    /// It is broken, or uses a feature that is not supported.
    #[error("it is no valid WebAssembly module: {0}")]
    Invalid(String),
    /// It is no command.
    #[error("it is no command: {0}")]
    NoCommand(String),
    /// It imports what no module is given.
    #[error("it needs what no module is given here: {0}")]
    Import(String),
}

/// A module or a component that was compiled. Clones share it.
#[derive(Clone)]
pub struct Module(Arc<Loaded>);

pub(crate) struct Loaded {
    pub(crate) runtime: Arc<Inner>,
    pub(crate) code: Prepared,
}

/// Compiled, with its imports resolved: all that a call still needs is an instance.
pub(crate) enum Prepared {
    /// A command of preview 1.
    Command(InstancePre<Guest>),
    /// A component of preview 2.
    Component(CommandPre<Guest>),
}

impl Module {
    pub(crate) fn new(runtime: &Arc<Inner>, bytes: &[u8]) -> Result<Self, LoadError> {
        let code = match bytes.strip_prefix(&MAGIC) {
            None => return Err(LoadError::NoModule),
            Some(rest) if rest.starts_with(&MODULE) => command(runtime, bytes)?,
            Some(_) => component(runtime, bytes)?,
        };
        Ok(Self(Arc::new(Loaded { runtime: runtime.clone(), code })))
    }

    /// Runs it once, from its beginning, until it ends or runs into a limit.
    ///
    /// # Errors
    /// [`Broken`] if the runtime failed rather than the module.
    ///
    /// # Panics
    /// Outside a tokio runtime; one without a timer if the run has a limit of wall time, or the guest sleeps.
    ///
    /// # Cancel safety
    /// Dropping the future ends the guest; nothing of it runs on. What it had printed is lost: to have it, use
    /// [`run_until`](Self::run_until).
    pub async fn run(&self, run: Run) -> Result<Ended, Broken> {
        self.run_until(run, future::pending()).await
    }

    /// Runs it as [`run`](Self::run) does, and stops it when `stop` is done: what it has printed by then is in the
    /// [`Ended`].
    ///
    /// # Errors
    /// [`Broken`] if the runtime failed rather than the module.
    ///
    /// # Panics
    /// As [`run`](Self::run).
    ///
    /// # Cancel safety
    /// As [`run`](Self::run).
    pub async fn run_until(&self, run: Run, stop: impl Future<Output = ()> + Send) -> Result<Ended, Broken> {
        crate::call::run(&self.0, run, stop).await
    }
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").finish_non_exhaustive()
    }
}

fn command(runtime: &Inner, bytes: &[u8]) -> Result<Prepared, LoadError> {
    let code = Code::from_binary(&runtime.engine, bytes).map_err(invalid)?;
    let is_start = |export| matches!(export, ExternType::Func(start) if start.params().len() + start.results().len() == 0);
    if !code.get_export("_start").is_some_and(is_start) {
        return Err(LoadError::NoCommand("it exports no function '_start'".to_owned()));
    }
    let prepared = runtime.commands.instantiate_pre(&code);
    Ok(Prepared::Command(prepared.map_err(|error| LoadError::Import(format!("{error:#}")))?))
}

fn component(runtime: &Inner, bytes: &[u8]) -> Result<Prepared, LoadError> {
    let code = Component::from_binary(&runtime.engine, bytes).map_err(invalid)?;
    let prepared = runtime.components.instantiate_pre(&code);
    let prepared = prepared.map_err(|error| LoadError::Import(format!("{error:#}")))?;
    let command = CommandPre::new(prepared);
    Ok(Prepared::Component(command.map_err(|error| LoadError::NoCommand(format!("{error:#}")))?))
}

fn invalid(error: wasmtime::Error) -> LoadError {
    LoadError::Invalid(format!("{error:#}"))
}
