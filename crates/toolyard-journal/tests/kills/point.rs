//! A recorder that ends its own process at a record: right before it is given, right after, or when it is durable.

use crate::asking::Consents;
use futures::future::FutureExt;
use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};
use toolyard::{
    AnswerRecord, Durable, OpenTurn, Past, PastTurn, QuestionRecord, RecordError, Recorder, ResumeRecord,
    SessionId, event::Epoch,
};
use toolyard_journal::Journal;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Before,
    Given,
    Durable,
}

impl When {
    pub(crate) const ALL: [Self; 3] = [Self::Before, Self::Given, Self::Durable];
}

/// When the process ends: the number of the record, from 1 on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    pub(crate) when: When,
    pub(crate) record: usize,
}

impl Point {
    pub(crate) fn to_text(self) -> String {
        format!("{} {}", self.when as usize, self.record)
    }

    pub(crate) fn of(text: &str) -> Self {
        let (when, record) = text.split_once(' ').expect("a point has two parts");
        let number = |text: &str| text.parse::<usize>().expect("a point is made of numbers");
        Self { when: When::ALL[number(when)], record: number(record) }
    }
}

/// The journal, with such a point or without.
#[derive(Clone)]
pub(crate) struct Recording {
    journal: Journal,
    point: Option<Point>,
    given: Arc<AtomicUsize>,
    consents: Consents,
}

impl Recording {
    pub(crate) fn new(journal: Journal, point: Option<Point>) -> Self {
        Self { journal, point, given: Arc::default(), consents: Consents::default() }
    }

    /// Which questions this life has recorded an answer to.
    pub(crate) fn consents(&self) -> &Consents {
        &self.consents
    }

    fn give(&self, give: impl FnOnce(&dyn Recorder) -> Durable) -> Durable {
        let record = self.given.fetch_add(1, Ordering::SeqCst) + 1;
        let at = |when| self.point.is_some_and(|point| point.record == record && point.when == when);
        end_if(at(When::Before));
        let given = give(&self.journal);
        end_if(at(When::Given));
        match given {
            Durable::When(durable) if at(When::Durable) => Durable::when(durable.inspect(|_| end_if(true))),
            given => given,
        }
    }
}

/// Ends the process as `kill -9` does.
fn end_if(is_now: bool) {
    use rustix::process::{Signal, getpid, kill_process};
    if is_now {
        kill_process(getpid(), Signal::KILL).expect("a process may end itself");
        loop {
            std::thread::park();
        }
    }
}

impl Recorder for Recording {
    fn outlives_engine(&self) -> bool {
        self.journal.outlives_engine()
    }

    fn needs_attempts_of_reads(&self) -> bool {
        self.journal.needs_attempts_of_reads()
    }

    fn begin(&self, epoch: Epoch) {
        self.journal.begin(epoch);
    }

    fn past(&self, session: &SessionId) -> Result<Past, RecordError> {
        self.journal.past(session)
    }

    fn open_turns(&self) -> Result<Vec<OpenTurn>, RecordError> {
        self.journal.open_turns()
    }

    fn turn(&self, session: &SessionId, turn: u64) -> Result<Option<PastTurn>, RecordError> {
        self.journal.turn(session, turn)
    }

    fn resumed(&self, record: &ResumeRecord<'_>) -> Durable {
        self.give(|to| to.resumed(record))
    }

    fn question(&self, record: &QuestionRecord<'_>) -> Durable {
        self.consents.asked(record);
        self.give(|to| to.question(record))
    }

    fn answer(&self, record: &AnswerRecord<'_>) -> Durable {
        self.consents.answered(record);
        self.give(|to| to.answer(record))
    }

    toolyard_tests::gives_records! {
        session(SessionRecord), fork(ForkRecord), batch(BatchRecord), pushed(PushRecord), closed(CloseRecord),
        attempt(AttemptRecord), attempt_ended(AttemptEnd), ended(EndRecord), cancelled(CancelRecord),
        verdict(VerdictRecord)
    }

    fn flush(&self) -> Durable {
        self.journal.flush()
    }
}
