//! The recorder as the engine holds it: its panics are caught, and what is waited for is a value.

use super::{Durable, RecordError, Recorder, records::is_plain_read};
use crate::tasks::{Caught, Contained, caught};
use futures::{
    FutureExt,
    future::{BoxFuture, Shared, ready},
};
use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use toolyard_core::{ToolSpec, event::Epoch};
use toolyard_redact::Redactor;

/// The recorder of an engine.
pub(crate) struct Recording {
    recorder: Contained<Arc<dyn Recorder>>,
    redactor: Option<Redactor>,
    outlives_engine: bool,
}

impl Recording {
    pub(crate) fn new(recorder: Arc<dyn Recorder>, redactor: Option<Redactor>) -> Self {
        let outlives_engine = caught(|| recorder.outlives_engine()).unwrap_or_else(|panic| {
            let what = "a recorder panicked when it was asked whether it outlives its engine";
            panic.log(what, None, redactor.as_ref());
            false
        });
        Self { recorder: Contained::new(recorder), redactor, outlives_engine }
    }

    /// Tells the recorder that the engine begins.
    pub(crate) fn begin(&self, epoch: Epoch) {
        if let Err(panic) = caught(|| self.recorder.begin(epoch)) {
            panic.log("a recorder panicked when its engine began", None, self.redactor.as_ref());
        }
    }

    /// Whether the recorder is given the attempts of calls of this tool that have this key.
    pub(crate) fn needs_attempts(&self, tool: &ToolSpec, key: Option<&str>) -> bool {
        // Where that cannot be said they are given.
        !is_plain_read(tool, key) || caught(|| self.recorder.needs_attempts_of_reads()).unwrap_or(true)
    }

    /// Reads what the recorder has of earlier lives of the engine. Callers must hold no lock: this is the embedder's code.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&dyn Recorder) -> Result<T, RecordError>,
    ) -> Result<T, RecordError> {
        caught(|| read(&**self.recorder)).unwrap_or_else(|panic| {
            panic.log(PANICKED, None, self.redactor.as_ref());
            Err(RecordError::new(PANICKED))
        })
    }

    /// Whether a drain suspends calls (SM-10).
    pub(crate) fn outlives_engine(&self) -> bool {
        self.outlives_engine
    }

    /// Gives a record; `None` if nothing has to wait for it. Callers must hold no lock: this is the embedder's code.
    pub(crate) fn give(&self, give: impl FnOnce(&dyn Recorder) -> Durable) -> Option<Pending> {
        let durable = match caught(|| give(&**self.recorder)) {
            Ok(Durable::Nothing) => return None,
            Ok(Durable::When(durable)) => durable,
            Err(panic) => {
                panic.log(PANICKED, None, self.redactor.as_ref());
                ready(Err(RecordError::new(PANICKED))).boxed()
            }
        };
        Some(Pending { durable: Caught::new(durable), redactor: self.redactor.clone() })
    }
}

/// What is said of a recorder that panics.
const PANICKED: &str = "the recorder panicked";

/// A record that was given and is not known to be durable.
pub(crate) struct Pending {
    durable: Caught<BoxFuture<'static, Result<(), RecordError>>>,
    redactor: Option<Redactor>,
}

impl Future for Pending {
    type Output = Result<(), RecordError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.durable).poll(cx).map(|durable| {
            durable.unwrap_or_else(|panic| {
                panic.log(PANICKED, None, self.redactor.as_ref());
                Err(RecordError::new(PANICKED))
            })
        })
    }
}

/// The same, for several that wait for it.
type SharedPending = Shared<Pending>;

/// What calls build on: the records of their session, the forks above them, and their batch.
#[derive(Clone, Default)]
pub(crate) struct Foundation(Vec<SharedPending>);

impl Foundation {
    /// Whether it is nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// This record alone, if there is one.
    pub(crate) fn of(pending: Option<Pending>) -> Self {
        Self(pending.map(FutureExt::shared).into_iter().collect())
    }

    /// This, and another record. What is durable is left out, and the oldest of what would be too much: it was given
    /// before the rest, and is durable before it.
    pub(crate) fn and(&self, pending: Option<Pending>) -> Self {
        let is_open = |known: &&SharedPending| !matches!(known.peek(), Some(Ok(())));
        let mut all: Vec<_> = self.0.iter().filter(is_open).cloned().collect();
        all.extend(pending.map(FutureExt::shared));
        all.drain(..all.len().saturating_sub(FOUNDATION_MAX));
        Self(all)
    }

    /// What of it is neither durable nor known to have failed.
    pub(crate) fn open(&self) -> Self {
        Self(self.0.iter().filter(|known| known.peek().is_none()).cloned().collect())
    }

    /// All of it as one record; `None` if it is durable.
    pub(crate) fn pending(self) -> Option<Pending> {
        let durable = self.and(None);
        let is_open = !durable.0.is_empty();
        is_open.then(|| Pending { durable: Caught::new(durable.durable().boxed()), redactor: None })
    }

    /// Waits until all of it is durable.
    pub(crate) async fn durable(self) -> Result<(), RecordError> {
        for pending in self.0 {
            pending.await?;
        }
        Ok(())
    }
}

/// How many records one foundation has, at most.
const FOUNDATION_MAX: usize = 1024;
