//! JR-5 to JR-10: an engine goes on from the journal of the one before. The journal is compared with a model that keeps the
//! same records in memory.

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
    AnswerRecord, AttemptEnd, AttemptRecord, BatchRecord, Call, CallError, CancelRecord, CloseRecord,
    Durable, EndRecord, ForkPolicy, ForkRecord, OpenTurn, Outcome, Past, PastAttempt, PastEnd, PastKey,
    PastKeyState, PastTurn, PushRecord, QuestionRecord, RecordError, Recorder, ResumeRecord, SessionId,
    SessionRecord, SubAgents as _, ToolOutput, ToolSpec, VerdictRecord, event::Epoch,
};
use toolyard_journal::Journal;
use toolyard_tests::{
    Ledger, Yard, call, check_resumed, keyed, known_calls, mixed_calls, scripted, shape, yard,
};

/// Gives each record to a journal and to the model, up to a number of them; what comes later is given to neither, as if the
/// process had ended.
#[derive(Clone)]
struct Both {
    journal: Journal,
    model: Ledger,
    left: Arc<AtomicUsize>,
    cut: Arc<Notify>,
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

    fn turn(&self, session: &SessionId, turn: u64) -> Result<Option<PastTurn>, RecordError> {
        let (found, model) = (self.journal.turn(session, turn)?, self.model.turn(session, turn)?);
        assert_eq!(found.as_ref().map(of_turn), model.as_ref().map(of_turn));
        Ok(found)
    }

    fn resumed(&self, record: &ResumeRecord<'_>) -> Durable {
        self.give(|to| to.resumed(record))
    }

    fn session(&self, record: &SessionRecord<'_>) -> Durable {
        self.give(|to| to.session(record))
    }

    fn fork(&self, record: &ForkRecord<'_>) -> Durable {
        self.give(|to| to.fork(record))
    }

    fn batch(&self, record: &BatchRecord<'_>) -> Durable {
        self.give(|to| to.batch(record))
    }

    fn pushed(&self, record: &PushRecord<'_>) -> Durable {
        self.give(|to| to.pushed(record))
    }

    fn closed(&self, record: &CloseRecord<'_>) -> Durable {
        self.give(|to| to.closed(record))
    }

    fn question(&self, record: &QuestionRecord<'_>) -> Durable {
        self.give(|to| to.question(record))
    }

    fn answer(&self, record: &AnswerRecord<'_>) -> Durable {
        self.give(|to| to.answer(record))
    }

    fn attempt(&self, record: &AttemptRecord<'_>) -> Durable {
        self.give(|to| to.attempt(record))
    }

    fn attempt_ended(&self, record: &AttemptEnd<'_>) -> Durable {
        self.give(|to| to.attempt_ended(record))
    }

    fn ended(&self, record: &EndRecord<'_>) -> Durable {
        self.give(|to| to.ended(record))
    }

    fn cancelled(&self, record: &CancelRecord<'_>) -> Durable {
        self.give(|to| to.cancelled(record))
    }

    fn verdict(&self, record: &VerdictRecord<'_>) -> Durable {
        self.give(|to| to.verdict(record))
    }
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
        let PastKey { tool, key, arguments, version, is_repeatable, state } = key;
        let state = match state {
            PastKeyState::Ended { status, attempts, sandbox, .. } => {
                format!("{} {attempts} {sandbox:?}", json(status))
            }
            other => format!("{other:?}"),
        };
        format!("{tool} {key} {arguments} {version} {is_repeatable} {state}")
    };
    let mut all: Vec<_> = keys.iter().map(of_key).collect();
    all.sort_unstable();
    all.insert(0, format!("{is_known} {turns} {batches} {forks} {open_turns} {interrupted}"));
    all
}

