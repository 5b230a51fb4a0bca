//! A recorder in memory, for tests: it survives nothing, and is as slow and as unreliable as it is told to be.

use super::{
    AnswerRecord, AttemptEnd, AttemptRecord, BatchRecord, CallPlace, CancelRecord, CloseRecord, Durable,
    EndRecord, ForkRecord, PushRecord, QuestionRecord, RecordError, Recorder, SessionRecord, VerdictRecord,
};
use parking_lot::Mutex;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until};
use toolyard_core::{CallId, Decision, ErrorKind, RequestId};

/// How long a record of a [`MemoryRecorder`] takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Nobody has to wait for it.
    Nothing,
    /// It is durable after this time, but not before those that were given before it.
    After(Duration),
    /// It fails after this time.
    Fails(Duration),
}

/// A record as a [`MemoryRecorder`] keeps it: what it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are those of the records they are kept of")]
pub enum MemoryRecord {
    Session { session: String, is_named: bool },
    Fork { session: String, agent: String },
    Batch { session: String, batch: u64, request: Option<String>, calls: Vec<CallId>, is_open: bool },
    Pushed { session: String, batch: u64, index: u32, calls: Vec<CallId> },
    Closed { session: String, batch: u64, calls: u32 },
    Question { call: MemoryPlace, request: RequestId, shares: Option<RequestId> },
    Answer { call: MemoryPlace, request: RequestId, decision: Decision },
    Attempt { call: MemoryPlace, attempt: u32, must_wait: bool },
    AttemptEnded { call: MemoryPlace, attempt: u32, code: Option<ErrorKind>, is_retried: bool },
    Ended { call: MemoryPlace, attempts: u32, code: Option<ErrorKind>, must_wait: bool },
    Cancelled { session: String, agent: String, what: String },
    Verdict { call: MemoryPlace },
}

/// The call that a [`MemoryRecord`] is about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the fields are those of a call's place")]
pub struct MemoryPlace {
    pub session: String,
    pub turn: u64,
    pub batch: u64,
    pub index: u32,
    pub call_id: CallId,
}

impl From<CallPlace<'_>> for MemoryPlace {
    fn from(call: CallPlace<'_>) -> Self {
        let CallPlace { session, turn, batch, index, call_id, .. } = call;
        Self { session: session.to_string(), turn, batch, index, call_id: call_id.clone() }
    }
}

impl MemoryRecord {
    /// The name of the method that it was given to.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Session { .. } => "session",
            Self::Fork { .. } => "fork",
            Self::Batch { .. } => "batch",
            Self::Pushed { .. } => "pushed",
            Self::Closed { .. } => "closed",
            Self::Question { .. } => "question",
            Self::Answer { .. } => "answer",
            Self::Attempt { .. } => "attempt",
            Self::AttemptEnded { .. } => "attempt_ended",
            Self::Ended { .. } => "ended",
            Self::Cancelled { .. } => "cancelled",
            Self::Verdict { .. } => "verdict",
        }
    }
}

type Paced = dyn Fn(&MemoryRecord) -> Pace + Send + Sync;

/// Keeps records in memory, in the order in which they were given. For tests of what is built on a recorder; clones are
/// the same recorder.
///
/// By default every record is durable at once, and nothing waits for reads without a key.
///
/// # Examples
/// A recorder that takes a second for each record, and fails with the results:
/// ```
/// use std::time::Duration;
/// use toolyard::{MemoryRecord, MemoryRecorder, Pace};
/// let recorder = MemoryRecorder::paced(|record| match record {
///     MemoryRecord::Ended { .. } => Pace::Fails(Duration::ZERO),
///     _ => Pace::After(Duration::from_secs(1)),
/// });
/// assert!(recorder.given().is_empty() && recorder.durable().is_empty());
/// ```
#[derive(Clone)]
pub struct MemoryRecorder {
    pace: Arc<Paced>,
    outlives: bool,
    kept: Arc<Mutex<Vec<Kept>>>,
}

struct Kept {
    record: MemoryRecord,
    /// When it is durable; `None` if it fails.
    durable_at: Option<Instant>,
}

impl Default for MemoryRecorder {
    fn default() -> Self {
        Self::paced(|record| match record {
            MemoryRecord::Attempt { must_wait: false, .. } | MemoryRecord::Ended { must_wait: false, .. } => {
                Pace::Nothing
            }
            _ => Pace::After(Duration::ZERO),
        })
    }
}

impl MemoryRecorder {
    /// A recorder whose records take as long as `pace` says, which is called for each of them as it is given.
    pub fn paced(pace: impl Fn(&MemoryRecord) -> Pace + Send + Sync + 'static) -> Self {
        Self { pace: Arc::new(pace), outlives: false, kept: Arc::default() }
    }

