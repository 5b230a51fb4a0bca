//! The journal as the engine's recorder (SM-4): what waits for it, and what does not (JR-1, JR-3).

use crate::{
    journal::Journal,
    op::{
        self, AnswerOp, AttemptOp, BatchOp, CancelOp, EndOp, Ending, Op, OpenBatch, QuestionOp, ResumeOp,
        json_of, word,
    },
    queue::{Faulty, JournalState},
};
use futures::future::ready;
use std::sync::{Arc, atomic::Ordering};
use toolyard::{
    AnswerRecord, AttemptEnd, AttemptRecord, BatchRecord, Call, CancelRecord, Cancelled, CloseRecord,
    Durable, EndRecord, ForkRecord, OpenTurn, Past, PastRequest, PastSession, PastTurn, PushRecord,
    QuestionRecord, RecordError, Recorder, Recovered, ResumeRecord, SessionId, SessionRecord, VerdictRecord,
    event::Epoch,
};

/// About what a record takes in the queue beside its texts.
const RECORD_BYTES: usize = 256;

impl Journal {
    /// A record that somebody waits for, of this many bytes of text.
    pub(crate) fn wait(&self, op: Op, bytes: usize, faulty: Faulty) -> Durable {
        if self.inner.is_shared.load(Ordering::Relaxed) {
            let what = "two engines have this journal as their recorder; open one for each";
            return Durable::when(ready(Err(RecordError::new(what))));
        }
        self.inner.queue.wait_for(Some(op), RECORD_BYTES + bytes, faulty)
    }

    /// A record that somebody waits for if `must_wait`.
    fn give(&self, op: Op, bytes: usize, must_wait: bool, faulty: Faulty) -> Durable {
        if must_wait || self.inner.is_shared.load(Ordering::Relaxed) {
            return self.wait(op, bytes, faulty);
        }
        self.inner.queue.give(op, RECORD_BYTES + bytes);
        Durable::Nothing
    }
}

/// Calls as a record has them, and about how many bytes they are.
fn owned(calls: &[&Call]) -> (Vec<Call>, usize) {
    let mut bytes = 0;
    let each = calls.iter().map(|call| {
        bytes += RECORD_BYTES + call.arguments.size();
        Call::clone(call)
    });
    (each.collect(), bytes)
}

impl Recorder for Journal {
    fn outlives_engine(&self) -> bool {
        true
    }

    fn needs_attempts_of_reads(&self) -> bool {
        // A second engine is told with each record that it cannot have the journal.
        self.inner.is_shared.load(Ordering::Relaxed)
    }

    fn fault(&self) -> Option<Arc<str>> {
        match self.status().state {
            JournalState::Writing => None,
            JournalState::Failing(why) | JournalState::Stopped(why) => Some(why.into()),
            JournalState::Closed => Some("the journal is closed".into()),
        }
    }

    fn begin(&self, epoch: Epoch) {
        match self.inner.engine.set(epoch) {
            Ok(()) => self.inner.queue.give(Op::Engine { epoch: epoch.to_string() }, RECORD_BYTES),
            Err(_) => self.inner.is_shared.store(true, Ordering::Relaxed),
        }
    }

    fn past(&self, session: &SessionId) -> Result<Past, RecordError> {
        self.past_of(session)
    }

    fn open_turns(&self) -> Result<Vec<OpenTurn>, RecordError> {
        self.left_open()
    }

    fn past_epochs(&self) -> Result<Vec<Epoch>, RecordError> {
        self.earlier_epochs()
    }

    fn past_session(&self, session: &SessionId) -> Result<Option<PastSession>, RecordError> {
        self.session_of(session)
    }

    fn past_sessions(&self) -> Result<Vec<PastSession>, RecordError> {
        self.all_sessions()
    }

    fn past_request(&self, session: &SessionId, request: &str) -> Result<Option<PastRequest>, RecordError> {
        self.request_of(session, request)
    }

    fn turn(&self, session: &SessionId, turn: u64) -> Result<Option<PastTurn>, RecordError> {
        self.turn_of(session, turn)
    }

    fn resumed(&self, record: &ResumeRecord<'_>) -> Durable {
        let op = ResumeOp::from(record);
        let bytes =
            op.ended.iter().map(|(end, _)| RECORD_BYTES + end.status.text.len() + Ending::BYTES).sum();
        self.wait(Op::Resumed(Box::new(op)), bytes, Faulty::Refused)
    }

    fn session(&self, record: &SessionRecord<'_>) -> Durable {
        self.inner.lookup.opened(record.session);
        let terms = op::terms(record.terms);
        let bytes = terms.len();
        let op = Op::Session { session: record.session.clone(), is_named: record.is_named, terms };
        self.wait(op, bytes, Faulty::Awaited)
    }

    fn fork(&self, record: &ForkRecord<'_>) -> Durable {
        let terms = op::terms(record.terms);
        let bytes = terms.len();
        let op = Op::Fork {
            session: record.session.clone(),
            agent: record.agent.clone(),
            parent: record.parent.clone(),
            is_named: record.is_named,
            made_by: record.made_by.map(Into::into),
            terms,
        };
        self.wait(op, bytes, Faulty::Awaited)
    }

