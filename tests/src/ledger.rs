//! A recorder in memory that outlives engines: what one life of an engine has recorded, the next one goes on from.
//!
//! ```text
//!   engine ── records ──► Ledger ── crash: what was not durable is gone ──► Ledger ── past, turns ──► next engine
//! ```
//!
//! It is a model: every answer is found by reading all records from the first one on.

mod described;
mod fold;
mod op;
mod remains;

use fold::World;
use op::{Op, Place};
use parking_lot::Mutex;
pub use remains::Remains;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep_until};
use toolyard::{
    AnswerRecord, AttemptEnd, AttemptRecord, BatchRecord, CancelRecord, CloseRecord, Durable, EndRecord,
    ForkRecord, OpenTurn, Past, PastRequest, PastSession, PastTurn, PushRecord, QuestionRecord, RecordError,
    Recorder, Recovered, ResumeRecord, SessionId, SessionRecord, VerdictRecord, event::Epoch,
};

/// How long the record of what somebody waits for takes.
type Pace = dyn Fn() -> Duration + Send + Sync;

/// What happens when somebody reads what is known of a session.
type OnRead = dyn Fn(&SessionId) + Send + Sync;

/// Records of engines, one after the other. Clones are the same ledger.
#[derive(Clone)]
pub struct Ledger {
    pace: Arc<Pace>,
    on_read: Arc<OnRead>,
    records: Arc<Mutex<Vec<Kept>>>,
}

#[derive(Clone)]
struct Kept {
    op: Op,
    durable_at: Instant,
    /// Whether somebody may have gone on since it is durable.
    is_waited_for: bool,
}

impl Default for Ledger {
    fn default() -> Self {
        Self::paced(|| Duration::ZERO)
    }
}

impl Ledger {
    /// A ledger whose records take so long to be durable; what nobody waits for is durable with the next one.
    pub fn paced(pace: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self { pace: Arc::new(pace), on_read: Arc::new(|_| {}), records: Arc::default() }
    }

    /// Calls this before it tells which session has had a name: on the thread that asks, which may be held up.
    #[must_use]
    pub fn on_read(self, on_read: impl Fn(&SessionId) + Send + Sync + 'static) -> Self {
        Self { on_read: Arc::new(on_read), ..self }
    }

    /// The ledger that the next life of the engine finds if this one ends now: what is not durable is gone. The engine of
    /// this one may still give records, which nobody reads.
    #[must_use]
    pub fn crashed(&self) -> Self {
        let now = Instant::now();
        let records = self.records.lock();
        let durable: Vec<_> = records.iter().take_while(|kept| kept.durable_at <= now).cloned().collect();
        Self { records: Arc::new(Mutex::new(durable)), ..self.clone() }
    }

    /// The ledger that the next life finds if this one ends when so many records were durable.
    #[must_use]
    pub fn cut(&self, records: usize) -> Self {
        let kept = self.records.lock().iter().take(records).cloned().collect();
        Self { records: Arc::new(Mutex::new(kept)), ..self.clone() }
    }

    /// The same as if all had been recorded so much earlier.
    #[must_use]
    pub fn earlier(&self, by: Duration) -> Self {
        let records = self.records.lock().clone();
        let earlier = records.into_iter().map(|kept| Kept { op: kept.op.earlier(by), ..kept }).collect();
        Self { records: Arc::new(Mutex::new(earlier)), ..self.clone() }
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.lock().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn world(&self) -> World {
        World::of(self.records.lock().iter().map(|kept| &kept.op))
    }

    fn keep(&self, op: Op, must_wait: bool) -> Durable {
        let now = Instant::now();
        let mut records = self.records.lock();
        let last = records.last().map_or(now, |kept| kept.durable_at);
        let durable_at = last.max(now + (self.pace)());
        records.push(Kept { op, durable_at, is_waited_for: must_wait });
        match must_wait {
            false => Durable::Nothing,
            true => Durable::when(async move {
                if durable_at > Instant::now() {
                    sleep_until(durable_at).await;
                }
                Ok(())
            }),
        }
    }
}

impl Recorder for Ledger {
    fn outlives_engine(&self) -> bool {
        true
    }

    fn begin(&self, epoch: Epoch) {
        drop(self.keep(Op::Engine(epoch), false));
    }

