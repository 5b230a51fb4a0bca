//! The file of `--replay`: the results of an earlier run, given again. No tool runs.
//!
//! ```text
//!   opened: every line is read and checked; what is kept of a call is where its line lies
//!   a call: its key ─► the line, read again ─► output, or an error that becomes whole when the turn has ended
//! ```

use super::{
    backend::pause,
    entry::{Entry, LINE_BYTES_MAX, Line, VERSION},
    key::{CallKey, Hash},
};
use crate::error::Error;
use parking_lot::Mutex;
use std::{
    collections::HashMap,
    fs::File,
    io::{self, BufRead, BufReader, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::task::spawn_blocking;
use toolyard::{
    CallError, ErrorKind, Outcome, SessionId, ToolContext, ToolError, ToolErrorKind, ToolOutput, ToolSpec,
};

/// The results of an earlier run.
#[derive(Debug)]
pub(crate) struct Replay {
    path: PathBuf,
    /// Whether calls take as long as they did.
    keeps_latency: bool,
    file: Arc<Mutex<File>>,
    lines: HashMap<Hash, Place>,
    declared: Vec<ToolSpec>,
    is_cut: bool,
    /// By turn, the calls that were answered.
    answered: Mutex<HashMap<(SessionId, u64), Vec<Answered>>>,
}

/// How a call ended then.
#[derive(Debug)]
struct Answered {
    index: u32,
    attempts: u32,
    end: End,
}

#[derive(Debug)]
enum End {
    Error(CallError),
    /// An output, if calls take their time: then one may be cut off that was not.
    Output(Option<ToolOutput>),
}

/// Where a line lies.
#[derive(Debug, Clone, Copy)]
struct Place {
    at: u64,
    bytes: usize,
}

impl Replay {
    /// Reads a file, all of it once. A last line that breaks off is left out.
    ///
    /// # Errors
    /// [`Error::Usage`] if it cannot be read, or is no record.
    pub(crate) fn open(path: &Path, keeps_latency: bool) -> Result<Self, Error> {
        let refused = |why: String| Error::Usage(format!("--replay {}: {why}", path.display()));
        let unreadable = |error: io::Error| refused(format!("cannot be read: {error}"));
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(refused("it is no regular file".to_owned()));
        }
        let file = File::open(path).map_err(unreadable)?;
        let mut replay = Self {
            path: path.to_owned(),
            keeps_latency,
            lines: HashMap::new(),
            declared: Vec::new(),
            is_cut: false,
            answered: Mutex::default(),
            file: Arc::new(Mutex::new(file.try_clone().map_err(unreadable)?)),
        };
        replay.read(BufReader::new(file)).map_err(refused)?;
        Ok(replay)
    }

    fn read(&mut self, mut reader: BufReader<File>) -> Result<(), String> {
        let (mut at, mut number, mut line) = (0_u64, 0_u64, Vec::new());
        loop {
            line.clear();
            let bytes = reader.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
            let bytes = bytes.map_err(|error| format!("cannot be read: {error}"))?;
            number += 1;
            if bytes == 0 {
                return if number == 1 { Err("it is empty".to_owned()) } else { Ok(()) };
            }
            if bytes > LINE_BYTES_MAX {
                return Err(format!("line {number} is longer than {} MiB", LINE_BYTES_MAX >> 20));
            }
            match self.take(&line, number, Place { at, bytes }) {
                Err(_) if number > 1 && !line.ends_with(b"\n") => {
                    self.is_cut = true;
                    return Ok(());
                }
                taken => taken.map_err(|why| format!("line {number}: {why}"))?,
            }
            at += bytes as u64;
        }
    }

    fn take(&mut self, line: &[u8], number: u64, place: Place) -> Result<(), String> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        match (serde_json::from_slice(line), number) {
            (Ok(Line::Version { toolyard_record: VERSION }), _) => {}
            (Ok(Line::Version { toolyard_record }), _) => {
                return Err(format!(
                    "version {toolyard_record} of the format is not known: use a newer toolyard"
                ));
            }
            (_, 1) => {
                return Err("it is not what --record writes, which begins with toolyard_record".to_owned());
            }
            (Ok(Line::Declares { declares }), _) => {
                self.declared.retain(|known| known.name != declares.name);
                self.declared.push(*declares);
            }
            (Ok(Line::Call(entry)), _) => drop(self.lines.insert(entry.key()?.hash(), place)),
            (Err(error), _) if error.is_data() => {
                return Err("it is no call, and declares no tool".to_owned());
            }
            (Err(error), _) => return Err(error.to_string()),
        }
        Ok(())
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The tools that the earlier run had from servers.
    pub(crate) fn declared(&self) -> &[ToolSpec] {
        &self.declared
    }

    /// What is to be told of the file, if it is not whole.
    pub(crate) fn remark(&self) -> Option<String> {
        let file = self.path.display();
        self.is_cut.then(|| format!("--replay {file}: the last line breaks off, and is left out"))
    }

    /// The result of a call. It may be asked for again: an attempt has no part in the key.
    pub(super) fn answer<'a>(
        self: &Arc<Self>,
        key: CallKey,
        cx: &'a ToolContext,
    ) -> impl Future<Output = Result<ToolOutput, ToolError>> + Send + use<'a> {
        let replay = self.clone();
        async move {
            let entry = replay.entry(&key).await?;
            let (turn, index) = ((cx.session().clone(), cx.turn()), cx.place().1);
            let end = match &entry.error {
                Some(error) => End::Error(error.clone()),
                None => End::Output(entry.output.clone().filter(|_| replay.keeps_latency)),
            };
            let answered = Answered { index, attempts: entry.attempts, end };
            replay.answered.lock().entry(turn).or_default().push(answered);
            if replay.keeps_latency {
                pause(cx, latency(entry.ms)).await?;
            }
            match (entry.output, entry.error) {
                (Some(output), _) => Ok(output),
                (None, Some(error)) => Err(ToolError::new(kind(error.kind), error.message)),
                (None, None) => Err(ToolError::execution("the record has no result of this call")),
            }
        }
    }

    async fn entry(&self, key: &CallKey) -> Result<Entry, ToolError> {
        let place = *self.lines.get(&key.hash()).ok_or_else(|| self.missing(key))?;
        let file = self.file.clone();
        let read = spawn_blocking(move || {
            let mut line = vec![0; place.bytes];
            let mut file = file.lock();
            file.seek(SeekFrom::Start(place.at))?;
            file.read_exact(&mut line)?;
            drop(file);
            match serde_json::from_slice(&line)? {
                Line::Call(entry) => Ok(*entry),
                _ => Err(io::Error::other("it has changed meanwhile")),
            }
        });
        let read = read.await.map_err(io::Error::other).flatten();
        read.map_err(|error| ToolError::execution(format!("--replay {}: {error}", self.path.display())))
    }

    fn missing(&self, key: &CallKey) -> ToolError {
        let CallKey { episode, turn, tool, occurrence, .. } = key;
        let number = if episode.number == 1 {
            String::new()
        } else {
            format!(" (number {} of this id)", episode.number)
        };
        let which =
            if *occurrence == 1 { String::new() } else { format!(", number {occurrence} of equal calls") };
        ToolError::execution(format!(
            "--replay {}: no result is recorded of this call, '{tool}' with these arguments in turn {turn} of episode \
             '{}'{number}{which}: record it again with --record",
            self.path.display(),
            episode.id
        ))
    }

    /// Gives answered calls the ends that they had: errors whole, with the number of attempts. What was cancelled meanwhile
    /// stays as it is.
    pub(super) fn restore(&self, session: &SessionId, turn: u64, outcomes: &mut [Outcome]) {
        let Some(answered) = self.answered.lock().remove(&(session.clone(), turn)) else { return };
        for Answered { index, attempts, end } in answered {
            let Some(outcome) = outcomes.get_mut(index as usize) else { continue };
            if outcome.cancel_requested {
                continue;
            }
            match end {
                End::Error(error) => outcome.status = Err(Box::new(error)),
                End::Output(Some(output)) if !outcome.success() => outcome.status = Ok(output),
                End::Output(_) if !outcome.success() => continue,
                End::Output(_) => {}
            }
            outcome.attempts = attempts;
        }
    }
}

fn latency(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms / 1000.0).unwrap_or_default()
}

/// The kind that a tool may choose which is nearest: until the turn has ended, and in events.
fn kind(kind: ErrorKind) -> ToolErrorKind {
    match kind {
        ErrorKind::Transient => ToolErrorKind::Transient,
        ErrorKind::RateLimited => ToolErrorKind::RateLimited,
        ErrorKind::InvalidInput => ToolErrorKind::InvalidInput,
        ErrorKind::PermissionDenied => ToolErrorKind::PermissionDenied,
        ErrorKind::FsDenied => ToolErrorKind::FsDenied,
        ErrorKind::OutputInvalid => ToolErrorKind::OutputInvalid,
        ErrorKind::OutputTooLarge => ToolErrorKind::OutputTooLarge,
        ErrorKind::Timeout => ToolErrorKind::Timeout,
        _ => ToolErrorKind::Execution,
    }
}
