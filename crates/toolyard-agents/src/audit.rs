//! The audit of supervised agents: what each has done, and what it was refused (AG-7).
//!
//! ```text
//!   a call is given to the engine ─► its arguments, by its place ─┐
//!   events of the engine, lossless ──────────────────────────────►├─► tool.call.dispatched │ tool.call.denied
//!   a call that does not reach the engine ────────────────────────┘   one JSON line each
//! ```

use dashmap::DashMap;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{
    fmt,
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};
use toolyard::{
    AgentPath, Arguments, Call, Dedupe, Event, EventKind, EventWriter, Outcome, Redactor, SessionId,
    error::Slug,
};

/// Where a call is: its session, its agent, its batch, and its index there.
pub(crate) type Place = (SessionId, AgentPath, u64, usize);

/// Writes one JSON line when a handler of a call starts (`tool.call.dispatched`), and one for each call that fails before
/// that (`tool.call.denied`, with the `error` that the agent is told).
///
/// ```json
/// {"event":"tool.call.dispatched","tool":"Read","args":{"path":"/a"},"tool_call_id":"c1","agent":"root/a","pid":71,"at":1795000000000}
/// {"event":"tool.call.denied","error":"fs_denied","tool":"Read","args":{"path":"/b"},"tool_call_id":"c2","agent":"root/a","pid":71,"at":1795000000003}
/// ```
///
/// `args` are without secrets, `at` is in milliseconds since 1970. Calls that tools make themselves are there too, with
/// `args` null, as are those of more than 256 KiB. A call that shares or repeats the result of another one is neither: nothing was started for it.
///
/// It is an [`EventWriter`] of the engine ([`writer`](Self::writer)), so nothing is lost, and when it breaks, calls that
/// change something do not start (PO-6).
#[derive(Clone)]
pub struct Audit(Arc<Shared>);

struct Shared {
    given: DashMap<Place, Given>,
    to: Mutex<To>,
    redactor: Option<Redactor>,
    /// Whether a line could not be written: the engine then tells of no more events.
    is_broken: AtomicBool,
}

struct To {
    to: Box<dyn Write + Send>,
    /// Why a line could not be written that no event has caused.
    broken: Option<io::Error>,
}

/// A call that has been given to the engine and has not ended.
struct Given {
    tool: Arc<str>,
    args: Arguments,
    pid: Option<u32>,
    has_started: bool,
}

/// One line.
struct Line<'a> {
    event: &'static str,
    error: Option<Slug>,
    tool: &'a str,
    args: Option<&'a Arguments>,
    id: &'a str,
    agent: &'a AgentPath,
    pid: Option<u32>,
    at: u64,
}

/// The most bytes of arguments that a line has; without room, they are null.
const ARGUMENTS_MAX: usize = 256 << 10;

const DISPATCHED: &str = "tool.call.dispatched";
const DENIED: &str = "tool.call.denied";

impl Audit {
    /// Writes to this, without what the redactor finds.
    pub fn new(to: impl Write + Send + 'static, redactor: Option<Redactor>) -> Self {
        let to = Mutex::new(To { to: Box::new(to), broken: None });
        Self(Arc::new(Shared { given: DashMap::new(), to, redactor, is_broken: AtomicBool::new(false) }))
    }

    /// What has to be told of the engine's events: by [`EngineBuilder::event_writer`](toolyard::EngineBuilder::event_writer).
    pub fn writer(&self) -> impl EventWriter + use<> {
        Writer(self.clone())
    }

    /// A call was given to the engine.
    pub(crate) fn given(&self, place: Place, call: &Call, pid: Option<u32>) {
        if self.0.is_broken.load(Ordering::Relaxed) {
            return; // nobody asks for it any more
        }
        let (tool, args) = (call.name.clone(), call.arguments.clone());
        self.0.given.insert(place, Given { tool, args, pid, has_started: false });
    }

    /// A call has failed that was not given to the engine.
    pub(crate) fn denied(&self, agent: &AgentPath, pid: Option<u32>, outcome: &Outcome) {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let written = self.write(&Line {
            event: DENIED,
            error: outcome.error().map(|error| error.kind.into()),
            tool: &outcome.tool,
            args: Some(&outcome.arguments),
            id: outcome.call_id.as_str(),
            agent,
            pid,
            at: u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
        });
        if let Err(error) = written {
            self.0.to.lock().broken.get_or_insert(error); // the next event tells the engine
        }
    }

    fn heard(&self, event: &Event) -> io::Result<()> {
        let (Some(id), Some(batch), Some(index)) = (&event.call_id, event.batch, event.index) else {
            return Ok(());
        };
        let place = (event.session.clone(), event.agent.clone(), batch, index as usize);
        let line = |event: &Event, what, error, given: Option<&Given>| {
            self.write(&Line {
                event: what,
                error,
                tool: match given {
                    Some(given) => &given.tool,
                    None => event.kind.tool_name().map_or("", |name| name),
                },
                args: given.map(|given| &given.args),
                id: id.as_str(),
                agent: &event.agent,
                pid: given.and_then(|given| given.pid),
                at: event.wall_ms,
            })
        };
        match &event.kind {
            EventKind::Called { .. } => {
                let mut given = self.0.given.get_mut(&place);
                if let Some(given) = given.as_deref_mut() {
                    given.has_started = true;
                }
                line(event, DISPATCHED, None, given.as_deref())
            }
            EventKind::InputInvalid(failure) | EventKind::Denied(failure) | EventKind::Failed(failure) => {
                let given = self.0.given.remove(&place).map(|(_, given)| given);
                // Of a call that is not known here, its attempts say whether it has started.
                let has_started = given.as_ref().map_or(failure.attempts > 0, |given| given.has_started);
                // What shares the result of another call has not been refused.
                match has_started || failure.dedupe != Dedupe::Fresh {
                    true => Ok(()),
                    false => line(event, DENIED, Some(failure.code.into()), given.as_ref()),
                }
            }
            EventKind::Completed { .. } | EventKind::Suspended { .. } => {
                self.0.given.remove(&place);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn write(&self, line: &Line<'_>) -> io::Result<()> {
        let Line { event, error, tool, args, id, agent, pid, at } = line;
        let args = args.filter(|args| args.size() <= ARGUMENTS_MAX).map_or(Value::Null, Arguments::to_value);
        let redactor = self.0.redactor.as_ref();
        let shown = |text: &str| {
            redactor.map_or_else(|| text.to_owned(), |redactor| redactor.text(text).into_owned())
        };
        let args = redactor.map_or_else(|| args.clone(), |redactor| redactor.value(&args).into_owned());
        let mut line = json!({
            "event": event, "tool": shown(tool), "args": args, "tool_call_id": shown(id), "agent": agent.as_str(),
            "pid": pid, "at": at,
        });
        if let (Some(error), Some(line)) = (error, line.as_object_mut()) {
            line.shift_insert(1, "error".to_owned(), error.as_str().into());
        }
        let mut line = serde_json::to_vec(&line)?;
        line.push(b'\n');
        let written = self.0.to.lock().to.write_all(&line);
        if written.is_err() {
            self.0.is_broken.store(true, Ordering::Relaxed);
            self.0.given.clear();
        }
        written
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").finish_non_exhaustive()
    }
}

struct Writer(Audit);

impl EventWriter for Writer {
    fn write(&mut self, event: &Event) -> io::Result<()> {
        if let Some(error) = self.0.0.to.lock().broken.take() {
            return Err(error);
        }
        self.0.heard(event)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.0.to.lock().to.flush()
    }
}
