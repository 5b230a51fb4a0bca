//! A recorder that is a journal and a model of one, which are compared.

use crate::scene::Scene;
use futures::future::pending;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::sync::Notify;
use toolyard::{
    CallError, Durable, OpenTurn, Past, PastAttempt, PastEnd, PastKey, PastKeyEnd, PastKeyState, PastRequest,
    PastSession, PastTurn, RecordError, Recorder, ResumeRecord, SessionId, ToolOutput, ToolSpec,
    event::Epoch,
};
use toolyard_journal::Journal;
use toolyard_tests::{Ledger, Yard, scripted, yard};

/// Gives each record to a journal and to the model, up to a number of them; what comes later is given to neither, as if the
/// process had ended.
#[derive(Clone)]
pub(crate) struct Both {
    pub(crate) journal: Journal,
    model: Ledger,
    left: Arc<AtomicUsize>,
    pub(crate) cut: Arc<Notify>,
}

impl Both {
    fn give(&self, give: impl Fn(&dyn Recorder) -> Durable) -> Durable {
        let left = self.left.load(Ordering::SeqCst);
        if left == 0 {
            self.cut.notify_one();
            return Durable::when(pending());
        }
        self.left.store(left - 1, Ordering::SeqCst);
        let (one, other) = (give(&self.journal), give(&self.model));
        match (one, other) {
            (Durable::When(one), Durable::When(other)) => Durable::when(async move {
                one.await?;
                other.await
            }),
            (Durable::Nothing, Durable::Nothing) => Durable::Nothing,
            (one, other) => panic!("the journal says {one:?}, the model {other:?}"),
        }
    }
}

impl Recorder for Both {
    fn outlives_engine(&self) -> bool {
        true
    }

    fn needs_attempts_of_reads(&self) -> bool {
        self.journal.needs_attempts_of_reads()
    }

    fn begin(&self, epoch: Epoch) {
        self.journal.begin(epoch);
        self.model.begin(epoch);
    }

    fn past(&self, session: &SessionId) -> Result<Past, RecordError> {
        let (past, model) = (self.journal.past(session)?, self.model.past(session)?);
        assert_eq!(of_past(&past), of_past(&model));
        Ok(past)
    }

    fn open_turns(&self) -> Result<Vec<OpenTurn>, RecordError> {
        let (open, model) = (self.journal.open_turns()?, self.model.open_turns()?);
        assert_eq!(open, model);
        Ok(open)
    }

    fn past_session(&self, session: &SessionId) -> Result<Option<PastSession>, RecordError> {
        let (past, model) = (self.journal.past_session(session)?, self.model.past_session(session)?);
        assert_eq!(past, model);
        Ok(past)
    }

    fn past_epochs(&self) -> Result<Vec<Epoch>, RecordError> {
        let (past, model) = (self.journal.past_epochs()?, self.model.past_epochs()?);
        assert_eq!(past, model);
        Ok(past)
    }

    fn past_sessions(&self) -> Result<Vec<PastSession>, RecordError> {
        let in_order = |mut all: Vec<PastSession>| {
            all.sort_by(|one, other| one.session.as_str().cmp(other.session.as_str()));
            all
        };
        let (past, model) = (self.journal.past_sessions()?, self.model.past_sessions()?);
        assert_eq!(in_order(past.clone()), in_order(model));
        Ok(past)
    }

    fn past_request(&self, session: &SessionId, request: &str) -> Result<Option<PastRequest>, RecordError> {
        let (past, model) =
            (self.journal.past_request(session, request)?, self.model.past_request(session, request)?);
        assert_eq!(past, model);
        Ok(past)
    }

    fn turn(&self, session: &SessionId, turn: u64) -> Result<Option<PastTurn>, RecordError> {
        let (found, model) = (self.journal.turn(session, turn)?, self.model.turn(session, turn)?);
        assert_eq!(found.as_ref().map(of_turn), model.as_ref().map(of_turn));
        Ok(found)
    }

    fn resumed(&self, record: &ResumeRecord<'_>) -> Durable {
        self.give(|to| to.resumed(record))
    }

    toolyard_tests::gives_records!();
}

fn json(status: &Result<ToolOutput, CallError>) -> String {
    match status {
        Ok(output) => serde_json::to_string(output).unwrap(),
        Err(error) => serde_json::to_string(error).unwrap(),
    }
}

/// What of a past does not depend on the clock, in one order.
fn of_past(past: &Past) -> Vec<String> {
    let Past { is_known, turns, batches, forks, open_turns, interrupted, keys } = past;
    let of_key = |key: &PastKey| {
        let PastKey { tool, key, arguments, state } = key;
        let state = match state {
            PastKeyState::Started {
                version,
                is_repeatable,
                end: PastKeyEnd::Ended { status, attempts, sandbox, .. },
            } => format!("{version} {is_repeatable} {} {attempts} {sandbox:?}", json(status)),
            other => format!("{other:?}"),
        };
        format!("{tool} {key} {arguments} {state}")
    };
    let mut all: Vec<_> = keys.iter().map(of_key).collect();
    all.sort_unstable();
    all.insert(0, format!("{is_known} {turns} {batches} {forks} {open_turns} {interrupted}"));
    all
}

/// What of a turn does not depend on the clock.
fn of_turn(turn: &PastTurn) -> Vec<String> {
    let PastTurn { agent, turn, epoch, is_cancelled, began, ended, batches } = turn;
    let (has_begun, has_ended) = (began.is_some(), ended.is_some());
    let mut lines = vec![format!("{agent} {turn} {epoch:?} {is_cancelled} {has_begun} {has_ended}")];
    for batch in batches {
        lines.push(format!("{} {:?} {}", batch.batch, batch.request, batch.is_sequential));
        for it in &batch.calls {
            let attempts = it.attempts.iter().map(|attempt| {
                let attempt = attempt.clone();
                let error = attempt.retried_after.as_ref().map(|error| serde_json::to_string(error).unwrap());
                let attempt = PastAttempt { time_left: Duration::ZERO, retried_after: None, ..attempt };
                format!("{attempt:?} {error:?}")
            });
            let end = it.end.clone().map(|end| {
                let zero = Duration::ZERO;
                let status = json(&end.status);
                let end = PastEnd { queued: zero, ran: zero, status: Ok("".into()), ..*end };
                format!("{status} {end:?}")
            });
            lines.push(format!(
                "{:?} {} {} {} {:?} {end:?} {:?} {}",
                it.call,
                it.is_cancelled,
                it.is_unsure,
                it.has_dispatched,
                attempts.collect::<Vec<_>>(),
                it.question,
                it.reconciled
            ));
        }
    }
    lines
}

pub(crate) async fn life(recorder: &Both) -> Yard {
    let recorder = recorder.clone();
    yard(|builder, log| {
        let idem = ToolSpec::network("idem").concurrent().idempotent();
        builder.recorder(recorder).tool(scripted(idem, log))
    })
    .await
}

/// A life that ends after so many records.
pub(crate) fn both(scene: &Scene, model: &Ledger, records: usize) -> Both {
    let (left, cut) = (Arc::new(AtomicUsize::new(records)), Arc::new(Notify::new()));
    Both { journal: scene.open(), model: model.clone(), left, cut }
}
