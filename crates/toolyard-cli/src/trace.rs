//! The trace of a run, in Chrome's trace event format, for ui.perfetto.dev and chrome://tracing.
//!
//! ```text
//!   an agent of a session is a process; its calls that are open side by side lie on lanes, which are threads
//!
//!   lane 1  ├ read_file ─────────────────────────────────┤
//!           ├ earlier calls ┤├ queued ┤ ├ attempt 1 ┤      and a flow leads from `queued` to the attempt
//! ```

mod array;
mod open_call;
mod scene;

use crate::{
    error::Error,
    event_file::ProtectedFile,
    output_file::{self, failed},
};
use array::JsonArray;
use parking_lot::Mutex;
use scene::Scene;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolyard::{Event, EventWriter};

/// A trace that is written while the run goes on. It never keeps a call from running: it is no record.
#[derive(Debug, Clone)]
pub(crate) struct TraceFile {
    path: PathBuf,
    trace: Arc<Mutex<Trace>>,
}

#[derive(Debug)]
struct Trace {
    scene: Scene,
    array: JsonArray,
    /// The first error, kept for the end.
    error: Option<io::Error>,
}

impl TraceFile {
    /// Opens the file, and writes an empty trace.
    ///
    /// # Errors
    /// Those of [`output_file::open`]; [`Error::Write`].
    pub(crate) fn open(path: &Path, protected: &[ProtectedFile]) -> Result<Self, Error> {
        let file = output_file::open("--trace ", path, protected)?;
        let array = JsonArray::begin(file).map_err(|error| failed(path, error))?;
        let trace = Trace { scene: Scene::default(), array, error: None };
        Ok(Self { path: path.to_owned(), trace: Arc::new(Mutex::new(trace)) })
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the rest, also of calls that have not ended.
    ///
    /// # Errors
    /// [`Error::Write`] with the first error.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let mut trace = self.trace.lock();
        let rest = trace.scene.close();
        trace.array.push(rest);
        trace.attempt(JsonArray::end);
        trace.error.take().map_or(Ok(()), |error| Err(failed(&self.path, error)))
    }
}

impl Trace {
    fn attempt(&mut self, work: impl FnOnce(&mut JsonArray) -> io::Result<()>) {
        if self.error.is_none() {
            self.error = work(&mut self.array).err();
        }
    }
}

impl EventWriter for TraceFile {
    fn write(&mut self, event: &Event) -> io::Result<()> {
        let mut trace = self.trace.lock();
        let items = trace.scene.read(event);
        trace.array.push(items);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.trace.lock().attempt(JsonArray::save);
        Ok(())
    }
}