/// What of a turn does not depend on the clock.
fn of_turn(turn: &PastTurn) -> Vec<String> {
    let PastTurn { agent, turn, epoch, batches } = turn;
    let mut lines = vec![format!("{agent} {turn} {epoch:?}")];
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

async fn life(recorder: &Both) -> Yard {
    let recorder = recorder.clone();
    yard(|builder, log| {
        let idem = ToolSpec::network("idem").concurrent().idempotent();
        builder.recorder(recorder).tool(scripted(idem, log))
    })
    .await
}

/// A life that ends after so many records.
fn both(scene: &Scene, model: &Ledger, records: usize) -> Both {
    let (left, cut) = (Arc::new(AtomicUsize::new(records)), Arc::new(Notify::new()));
    Both { journal: scene.open(), model: model.clone(), left, cut }
}

/// I5, JR-1, JR-5, JR-8: wherever an engine ends, the next one finds in the journal what the model finds, no call that had
/// ended runs again or changes its result, and what changes something starts at most once.
#[tokio::test]
async fn the_journal_knows_what_the_model_knows() {
    for records in 0.. {
        let (scene, model) = (Scene::new(), Ledger::default());
        let first = both(&scene, &model, records);
        let yard = life(&first).await;
        let session = yard.engine.session("s");
        let is_over = tokio::select! {
            _ = session.dispatch(mixed_calls()) => true,
            () = first.cut.notified() => false,
        };
        first.journal.close().unwrap();
        let second = both(&scene, &model, usize::MAX);
        let yard = life(&second).await;
        let before = known_calls(&second);
        let open = yard.engine.open_turns().unwrap();
        assert_eq!(
            open.is_empty(),
            before.values().all(|call| call.end.is_some()),
            "after {records} records"
        );
        if let Some(turn) = open.first() {
            let resumed = yard.engine.session("s").resume(turn.turn).await.unwrap();
            let outcomes = resumed.finish().await.concat();
            check_resumed(records, &before, &yard.log.started(), &outcomes);
            assert!(yard.engine.open_turns().unwrap().is_empty());
        }
        second.journal.close().unwrap();
        assert_eq!(toolyard_journal::verify(scene.path()).unwrap().findings, []);
        let third = life(&both(&scene, &model, usize::MAX)).await;
        assert!(third.engine.open_turns().unwrap().is_empty());
        third.engine.session("s");
        if is_over {
            assert!(records > 20, "{records}");
            return;
        }
    }
}

/// JR-5, JR-10: agents, nested calls, cancels and keys are found in the journal as in the model.
#[tokio::test]
async fn agents_cancels_and_keys_are_found() {
    for records in 0.. {
        let (scene, model) = (Scene::new(), Ledger::default());
        let first = both(&scene, &model, records);
        let yard = life(&first).await;
        let session = yard.engine.session("s");
        let ada = session.fork(ForkPolicy::default().name("ada")).unwrap();
        let unnamed = ada.fork(ForkPolicy::default()).unwrap();
        let turn = session.turn();
        let work = async {
            let of_turn = turn.dispatch(vec![
                call("a", "serial", 1, "ok"),
                keyed("k", call("b", "serial", 1, "ok")),
                call("c", "read", 1, "ok"),
            ]);
            let cancel = async {
                tokio::task::yield_now().await;
                turn.cancel_call("c");
            };
            let of_ada = ada.dispatch(vec![keyed("k", call("d", "concurrent", 1, "fail"))]);
            let of_unnamed = unnamed.dispatch(vec![call("e", "concurrent", 1, "ok")]);
            tokio::join!(of_turn, cancel, of_ada, of_unnamed);
            session.cancel();
        };
        let is_over = tokio::select! {
            () = work => true,
            () = first.cut.notified() => false,
        };
        first.journal.close().unwrap();
        let second = both(&scene, &model, usize::MAX);
        let yard = life(&second).await;
        let session = yard.engine.session("s");
        for open in yard.engine.open_turns().unwrap() {
            let agent = match open.agent.as_str() {
                "root" => session.clone(),
                "root/ada" => session
                    .sub_agent("ada")
                    .unwrap_or_else(|| session.fork(ForkPolicy::default().name("ada")).unwrap()),
                _ => continue,
            };
            let past = second.turn(&open.session, open.turn).unwrap().unwrap();
            let calls = past.batches.into_iter().flat_map(|batch| batch.calls);
            let cancelled: Vec<_> =
                calls.filter(|it| it.is_cancelled && it.end.is_none()).map(|it| it.call.id).collect();
            let outcomes = agent.resume(open.turn).await.unwrap().finish().await.concat();
            let was_cancelled = |it: &&Outcome| cancelled.contains(&it.call_id);
            let run = outcomes.iter().filter(was_cancelled).filter(|it| it.success()).count();
            assert_eq!(run, 0, "{}", shape(&outcomes));
        }
        second.journal.close().unwrap();
        assert_eq!(toolyard_journal::verify(scene.path()).unwrap().findings, []);
        if is_over {
            assert!(records > 10, "{records}");
            return;
        }
    }
}

/// JR-5: what a handler had dispatched through a sub-agent, in a turn of its own, ends with it: the handler is not repeated,
/// and nothing of it stays open; an open batch whose calls have ended is closed, and so is a turn that was cancelled.
#[tokio::test]
async fn nothing_stays_open_for_ever() {
    for records in 1.. {
        let (scene, model) = (Scene::new(), Ledger::default());
        let first = both(&scene, &model, records);
        let yard = with_forks(&first).await;
        let session = yard.engine.session("s");
        let work = async {
            let batch = session.turn().open_batch();
            batch.push(call("pushed", "serial", 1, "ok"));
            let cancelled = session.turn();
            let cancel = async {
                tokio::task::yield_now().await;
                cancelled.cancel();
            };
            let forks =
                session.dispatch(vec![Call::new("forks", "forks", "{}"), call("behind", "serial", 1, "ok")]);
            let of_cancelled =
                cancelled.dispatch(vec![call("x", "serial", 1, "ok"), call("y", "serial", 1, "ok")]);
            tokio::join!(batch.finish(), of_cancelled, cancel, forks);
        };
        let is_over = tokio::select! {
            () = work => true,
            () = first.cut.notified() => false,
        };
        first.journal.close().unwrap();
        let second = both(&scene, &model, usize::MAX);
        let yard = with_forks(&second).await;
        let session = yard.engine.session("s");
        for open in yard.engine.open_turns().unwrap() {
            let past = second.turn(&open.session, open.turn).unwrap().unwrap();
            let has_dispatched = past
                .batches
                .iter()
                .flat_map(|batch| &batch.calls)
                .any(|it| it.has_dispatched && it.end.is_none());
            let outcomes = session.resume(open.turn).await.unwrap().finish().await.concat();
            let code = outcomes.first().and_then(|it| it.error()).map(|error| error.kind);
            if has_dispatched {
                assert_eq!(code, Some(toolyard::ErrorKind::Interrupted), "after {records} records");
            }
        }
        assert_eq!(yard.engine.open_turns().unwrap(), [], "after {records} records");
        let sql = "SELECT count(*) FROM calls WHERE state != 'ended'";
        let open: i64 = scene.sql().query_row(sql, [], |row| row.get(0)).unwrap();
        assert_eq!(open, 0, "after {records} records");
        second.journal.close().unwrap();
        if is_over {
            assert!(records > 15, "{records}");
            return;
        }
    }
}

/// A life with a read whose handler writes through a sub-agent of its own.
async fn with_forks(recorder: &Both) -> Yard {
    let recorder = recorder.clone();
    let forks = |cx: toolyard::ToolContext| async move {
        let agent = cx.fork(ForkPolicy::default())?;
        Ok(shape(&agent.dispatch(vec![call("inner", "serial", 1, "ok")]).await))
    };
    yard(|builder, _| {
        let tool = toolyard::tool_fn(ToolSpec::read("forks"), move |(): (), cx| forks(cx));
        builder.recorder(recorder).tool(tool)
    })
    .await
}
