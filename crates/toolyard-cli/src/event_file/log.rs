//! A log that is written: opening, appending, and starting a new part.

use super::{
    ProtectedFile, failed,
    lock::{WriterLock, private},
    parts,
};
use crate::{display::json_text, error::Error, identity::Identity};
use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufWriter, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};
use toolyard::{Event, event::SCHEMA_VERSION};

/// The file that events are appended to.
#[derive(Debug)]
pub(super) struct Log {
    file: BufWriter<File>,
    /// How much it holds.
    bytes: u64,
    /// When to start a new one; never for what is no regular file.
    rotation: Option<Rotation>,
    /// Held until the program ends; there is none for what is no regular file.
    _lock: Option<WriterLock>,
}

/// When a file is full, and what it is called until then.
#[derive(Debug)]
struct Rotation {
    path: PathBuf,
    bytes_max: u64,
}

impl Log {
    /// Opens a log to append to it.
    pub(super) fn open(
        path: &Path,
        bytes_max: Option<u64>,
        protected: &[ProtectedFile],
    ) -> Result<Self, Error> {
        let failed = |error| failed(path, error);
        let refuse = |identity: Option<Identity>| {
            let found = identity.and_then(|identity| protected.iter().find(|file| file.identity == identity));
            found.map_or(Ok(()), |protected| Err(protected.refusal("--events ", path)))
        };
        match fs::metadata(path) {
            Ok(metadata) if !metadata.is_file() => return Self::pipe(path).map_err(failed),
            Ok(_) => refuse(Identity::of_path(path))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        // By whatever name it was called, a log has one lock.
        let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        // Before it is opened: a program that starts a new part must not find that somebody else has created it.
        let lock = WriterLock::take(&real)?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true);
        private(&mut options);
        let mut file = options.open(&real).map_err(failed)?;
        // The name may have come to lead elsewhere.
        refuse(Identity::of_open(&file, &real))?;
        let bytes = check(&mut file, path)?;
        let rotation = bytes_max.map(|bytes_max| Rotation { path: real, bytes_max });
        Ok(Self { file: BufWriter::new(file), bytes, rotation, _lock: Some(lock) })
    }

    /// A pipe or device, which several programs may share.
    fn pipe(path: &Path) -> io::Result<Self> {
        let file = BufWriter::new(OpenOptions::new().write(true).open(path)?);
        Ok(Self { file, bytes: 0, rotation: None, _lock: None })
    }

    /// Appends an event as one line.
    pub(super) fn append(&mut self, event: &Event) -> io::Result<()> {
        let text = serde_json::to_string(event)?;
        let line = json_text(&text);
        let bytes = line.len() as u64 + 1;
        if self.rotation.as_ref().is_some_and(|it| self.bytes > 0 && self.bytes + bytes > it.bytes_max) {
            self.rotate()?;
        }
        self.bytes += bytes;
        self.file.write_all(line.as_bytes())?;
        self.file.write_all(b"\n")
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }

    /// Keeps the file as a finished part, and starts a new one, which may be read by the same people.
    fn rotate(&mut self) -> io::Result<()> {
        let Some(Rotation { path, .. }) = &self.rotation else { return Ok(()) };
        self.file.flush()?;
        let permissions = self.file.get_ref().metadata()?.permissions();
        fs::rename(path, parts::next(path)?)?;
        let mut options = OpenOptions::new();
        options.append(true).create_new(true);
        private(&mut options);
        let file = options.open(path)?;
        file.set_permissions(permissions)?;
        (self.file, self.bytes) = (BufWriter::new(file), 0);
        Ok(())
    }
}

/// Checks that the file holds events, if anything, and ends a last line that breaks off. Returns its length.
fn check(file: &mut File, path: &Path) -> Result<u64, Error> {
    let read = |file: &mut File| {
        let bytes = file.metadata()?.len();
        let begin = format!("{{\"v\":{SCHEMA_VERSION},");
        let mut first = Vec::new();
        file.take(begin.len() as u64).read_to_end(&mut first)?;
        if !first.is_empty() && first != begin.as_bytes() {
            return Ok(None);
        }
        let mut last = Vec::new();
        file.seek(SeekFrom::Start(bytes.saturating_sub(1)))?;
        file.take(1).read_to_end(&mut last)?;
        match last.as_slice() {
            [] | [b'\n'] => Ok(Some(bytes)),
            _ => file.write_all(b"\n").map(|()| Some(bytes + 1)),
        }
    };
    let bytes = read(file).map_err(|error| failed(path, error))?;
    bytes.ok_or_else(|| {
        let why = "holds something other than events of this version: name another file";
        Error::Usage(format!("--events {} {why}", path.display()))
    })
}
