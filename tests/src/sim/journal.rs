//! All that was seen of a run, in the order in which it was seen.

use super::{
    check::Violation,
    permits::Change,
    program::{End, Of},
};
use std::{
    fmt::{self, Write},
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::time::Instant;
use toolyard::{
    Answer, Budget, CallDigest, Dedupe, Effect, ErrorKind, Event, EventKind, EventSink, Outcome, PoolStatus,
    RetryStopped, ToolClass,
};

/// All that was seen of a run. Clones write into the same.
#[derive(Clone)]
pub struct Journal {
    began_at: Instant,
    entries: Arc<Mutex<Vec<Entry>>>,
    open_calls: Arc<AtomicUsize>,
}

/// Something that was seen.
#[derive(Debug, Clone)]
pub struct Entry {
    /// When, in microseconds from the start.
    pub at_us: u64,
    /// What.
    pub fact: Fact,
}

/// What was seen.
#[derive(Debug, Clone)]
pub enum Fact {
    /// An event of the engine.
    Event(Box<Event>),
    /// A handler, by the number of its call.
    Handler(u32, Moved),
    /// A change of who holds what and who waits.
    Permits(Box<Change>),
    /// The results of a batch, by its first call.
    Results(u32, Vec<Shape>),
    /// The turn of a batch is being cancelled.
    CancelTurn(u32),
    /// The future of a batch is being dropped.
    Drop(u32),
    /// What a handler ends with, by the number of its call; nothing if it is dropped.
    Said(u32, Said),
    /// A call is being cancelled ...
    CancelCall(u32),
    /// ... and has been; whether there was one to be cancelled.
    CallCancelled(u32, bool),
    /// All that is in the air of a session is being cancelled.
    CancelCalls(usize),
    /// An operator puts a policy in force.
    SetPolicy(usize),
    /// The answers of a session are forgotten.
    Forget(usize),
    /// The approver answers about a call, by its number, with the mark of what would run.
    Answered(u32, CallDigest, Answer),
    /// Something that was shown had the secret.
    Leaked(String),
    /// A handler was not given the secret, by the number of its call.
    Withheld(u32),
    /// An operator moves a breaker.
    Operated(Of),
    /// What a session may still spend, when all else is over.
    BudgetLeft(usize, Budget),
    /// A session is being cancelled.
    CancelSession(usize),
    /// A fork is being cancelled.
    CancelFork(u32),
    /// Calls of a batch that had run, sent once more: their results before and now.
    Resent(u32, Vec<Shape>, Vec<Shape>),
    /// A pool is being given a width ...
    Resizing(ToolClass, usize),
    /// ... and has it now.
    Resized(ToolClass, usize),
    /// A pool is being paused or let go on.
    Pausing(ToolClass, bool),
    /// The engine is being shut down, with so many milliseconds to finish and to stop ...
    ShuttingDown(u64, u64),
    /// ... and is now.
    ShutDown,
    /// Nothing is left to do: how the pools stand.
    Quiet(Vec<PoolStatus>),
    /// Nothing has happened for an hour, and something is still to be done.
    Stuck(String),
}

/// What a handler did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Moved {
    /// It has begun.
    Began,
    /// It changes what serial handlers change.
    Wrote,
    /// It waits for calls of its own.
    Parked,
    /// It waits no more for some of them: whether it is still parked is not seen.
    Dropped,
    /// It has begun to stream calls: whether it is parked goes by what of them is in the air.
    Streams,
    /// That stream is at its end.
    Streamed,
    /// It has all it needs again.
    Resumed,
    /// It cannot be dropped and has been given up.
    GivenUp,
    /// It has come to its end, or was dropped.
    Ended,
}

/// What a handler ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// What its script says.
    End(End),
    /// An output, for it was told to stop.
    CutShort,
    /// An error, for it was told to stop.
    Stopped,
}

/// What is compared of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The id under which it was given.
    pub id: String,
    /// Its code; `None` with an output.
    pub code: Option<ErrorKind>,
    /// How often the handler was started.
    pub attempts: u32,
    /// Its run.
    pub run: u32,
    /// The output, if there is one.
    pub text: String,
    /// Whether it is another call's.
    pub dedupe: Dedupe,
    /// What is known of its effect; `None` with an output.
    pub effect: Option<Effect>,
    /// Why it was not tried again.
    pub stopped: Option<RetryStopped>,
}

impl Shape {
    /// What is compared of this result.
    pub fn of(outcome: &Outcome) -> Self {
        Self {
            id: outcome.call_id.to_string(),
            code: outcome.error().map(|error| error.kind),
            attempts: outcome.attempts,
            run: outcome.run,
            text: if outcome.success() { outcome.to_text() } else { String::new() },
            dedupe: outcome.dedupe,
            effect: outcome.error().map(|error| error.effect),
            stopped: outcome.error().and_then(|error| error.retry_stopped),
        }
    }
}

impl Journal {
    /// An empty journal; time counts from now.
    pub fn new() -> Self {
        Self { began_at: Instant::now(), entries: Arc::default(), open_calls: Arc::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what is seen now.
    pub fn note(&self, fact: Fact) {
        let at_us = u64::try_from(self.began_at.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.lock().push(Entry { at_us, fact });
    }

    /// How much there is.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Calls that came in and have not ended.
    pub fn open_calls(&self) -> usize {
        self.open_calls.load(Ordering::Relaxed)
    }

    /// Everything so far.
    pub fn entries(&self) -> Vec<Entry> {
        self.lock().clone()
    }
}

impl Default for Journal {
    fn default() -> Self {
        Self::new()
    }
}

impl EventSink for Journal {
    fn accept(&self, event: &Event) {
        if matches!(event.kind, EventKind::Received { .. }) {
            self.open_calls.fetch_add(1, Ordering::Relaxed);
        } else if event.kind.is_terminal() {
            self.open_calls.fetch_sub(1, Ordering::Relaxed);
        }
        self.note(Fact::Event(Box::new(event.clone())));
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10.3} ms  ", self.at_us as f64 / 1000.0)?;
        let Fact::Event(event) = &self.fact else { return write!(f, "· {:?}", self.fact) };
        write!(f, "{} {}", event.session, event.agent.as_str())?;
        if let (Some(batch), Some(index)) = (event.batch, event.index) {
            write!(f, " batch {batch} call {index}")?;
        }
        if let Some(call) = &event.call_id {
            write!(f, " ({call})")?;
        }
        write!(f, "  {}", event.kind.name())?;
        event.kind.failure().map_or(Ok(()), |failure| write!(f, " {}", failure.code.code()))
    }
}

/// The hash of a run: equal for runs that went the same way. Numbers that are counted over a whole process are in
/// no entry.
pub(super) fn trace_hash(entries: &[Entry], violations: &[Violation]) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut text = String::new();
    for entry in entries {
        text.clear();
        // Writing to a string does not fail.
        let _ = match &entry.fact {
            Fact::Event(event) => write!(text, "{} {:?} {:?} {entry}", event.seq, event.run, event.kind),
            fact => write!(text, "{} {fact:?}", entry.at_us),
        };
        text.hash(&mut hasher);
    }
    violations.len().hash(&mut hasher);
    hasher.finish()
}
