//! The journal of a run: everything observed, in order.

use super::{
    check::Violation,
    permits::PermitChange,
    program::{BreakerOwner, CallBack, End},
    stage::{Life, ResultAgain},
};
use parking_lot::{Mutex, MutexGuard};
use std::{
    collections::BTreeSet,
    fmt::{self, Write},
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::time::Instant;
use toolyard::{
    Answer, Budget, CallDigest, Dedupe, Effect, ErrorKind, Event, EventKind, EventSink, MemoryRecord,
    Outcome, Pace, PoolStatus, Receipt, RetryStopped, ToolClass, ToolOutput, event::Epoch,
};

/// The journal of a run. Clones write to the same journal.
#[derive(Clone)]
pub struct Journal {
    began_at: Instant,
    entries: Arc<Mutex<Vec<Entry>>>,
    open_calls: Arc<AtomicUsize>,
    /// The ids of the calls that have ended.
    ended: Arc<Mutex<BTreeSet<Arc<str>>>>,
    /// The life of the engine that is observed, if the run has several.
    life: Option<Life>,
}

/// What fills an output up.
pub(super) const PADDING: char = '.';

/// One observation.
#[derive(Debug, Clone)]
pub struct Entry {
    /// When, in microseconds from the start.
    pub at_us: u64,
    /// The observed fact.
    pub fact: Fact,
}

/// An observed fact. Calls and forks go by their numbers in the program, batches by their first call, sessions and
/// policies by their index.
#[derive(Debug, Clone)]
pub enum Fact {
    /// The engine is there, and this is its life.
    Built(Epoch),
    /// An event of the engine.
    Event(Box<Event>),
    /// A step of a call's handler.
    Handler(u32, HandlerStep),
    /// A change in the admission table: permits held or calls waiting.
    Permits(Box<PermitChange>),
    /// The results of a batch.
    Results(u32, Vec<ResultView>),
    /// The turn of a batch is about to be cancelled.
    CancelTurn(u32),
    /// The future of a batch is about to be dropped.
    Drop(u32),
    /// How a call's handler ends. Absent if the handler is dropped.
    HandlerEnd(u32, HandlerEnd),
    /// A call is about to be cancelled ...
    CancelCall(u32),
    /// ... and the cancel has returned; the flag says whether it found the call.
    CallCancelled(u32, bool),
    /// All calls in flight of a session are about to be cancelled.
    CancelCalls(usize),
    /// An operator puts a policy in force.
    SetPolicy(usize),
    /// The remembered answers of a session are forgotten.
    Forget(usize),
    /// The approver answers the question about a call, with the digest of what would run.
    Answered(u32, CallDigest, Answer),
    /// The approver learns what became of its answer about a call.
    Receipt(u32, Receipt),
    /// The recorder is given this, and takes so long for it.
    Recorded(Box<MemoryRecord>, Pace),
    /// The secret showed up in the given text.
    Leaked(String),
    /// The handler of a call was given arguments, and whether they are those that the approver gave.
    Given(u32, bool),
    /// The handler of a call was not given the secret.
    Withheld(u32),
    /// An operator moves a breaker.
    Operated(BreakerOwner),
    /// What a session may still spend, at the end of the run.
    BudgetLeft(usize, Budget),
    /// A session is about to be cancelled.
    CancelSession(usize),
    /// A fork is about to be cancelled.
    CancelFork(u32),
    /// A fork was made; the second number is that of the agent it was forked from, if that is a fork ...
    Forked(u32, Option<u32>),
    /// ... or was refused, because the call that it would belong to has ended.
    ForkRefused(u32, Option<u32>),
    /// A fork is played that has outlived the call whose handler made it.
    PlayedLate(u32),
    /// A destructor uses the engine.
    CalledBack(CallBack),
    /// Calls of a finished batch were sent again: their results before and now.
    Resent(u32, Vec<ResultView>, Vec<ResultView>),
    /// A batch that was sent to an earlier life is asked for again: no record tells of it, ...
    Unknown(u32),
    /// ... it was that of an agent that nobody has named, ...
    GivenUp(u32),
    /// ... it cannot be taken up, ...
    NotResumed(u32, String),
    /// ... it is being recorded that its turn is taken up; the name of its session and the turn's number ...
    TakingUp(String, u64),
    /// ... and it has these results now.
    TakenUp(u32, Vec<ResultAgain>),
    /// This cancel is acknowledged.
    Held(Box<Fact>),
    /// The life of the engine ends here.
    Crashed,
    /// A pool is about to be resized ...
    Resizing(ToolClass, usize),
    /// ... and now has its new width.
    Resized(ToolClass, usize),
    /// A pool is about to be paused or resumed.
    Pausing(ToolClass, bool),
    /// The engine is about to be shut down, with these milliseconds to finish and to stop ...
    ShuttingDown(u64, u64),
    /// ... and the shutdown is complete.
    ShutDown,
    /// All work is done; this is the state of the pools.
    Quiet(Vec<PoolStatus>),
    /// Nothing has happened for an hour of virtual time although work is left.
    Stuck(String),
}

/// A step of a handler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HandlerStep {
    /// It has started.
    Started,
    /// It writes to the state that serial handlers share.
    Wrote,
    /// It waits for nested calls.
    Parked,
    /// It stopped waiting for some nested calls; the journal does not show whether it is still parked.
    NestedDropped,
    /// It has started to stream calls; whether it is parked depends on which of them are in flight.
    StreamStarted,
    /// That stream has ended.
    StreamEnded,
    /// It holds all its permits again.
    Resumed,
    /// It cannot be dropped and its context is cancelled, so it counts as given up.
    GivenUp,
    /// It has returned or was dropped.
    Ended,
}