    fn batch(&self, record: &BatchRecord<'_>) -> Durable {
        let (calls, bytes) = owned(&record.calls);
        let op = BatchOp {
            session: record.session.clone(),
            agent: record.agent.clone(),
            turn: record.turn,
            batch: record.batch,
            request: record.request.map(str::to_owned),
            parent: record.parent.map(Into::into),
            calls,
            is_open: record.is_open,
            is_sequential: record.is_sequential,
            is_resend: record.is_resend,
        };
        self.wait(Op::Batch(Box::new(op)), bytes, Faulty::Kept)
    }

    fn pushed(&self, record: &PushRecord<'_>) -> Durable {
        let PushRecord { session, agent, turn, batch, index, ref calls, .. } = *record;
        let to = OpenBatch { session: session.clone(), agent: agent.clone(), turn, batch };
        let (calls, bytes) = owned(calls);
        self.wait(Op::Pushed { to, index, calls }, bytes, Faulty::Kept)
    }

    fn closed(&self, record: &CloseRecord<'_>) -> Durable {
        let CloseRecord { session, agent, turn, batch, calls, request, .. } = *record;
        let batch = OpenBatch { session: session.clone(), agent: agent.clone(), turn, batch };
        let (request, bytes) = (request.map(str::to_owned), request.map_or(0, str::len));
        self.wait(Op::Closed { batch, calls, request }, bytes, Faulty::Kept)
    }

    fn question(&self, record: &QuestionRecord<'_>) -> Durable {
        let question = QuestionOp::from(record);
        let bytes = question.arguments.len();
        self.wait(Op::Question(Box::new(question)), bytes, Faulty::Refused)
    }

    fn answer(&self, record: &AnswerRecord<'_>) -> Durable {
        let answer = AnswerOp {
            call: record.call.into(),
            request: record.request.to_string(),
            digest: record.digest.to_string(),
            decision: word(&record.answer.decision()),
            who: record.answer.who().map(str::to_owned),
            reason: record.answer.reason().map(str::to_owned),
            edited: record.answer.arguments().cloned(),
            settled_by: word(&record.by),
        };
        let texts = [&answer.who, &answer.reason].into_iter().flatten().map(String::len).sum::<usize>();
        let bytes = texts + answer.edited.as_ref().map_or(0, toolyard::Arguments::size);
        self.wait(Op::Answer(Box::new(answer)), bytes, Faulty::Refused)
    }

    fn attempt(&self, record: &AttemptRecord<'_>) -> Durable {
        if record.is_of_plain_read() && !self.inner.is_shared.load(Ordering::Relaxed) {
            return Durable::Nothing;
        }
        let attempt = AttemptOp::from(record);
        let bytes = attempt.arguments.as_ref().map_or(0, String::len) + Ending::BYTES;
        self.give(Op::Attempt(Box::new(attempt)), bytes, record.must_wait(), Faulty::Refused)
    }

    fn attempt_ended(&self, record: &AttemptEnd<'_>) -> Durable {
        if record.is_of_plain_read() && !self.inner.is_shared.load(Ordering::Relaxed) {
            return Durable::Nothing;
        }
        let (op, bytes) = op::attempt_ended(record);
        self.give(op, bytes, record.must_wait(), Faulty::Kept)
    }

    fn ended(&self, record: &EndRecord<'_>) -> Durable {
        if !record.must_wait() && !self.inner.is_shared.load(Ordering::Relaxed) {
            self.inner.queue.give_end(record, RECORD_BYTES + Ending::BYTES);
            return Durable::Nothing;
        }
        let end = EndOp::from(record);
        let bytes = end.status.text.len() + Ending::BYTES;
        self.wait(Op::Ended(Box::new(end)), bytes, Faulty::Kept)
    }

    fn cancelled(&self, record: &CancelRecord<'_>) -> Durable {
        let what = match record.what {
            Cancelled::Session => CancelOp::Session,
            Cancelled::InFlight => CancelOp::InFlight,
            Cancelled::Turn(turn) => CancelOp::Turn(turn),
            Cancelled::Batch(batch) => CancelOp::Batch(batch),
            Cancelled::Calls { turn, id } => CancelOp::Calls { turn, id: id.to_owned() },
            Cancelled::Call { turn, batch, index } => CancelOp::Call { turn, batch, index },
            // Of a newer engine: all that is certain is that something of the agent is cancelled.
            _ => CancelOp::InFlight,
        };
        let (session, agent) = (record.session.clone(), record.agent.clone());
        self.wait(Op::Cancelled { session, agent, what }, 0, Faulty::Kept)
    }

    fn verdict(&self, record: &VerdictRecord<'_>) -> Durable {
        let (found, output) = match record.found {
            Recovered::Done(output) => ("done", Some(json_of(output))),
            Recovered::NotDone => ("not_done", None),
            // Also what a newer engine may find.
            _ => ("unknown", None),
        };
        let bytes = output.as_ref().map_or(0, String::len);
        self.wait(Op::Verdict { call: record.call.into(), found, output }, bytes, Faulty::Refused)
    }

    fn flush(&self) -> Durable {
        self.inner.queue.wait_for(None, 0, Faulty::Kept)
    }
}
