//! The page of a run: gathers events while it runs, and is written when it has ended.

use crate::{
    display::json_text,
    error::Error,
    event_file::ProtectedFile,
    output_file::{self, failed},
};
use parking_lot::Mutex;
use std::{
    fs::File,
    io::{self, BufWriter},
    path::{Path, PathBuf},
    sync::Arc,
};
use toolyard::{Event, EventWriter};
use toolyard_page::Report;

/// A page that is written at the end of a run. It never keeps a call from running: it is no record.
#[derive(Debug, Clone)]
pub(crate) struct PageFile {
    path: PathBuf,
    page: Arc<Mutex<(Report, File)>>,
}

impl PageFile {
    /// Opens the file, and gathers events for it.
    ///
    /// # Errors
    /// Those of [`output_file::open`].
    pub(crate) fn open(path: &Path, title: String, protected: &[ProtectedFile]) -> Result<Self, Error> {
        let file = output_file::open("--report html=", path, protected)?;
        Ok(Self { path: path.to_owned(), page: Arc::new(Mutex::new((Report::new(title), file))) })
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the page, in place of what the file held.
    ///
    /// # Errors
    /// [`Error::Write`].
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let (report, file) = &mut *self.page.lock();
        write(report, file).map_err(|error| failed(&self.path, error))
    }
}

fn write(report: &Report, file: &File) -> io::Result<()> {
    // A pipe or a device has no length.
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    report.write(&mut BufWriter::new(file))
}

impl EventWriter for PageFile {
    fn write(&mut self, event: &Event) -> io::Result<()> {
        let text = serde_json::to_string(event)?;
        self.page.lock().0.add(&json_text(&text)).expect("an event is a JSON object");
        Ok(())
    }
}