/// How a handler ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandlerEnd {
    /// As its script says.
    Scripted(End),
    /// With an output, because it was cancelled.
    CutShort,
    /// With an error, because it was cancelled.
    Stopped,
}

/// The part of a result that the checks compare.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultView {
    /// The id of the call.
    pub id: String,
    /// The error code; `None` with an output.
    pub code: Option<ErrorKind>,
    /// How often the handler was started.
    pub attempts: u32,
    /// Its run.
    pub run: u32,
    /// The output without its padding, empty if there is none.
    pub text: String,
    /// The length of the output in bytes.
    pub bytes: usize,
    /// Whether the result is another call's.
    pub dedupe: Dedupe,
    /// Whether what ran had other arguments than were sent.
    pub edited: bool,
    /// Whether the call took effect, as far as known; `None` with an output.
    pub effect: Option<Effect>,
    /// Why there was no further attempt.
    pub stopped: Option<RetryStopped>,
    /// Whether the result is said to be durable.
    pub recorded: bool,
    /// The turn with which the call goes on in another life of the engine, if it was suspended.
    pub suspended: Option<u64>,
}

impl ResultView {
    /// The compared part of this result.
    pub fn of(outcome: &Outcome) -> Self {
        let output = outcome.status.as_ref().map_or_else(|_| String::new(), ToolOutput::to_text);
        Self {
            id: outcome.call_id.to_string(),
            code: outcome.error().map(|error| error.kind),
            attempts: outcome.attempts,
            run: outcome.run,
            text: output.trim_end_matches(PADDING).to_owned(),
            bytes: output.len(),
            dedupe: outcome.dedupe,
            edited: outcome.edited().is_some(),
            effect: outcome.error().map(|error| error.effect),
            stopped: outcome.error().and_then(|error| error.retry_stopped),
            recorded: outcome.recorded,
            suspended: outcome.error().and_then(|error| error.suspended),
        }
    }
}

impl Journal {
    /// An empty journal; time counts from now.
    pub fn new() -> Self {
        Self::of(None)
    }

    /// The journal of a life.
    pub(super) fn of(life: Option<Life>) -> Self {
        let (entries, open_calls) = (Arc::default(), Arc::default());
        Self { began_at: Instant::now(), entries, open_calls, ended: Arc::default(), life }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock()
    }

    /// Records a fact at the current time.
    pub fn note(&self, fact: Fact) {
        let at_us = u64::try_from(self.began_at.elapsed().as_micros()).unwrap_or(u64::MAX);
        let Some(life) = &self.life else { return self.lock().push(Entry { at_us, fact }) };
        if life.is_over() {
            return;
        }
        let is_last = life.sees(&fact);
        self.lock().push(Entry { at_us, fact });
        if is_last {
            self.crash();
        }
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether the journal has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the observed life as by a kill.
    pub(super) fn crash(&self) {
        if let Some(life) = &self.life {
            self.note(Fact::Crashed);
            life.end();
        }
    }

    /// The number of calls that were received and have not ended.
    pub fn open_calls(&self) -> usize {
        self.open_calls.load(Ordering::Relaxed)
    }

    /// Whether a call with this id has ended. Refused calls that share its id do not count.
    pub fn has_ended(&self, id: &str) -> bool {
        self.ended.lock().contains(id)
    }

    /// The entries so far.
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
            if let (Some(id), false) = (&event.call_id, matches!(event.kind, EventKind::InputInvalid(_))) {
                self.ended.lock().insert(id.as_str().into());
            }
        }
        self.note(Fact::Event(Box::new(event.clone())));
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>10.3} ms  ", self.at_us as f64 / 1000.0)?;
        let event = match &self.fact {
            Fact::Event(event) => event,
            Fact::Crashed => return f.write_str("======== the life of the engine ends ========"),
            fact => return write!(f, "· {fact:?}"),
        };
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

/// The hash of a run, equal for runs that took the same course. Entries contain no process-global numbers.
pub(super) fn trace_hash<'a>(entries: impl Iterator<Item = &'a Entry>, violations: &[Violation]) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut text = String::new();
    for entry in entries {
        text.clear();
        // Writing to a string cannot fail.
        let _ = match &entry.fact {
            Fact::Event(event) => write!(text, "{} {:?} {:?} {entry}", event.seq, event.run, event.kind),
            fact => write!(text, "{} {fact:?}", entry.at_us),
        };
        text.hash(&mut hasher);
    }
    violations.len().hash(&mut hasher);
    hasher.finish()
}