    /// Makes it [say](Recorder::outlives_engine) that it outlives the engine, for tests of drains.
    #[must_use]
    pub fn outliving(mut self) -> Self {
        self.outlives = true;
        self
    }

    /// Every record so far, in the order in which they were given.
    pub fn given(&self) -> Vec<MemoryRecord> {
        self.kept.lock().iter().map(|kept| kept.record.clone()).collect()
    }

    /// The records that are durable by now.
    pub fn durable(&self) -> Vec<MemoryRecord> {
        let now = Instant::now();
        let kept = self.kept.lock();
        let durable = kept.iter().filter(|kept| kept.durable_at.is_some_and(|at| at <= now));
        durable.map(|kept| kept.record.clone()).collect()
    }

    fn keep(&self, record: MemoryRecord) -> Durable {
        let (pace, now) = ((self.pace)(&record), Instant::now());
        let mut kept = self.kept.lock();
        let last = kept.iter().rev().find_map(|kept| kept.durable_at).unwrap_or(now);
        let (after, fails) = match pace {
            Pace::Nothing => (Duration::ZERO, false),
            Pace::After(after) => (after, false),
            Pace::Fails(after) => (after, true),
        };
        let at = if fails { now + after } else { last.max(now + after) };
        kept.push(Kept { record, durable_at: (!fails).then_some(at) });
        if pace == Pace::Nothing {
            return Durable::Nothing;
        }
        Durable::when(async move {
            if at > Instant::now() {
                sleep_until(at).await;
            }
            if fails { Err(RecordError::new("this record fails")) } else { Ok(()) }
        })
    }
}

impl Recorder for MemoryRecorder {
    fn outlives_engine(&self) -> bool {
        self.outlives
    }

    fn session(&self, record: &SessionRecord<'_>) -> Durable {
        self.keep(MemoryRecord::Session { session: record.session.to_string(), is_named: record.is_named })
    }

    fn fork(&self, record: &ForkRecord<'_>) -> Durable {
        self.keep(MemoryRecord::Fork { session: record.session.to_string(), agent: record.agent.to_string() })
    }

    fn batch(&self, record: &BatchRecord<'_>) -> Durable {
        self.keep(MemoryRecord::Batch {
            session: record.session.to_string(),
            batch: record.batch,
            request: record.request.map(str::to_owned),
            calls: record.calls.iter().map(|call| call.id.clone()).collect(),
            is_open: record.is_open,
        })
    }

    fn pushed(&self, record: &PushRecord<'_>) -> Durable {
        self.keep(MemoryRecord::Pushed {
            session: record.session.to_string(),
            batch: record.batch,
            index: record.index,
            calls: record.calls.iter().map(|call| call.id.clone()).collect(),
        })
    }

    fn closed(&self, record: &CloseRecord<'_>) -> Durable {
        let CloseRecord { session, batch, calls, .. } = *record;
        self.keep(MemoryRecord::Closed { session: session.to_string(), batch, calls })
    }

    fn question(&self, record: &QuestionRecord<'_>) -> Durable {
        let (request, shares) = (record.request.id(), record.shares);
        self.keep(MemoryRecord::Question { call: record.call.into(), request, shares })
    }

    fn answer(&self, record: &AnswerRecord<'_>) -> Durable {
        let (request, decision) = (record.request, record.answer.decision());
        self.keep(MemoryRecord::Answer { call: record.call.into(), request, decision })
    }

    fn attempt(&self, record: &AttemptRecord<'_>) -> Durable {
        let (attempt, must_wait) = (record.attempt, record.must_wait());
        self.keep(MemoryRecord::Attempt { call: record.call.into(), attempt, must_wait })
    }

    fn attempt_ended(&self, record: &AttemptEnd<'_>) -> Durable {
        let AttemptEnd { attempt, is_retried, .. } = *record;
        let code = record.status.err().map(|error| error.kind);
        self.keep(MemoryRecord::AttemptEnded { call: record.call.into(), attempt, code, is_retried })
    }

    fn ended(&self, record: &EndRecord<'_>) -> Durable {
        let (attempts, must_wait) = (record.attempts, record.must_wait());
        let code = record.status.err().map(|error| error.kind);
        self.keep(MemoryRecord::Ended { call: record.call.into(), attempts, code, must_wait })
    }

    fn cancelled(&self, record: &CancelRecord<'_>) -> Durable {
        self.keep(MemoryRecord::Cancelled {
            session: record.session.to_string(),
            agent: record.agent.to_string(),
            what: format!("{:?}", record.what),
        })
    }

    fn verdict(&self, record: &VerdictRecord<'_>) -> Durable {
        self.keep(MemoryRecord::Verdict { call: record.call.into() })
    }
}
