//! The file of `--record`: how the calls of real tools ended, with the outputs and errors as results have them.

use super::{
    StandIns,
    entry::{Entry, LINE_BYTES_MAX, Line, VERSION, digits},
    key::Counted,
};
use crate::{error::Error, event_file::ProtectedFile, identity::Identity, output_file};
use parking_lot::Mutex;
use serde_json::Value;
use std::{
    fs::{self, File, TryLockError},
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::Arc,
};
use toolyard::{Arguments, Call, Effect, ErrorKind, Outcome, Redactor, SessionId, ToolSpec};

const OPTION: &str = "--record ";

/// A record, held until it is dropped. The first error is kept for the end; it keeps no call from running.
#[derive(Debug, Clone)]
pub(crate) struct RecordFile {
    path: PathBuf,
    written: Arc<Mutex<Written>>,
}

#[derive(Debug)]
struct Written {
    /// Its lock ends when it is closed.
    file: File,
    /// How much of what it holds is kept.
    kept: u64,
    /// The number of calls whose lines would have been too long.
    too_long: u64,
    error: Option<io::Error>,
}

impl RecordFile {
    /// Opens the file, readable by its owner only if it is new. `goes_on` keeps what it holds, up to a line that breaks off:
    /// of two lines for one call, the later one counts. Otherwise it begins anew. Nothing is changed before
    /// [`begin`](Self::begin), so that a run that comes to nothing leaves an earlier record.
    ///
    /// # Errors
    /// [`Error::Usage`] if it is a protected file, not a regular one or not a record, or if another program writes it;
    /// [`Error::Write`] if it cannot be opened.
    pub(crate) fn open(path: &Path, goes_on: bool, protected: &[ProtectedFile]) -> Result<Self, Error> {
        let known = Identity::of_path(path);
        if let Some(file) = protected.iter().find(|file| Some(&file.identity) == known.as_ref()) {
            return Err(file.refusal(OPTION, path));
        }
        // Asked before it is opened: opening a pipe waits for its reader.
        if fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()) {
            return Err(refusal(path, "it is no regular file: name another file"));
        }
        let file = output_file::open(OPTION, path, protected)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(refusal(
                    path,
                    "another program writes it: wait for its end, or name another file",
                ));
            }
            Err(TryLockError::Error(error)) => return Err(output_file::failed(path, error)),
        }
        let failed = |error| output_file::failed(path, error);
        let whole = whole(path).map_err(failed)?.ok_or_else(|| {
            refusal(path, "it holds something other than a record: name another file, or remove it")
        })?;
        let kept = if goes_on { whole } else { 0 };
        let written = Written { file, kept, too_long: 0, error: None };
        Ok(Self { path: path.to_owned(), written: Arc::new(Mutex::new(written)) })
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Begins to write, with the declarations of tools that are not of this program.
    pub(crate) fn begin(&self, specs: impl Iterator<Item = ToolSpec>) {
        let kept = {
            let mut written = self.written.lock();
            let kept = written.kept;
            let cut = written.file.set_len(kept).and_then(|()| written.file.seek(SeekFrom::Start(kept)));
            written.error = cut.err();
            kept
        };
        let version = (kept == 0).then_some(Line::Version { toolyard_record: VERSION });
        let declared = specs.map(|spec| Line::Declares { declares: Box::new(spec) });
        self.write(&version.into_iter().chain(declared).collect::<Vec<_>>());
    }

    /// Writes how the calls of a turn ended. After an interrupt, only those that it has not reached.
    /// The arguments of an outcome have no secrets, and so are not enough to tell calls apart.
    pub(crate) fn turn<'a>(
        &self,
        of: &StandIns,
        (session, turn): (&SessionId, u64),
        ends: impl Iterator<Item = (&'a Call, &'a Outcome)>,
        redactor: &Redactor,
        is_interrupted: bool,
    ) {
        let ((episode, turn), mut counted) = (of.episode(session, turn), Counted::default());
        let mut lines = Vec::new();
        for (call, outcome) in ends {
            let (hash, occurrence) = counted.add(&call.name, &call.arguments);
            let is_touched = is_interrupted && (!outcome.success() || outcome.cancel_requested);
            if is_touched || of.is_mock(&outcome.tool) || is_decided_before(outcome) {
                continue;
            }
            let arguments = match &call.arguments {
                Arguments::Json(value) => value.as_ref().clone(),
                Arguments::Text(text) => serde_json::from_str(text).unwrap_or(Value::Null),
            };
            lines.push(Line::Call(Box::new(Entry {
                episode: episode.id.to_string(),
                episode_number: episode.number,
                turn,
                tool: outcome.tool.to_string(),
                arguments: redactor.value(&arguments).into_owned(),
                digest: Some(digits(&hash)),
                occurrence,
                attempts: outcome.attempts,
                ms: outcome.ran().as_secs_f64() * 1000.0,
                output: outcome.status.as_ref().ok().cloned(),
                error: outcome.error().cloned(),
            })));
        }
        self.write(&lines);
    }

    fn write(&self, lines: &[Line]) {
        let mut written = self.written.lock();
        if written.error.is_some() || lines.is_empty() {
            return;
        }
        let mut text = Vec::new();
        for line in lines {
            let before = text.len();
            // A line of these has a JSON form, and writing to memory does not fail.
            if serde_json::to_writer(&mut text, line).is_err() || text.len() - before >= LINE_BYTES_MAX {
                text.truncate(before);
                written.too_long += 1;
                continue;
            }
            text.push(b'\n');
        }
        written.error = written.file.write_all(&text).err();
    }

    /// Returns the first error, if any.
    ///
    /// # Errors
    /// [`Error::Write`] if it could not be written, or not all of it.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let mut written = self.written.lock();
        let error = written.error.take().or_else(|| {
            let count = std::mem::take(&mut written.too_long);
            let why = format!("{count} calls have more than {} MiB, and are not in it", LINE_BYTES_MAX >> 20);
            (count > 0).then(|| io::Error::other(why))
        });
        error.map_or(Ok(()), |error| Err(output_file::failed(&self.path, error)))
    }
}

