//! A file with every event, as JSON lines. It is never shortened: events are appended, and a file that has grown to its
//! bound is renamed and kept.
//!
//! ```text
//!   log.jsonl.1   log.jsonl.2   log.jsonl      the parts of a log, oldest first
//!   log.jsonl.lock                             held by the one program that writes it, and names it
//! ```

pub(crate) mod lock;
mod log;
pub(crate) mod parts;

use crate::{cli::EventsArgs, error::Error, identity::Identity};
use log::Log;
use parking_lot::Mutex;
use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};
use toolyard::{Event, EventWriter};

/// Replaced in the name of the file by the number of this process.
const PID: &str = "{pid}";

/// A file that the program reads and that events must not go into.
#[derive(Debug)]
pub(crate) struct ProtectedFile {
    /// Its role, for the error message.
    pub(crate) what: &'static str,
    /// Its identity.
    pub(crate) identity: Identity,
}

impl ProtectedFile {
    /// The error for an option that names this file.
    pub(crate) fn refusal(&self, option: &str, path: &Path) -> Error {
        let (path, what) = (path.display(), self.what);
        Error::Usage(format!("{option}{path} would write into {what}: name another file"))
    }
}

/// An event file. The first error is kept for the end; from then on, only calls without side effects run (PO-6).
#[derive(Debug, Clone)]
pub(crate) struct EventFile {
    path: PathBuf,
    log: Arc<Mutex<LogUntilError>>,
}

#[derive(Debug)]
struct LogUntilError {
    log: Log,
    error: Option<io::Error>,
}

impl LogUntilError {
    /// Works on the log, unless an earlier attempt failed.
    fn attempt(&mut self, work: impl FnOnce(&mut Log) -> io::Result<()>) -> io::Result<()> {
        if self.error.is_none() {
            self.error = work(&mut self.log).err();
        }
        self.error.as_ref().map_or(Ok(()), |error| Err(error.kind().into()))
    }
}

impl EventFile {
    /// Opens the file that the arguments name, if they name one.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub(crate) fn of(args: &EventsArgs, protected: &[ProtectedFile]) -> Result<Option<Self>, Error> {
        let Some(path) = &args.events else { return Ok(None) };
        let path = match path.to_str() {
            Some(text) => PathBuf::from(text.replace(PID, &std::process::id().to_string())),
            None => path.clone(),
        };
        Self::open(&path, args.events_max_bytes, protected).map(Some)
    }

    /// Opens the file to append to it, and holds it until the program ends. With `bytes_max`, the file is renamed
    /// before it would grow beyond that, and a new one is started.
    ///
    /// # Errors
    /// [`Error::Usage`] if the path leads to a protected file, whatever its name, if it holds something other than
    /// events, or if another program writes it; the file is then left untouched. [`Error::Write`] if it cannot be
    /// opened.
    pub(crate) fn open(
        path: &Path,
        bytes_max: Option<u64>,
        protected: &[ProtectedFile],
    ) -> Result<Self, Error> {
        let log = Log::open(path, bytes_max, protected)?;
        Ok(Self { path: path.to_owned(), log: Arc::new(Mutex::new(LogUntilError { log, error: None })) })
    }

    /// Where it lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the rest, and returns the first error, if any.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let mut log = self.log.lock();
        let _ = log.attempt(Log::flush); // an error is kept in `log`
        log.error.take().map_or(Ok(()), |error| Err(failed(&self.path, error)))
    }
}

fn failed(path: &Path, error: io::Error) -> Error {
    Error::Write { what: format!("events to {}", path.display()), error }
}

impl EventWriter for EventFile {
    fn write(&mut self, event: &Event) -> io::Result<()> {
        self.log.lock().attempt(|log| log.append(event))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.log.lock().attempt(Log::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::{fs, time::Duration};
    use toolyard::{
        BreakerPolicy, Call, Drain, Engine, RetryPolicy, ToolContext, ToolError, ToolSpec, tool_fn,
    };

    /// The values of these fields.
    fn fields(event: &Value, keys: &[&str]) -> Vec<Value> {
        keys.iter().map(|key| event[key].clone()).collect()
    }

    /// OB-1, OB-2, CB-10: attempts, retries and breaker transitions are in the file with their fields.
    #[tokio::test(start_paused = true)]
    async fn attempts_and_moves_of_breakers_are_in_the_file() {
        let path = std::env::temp_dir().join(format!("toolyard-events-{}.jsonl", std::process::id()));
        let events = EventFile::open(&path, None, &[]).unwrap();
        let flaky = tool_fn(ToolSpec::read("flaky").backend("api"), |(): (), _: ToolContext| async {
            Err::<(), _>(ToolError::transient("HTTP 503"))
        });
        let second = Duration::from_secs(1);
        let engine = Engine::builder()
            .tool(flaky)
            .retry(RetryPolicy::default().with_delays(second, 1.0, second))
            .breaker(BreakerPolicy::default().with_consecutive(2))
            .event_writer(events.clone());
        let engine = engine.build().await.unwrap();
        engine.session("run").call(Call::new("a", "flaky", "{}")).await;
        engine.shutdown(Drain::default()).await;
        events.finish().unwrap();
        let lines = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::remove_file(path.with_extension("jsonl.lock")).unwrap();

        let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of = |kind: &str, keys: &[&str]| -> Vec<Vec<Value>> {
            let of_kind = lines.iter().filter(|event| event["event"] == kind);
            of_kind.map(|event| fields(event, keys)).collect()
        };
        let attempts = of("dispatch.attempt", &["call_id", "attempt", "mono_us"]);
        let numbers: Vec<&Value> = attempts.iter().map(|attempt| &attempt[1]).collect();
        assert_eq!((numbers, &attempts[0][0]), (vec![&json!(1), &json!(2)], &json!("a")));
        assert_eq!(attempts[1][2].as_u64().zip(attempts[0][2].as_u64()).map(|(b, a)| b - a), Some(1_000_000));
        let retry = |attempt: u32| vec![json!("a"), json!(attempt), json!(1000), json!("transient")];
        let retries = of("dispatch.retry", &["call_id", "attempt", "delay_ms", "code"]);
        assert_eq!(retries, [retry(1), retry(2)]);
        let moves = of("breaker.transition", &["tool_name", "backend", "from", "to"]);
        let open = |tool: Value, backend: Value| vec![tool, backend, json!("closed"), json!("open")];
        assert_eq!(moves, [open(json!("flaky"), Value::Null), open(Value::Null, json!("api"))]);
        let ends = of("tool.failed", &["call_id", "code", "attempts"]);
        assert_eq!(ends, [vec![json!("a"), json!("circuit_open"), json!(2)]]);
    }
}