    fn past(&self, session: &SessionId) -> Result<Past, RecordError> {
        Ok(self.world().past(session))
    }

    fn open_turns(&self) -> Result<Vec<OpenTurn>, RecordError> {
        Ok(self.world().open_turns())
    }

    fn past_epochs(&self) -> Result<Vec<Epoch>, RecordError> {
        let records = self.records.lock();
        let engines = records.iter().filter_map(|kept| match &kept.op {
            Op::Engine(epoch) => Some(*epoch),
            _ => None,
        });
        let mut all: Vec<_> = engines.collect();
        all.pop(); // this life
        Ok(all)
    }

    fn past_session(&self, session: &SessionId) -> Result<Option<PastSession>, RecordError> {
        let known = self.world().past_session(session);
        (self.on_read)(session);
        Ok(known)
    }

    fn past_sessions(&self) -> Result<Vec<PastSession>, RecordError> {
        Ok(self.world().past_sessions())
    }

    fn past_request(&self, session: &SessionId, request: &str) -> Result<Option<PastRequest>, RecordError> {
        Ok(self.world().past_request(session, request))
    }

    fn turn(&self, session: &SessionId, turn: u64) -> Result<Option<PastTurn>, RecordError> {
        Ok(self.world().turn(session, turn))
    }

    fn resumed(&self, record: &ResumeRecord<'_>) -> Durable {
        self.keep(Op::resumed(record), true)
    }

    fn session(&self, record: &SessionRecord<'_>) -> Durable {
        let (session, description) = (record.session.clone(), record.terms.description.clone());
        self.keep(Op::Session { session, is_named: record.is_named, description }, true)
    }

    fn fork(&self, record: &ForkRecord<'_>) -> Durable {
        let (session, agent) = (record.session.clone(), record.agent.clone());
        let (description, made_by_handler) = (record.terms.description.clone(), record.made_by.is_some());
        self.keep(Op::Fork { session, agent, is_named: record.is_named, description, made_by_handler }, true)
    }

    fn batch(&self, record: &BatchRecord<'_>) -> Durable {
        self.keep(Op::batch(record), true)
    }

    fn pushed(&self, record: &PushRecord<'_>) -> Durable {
        let calls = record.calls.iter().copied().cloned().collect();
        self.keep(Op::Pushed { session: record.session.clone(), batch: record.batch, calls }, true)
    }

    fn closed(&self, record: &CloseRecord<'_>) -> Durable {
        let (session, request) = (record.session.clone(), record.request.map(Arc::from));
        self.keep(Op::Closed { session, batch: record.batch, request }, true)
    }

    fn question(&self, record: &QuestionRecord<'_>) -> Durable {
        let links = record.request.links().iter().map(ToString::to_string).collect();
        self.keep(Op::Question { call: Place::of(record.call), request: record.request.id(), links }, true)
    }

    fn answer(&self, record: &AnswerRecord<'_>) -> Durable {
        self.keep(Op::answer(record), true)
    }

    fn attempt(&self, record: &AttemptRecord<'_>) -> Durable {
        match record.is_of_plain_read() {
            true => Durable::Nothing,
            false => self.keep(Op::attempt(record), record.must_wait()),
        }
    }

    fn attempt_ended(&self, record: &AttemptEnd<'_>) -> Durable {
        match record.is_of_plain_read() {
            true => Durable::Nothing,
            false => self.keep(Op::attempt_ended(record), record.must_wait()),
        }
    }

    fn ended(&self, record: &EndRecord<'_>) -> Durable {
        self.keep(Op::ended(record), record.must_wait())
    }

    fn cancelled(&self, record: &CancelRecord<'_>) -> Durable {
        self.keep(Op::cancelled(record), true)
    }

    fn verdict(&self, record: &VerdictRecord<'_>) -> Durable {
        let done = match record.found {
            Recovered::Done(output) => Some(output.clone()),
            _ => None,
        };
        self.keep(Op::Verdict { call: Place::of(record.call), done }, true)
    }

    fn flush(&self) -> Durable {
        let durable_at = self.records.lock().last_mut().map(|kept| {
            kept.is_waited_for = true;
            kept.durable_at
        });
        Durable::when(async move {
            if let Some(at) = durable_at {
                sleep_until(at).await;
            }
            Ok(())
        })
    }
}