/// The length of the whole lines of a record; `None` if the file is none. Nothing at all is the beginning of one.
fn whole(path: &Path) -> io::Result<Option<u64>> {
    const HEAD_BYTES_MAX: u64 = 256;
    let mut reader = BufReader::new(File::open(path)?);
    let mut head = Vec::new();
    reader.by_ref().take(HEAD_BYTES_MAX).read_until(b'\n', &mut head)?;
    if head.is_empty() {
        return Ok(Some(0));
    }
    if !matches!(serde_json::from_slice(&head), Ok(Line::Version { .. })) {
        return Ok(None);
    }
    let (mut read, mut whole) =
        (head.len() as u64, if head.ends_with(b"\n") { head.len() as u64 } else { 0 });
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            return Ok(Some(whole));
        }
        let length = chunk.len();
        if let Some(at) = chunk.iter().rposition(|byte| *byte == b'\n') {
            whole = read + at as u64 + 1;
        }
        read += length as u64;
        reader.consume(length);
    }
}

/// Whether the engine has decided before any tool was asked, as it will again: then there is no result of a tool. What it
/// decided by the time, by what else ran, or by keys, which calls have none of in a replay, is recorded, because it may
/// decide otherwise another time.
fn is_decided_before(outcome: &Outcome) -> bool {
    use ErrorKind::{
        AlreadyExecuted, CircuitOpen, DeadlineExceeded, KeyInProgress, KeyMismatch, Overloaded, QueueTimeout,
        RateLimited, SandboxError, Timeout,
    };
    const BY_TIME: [ErrorKind; 10] = [
        AlreadyExecuted,
        CircuitOpen,
        DeadlineExceeded,
        KeyInProgress,
        KeyMismatch,
        Overloaded,
        QueueTimeout,
        RateLimited,
        SandboxError,
        Timeout,
    ];
    let Some(error) = outcome.error() else { return false };
    error.effect == Effect::NotStarted && !BY_TIME.contains(&error.kind)
}

fn refusal(path: &Path, why: &str) -> Error {
    Error::Usage(format!("{OPTION}{}: {why}", path.display()))
}
