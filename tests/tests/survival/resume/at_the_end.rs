//! Turns that are taken up while an engine ends, or in a session that cannot be used; and what cannot be recorded.

use super::{crashed_after, life, life_with, resume_in};
use crate::no_hang;
use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use toolyard::{
    Abort, Caller, Drain, Durable, EngineBuilder, ErrorKind, Past, PastTurn, RecordError, Recorder,
    ResumeError, ResumeRecord, SessionId, ToolLayer, ToolSpec,
};
use toolyard_tests::{Ledger, Log, call, kinds, shape};

/// SM-10, JR-8: a turn that is taken up goes on in the next life, if this one ends before it has begun, or while it waits.
#[tokio::test(start_paused = true)]
async fn a_drain_suspends_what_is_taken_up() {
    let calls = vec![call("r", "read", 1000, "ok"), call("w", "serial", 10, "ok")];
    for starts_before in [false, true] {
        let left = crashed_after(5, calls.clone()).await;
        let second = life(&left).await;
        let resumed = second.engine.session("s").resume(1).await.unwrap();
        let quick = Drain::default().finish(Duration::ZERO).grace(Duration::ZERO);
        let outcomes = if starts_before {
            let running = tokio::spawn(resumed.finish());
            tokio::time::sleep(Duration::from_millis(5)).await;
            second.engine.shutdown(quick).await;
            running.await.unwrap()
        } else {
            second.engine.shutdown(quick).await;
            resumed.finish().await
        };
        let is_suspended = outcomes[0][1].error().is_some_and(|error| error.suspended.is_some());
        assert!(is_suspended, "{starts_before}: {}", shape(&outcomes[0]));
        let third = life(&left.crashed()).await;
        let outcomes = no_hang(third.engine.session("s").resume(1).await.unwrap().finish()).await.concat();
        assert!(outcomes[1].success(), "{starts_before}: {}", shape(&outcomes));
        assert_eq!(third.log.started().last().map(String::as_str), Some("w"));
    }
}

/// A ledger that cannot be read, or cannot record that a turn is taken up, as long as it is told so.
#[derive(Clone)]
struct Broken {
    ledger: Ledger,
    unreadable: Arc<AtomicBool>,
    unwritable: Arc<AtomicBool>,
}

impl Broken {
    fn of(ledger: Ledger) -> Self {
        Self { ledger, unreadable: Arc::default(), unwritable: Arc::default() }
    }
}

impl Recorder for Broken {
    fn outlives_engine(&self) -> bool {
        true
    }

    fn begin(&self, epoch: toolyard::event::Epoch) {
        self.ledger.begin(epoch);
    }

    fn past(&self, session: &SessionId) -> Result<Past, RecordError> {
        match self.unreadable.load(Ordering::SeqCst) {
            true => Err(RecordError::new("a page is damaged")),
            false => self.ledger.past(session),
        }
    }

    fn turn(&self, session: &SessionId, turn: u64) -> Result<Option<PastTurn>, RecordError> {
        self.ledger.turn(session, turn)
    }

    fn resumed(&self, record: &ResumeRecord<'_>) -> Durable {
        match self.unwritable.load(Ordering::SeqCst) {
            true => Durable::when(async { Err(RecordError::new("the disk is full")) }),
            false => self.ledger.resumed(record),
        }
    }
}

/// JR-10, JR-8: a session whose past cannot be read takes no calls, and no turn of it is taken up.
#[tokio::test(start_paused = true)]
async fn without_a_past_nothing_is_done() {
    let broken = Broken::of(crashed_after(5, vec![call("w", "serial", 10, "ok")]).await);
    broken.unreadable.store(true, Ordering::SeqCst);
    let yard = toolyard_tests::yard(|builder, _| builder.recorder(broken.clone())).await;
    let session = yard.engine.session("s");
    let outcome = session.call(call("n", "read", 1, "ok")).await;
    assert_eq!(outcome.error().unwrap().reason, Some(toolyard::Reason::Journal));
    let error = session.resume(1).await.unwrap_err();
    assert!(matches!(error, ResumeError::Unreadable { turn: 1, .. }), "{error}");
    drop(session);
    broken.unreadable.store(false, Ordering::SeqCst);
    let resumed = yard.engine.session("s").resume(1).await.unwrap();
    assert_eq!(kinds(&resumed.finish().await.concat()), [Some(ErrorKind::Interrupted)]);
}

/// JR-8: if it cannot be recorded that a turn is taken up, nothing of it starts, and it can be tried again.
#[tokio::test(start_paused = true)]
async fn what_is_not_recorded_can_be_tried_again() {
    let broken = Broken::of(crashed_after(5, vec![call("r", "read", 10, "ok")]).await);
    let yard = toolyard_tests::yard(|builder, _| builder.recorder(broken.clone())).await;
    let session = yard.engine.session("s");
    broken.unwritable.store(true, Ordering::SeqCst);
    let error = session.resume(1).await.unwrap_err();
    assert!(matches!(error, ResumeError::Unrecorded { turn: 1, .. }), "{error}");
    assert!(yard.log.started().is_empty());
    broken.unwritable.store(false, Ordering::SeqCst);
    assert_eq!(kinds(&session.resume(1).await.unwrap().finish().await.concat()), [None]);
}

/// Adds one to the number `ms` of each call, and refuses `never`.
struct AddsOne;

impl ToolLayer for AddsOne {
    fn arguments(&self, _: &ToolSpec, _: &Caller<'_>, args: &Value) -> Result<Option<Value>, Abort> {
        if args["end"] == "never" {
            return Err(Abort::because("not this one"));
        }
        let mut changed = args.clone();
        changed["ms"] = json!(args["ms"].as_u64().unwrap_or_default() + 1);
        Ok(Some(changed))
    }
}

/// JR-1, JR-8: calls are recorded as they were sent, and go through their layers again: what a layer refuses does not run, and
/// none is applied twice.
#[tokio::test(start_paused = true)]
async fn layers_are_passed_anew() {
    let ledger = Ledger::default();
    let layered = |builder: EngineBuilder, _: &Log| builder.layer(AddsOne);
    let first = life_with(&ledger, layered).await;
    let session = first.engine.session("s");
    let calls =
        vec![call("r", "read", 99, "ok"), call("w", "serial", 10, "never"), call("x", "serial", 10, "ok")];
    let running = tokio::spawn(async move { session.dispatch(calls).await });
    tokio::time::sleep(Duration::from_millis(5)).await;
    running.abort();
    // The session, its batch, and nothing behind it.
    for records in 2..=ledger.len() {
        let left = ledger.cut(records);
        let second = life_with(&left, layered).await;
        let Some(turn) = second.engine.open_turns().unwrap().pop() else { continue };
        let sent = left.turn(&SessionId::from("s"), 1).unwrap().unwrap();
        assert_eq!(sent.batches[0].calls[0].call.arguments.to_value()["ms"], 99);
        let outcomes = resume_in(&second.engine.session("s"), turn.turn).await;
        assert_eq!(kinds(&outcomes), [None, Some(ErrorKind::Aborted), None], "{records}");
        assert_eq!(outcomes[0].arguments.to_value()["ms"], 100);
        assert_eq!(second.log.started(), ["r", "x"]);
    }
}

/// ID-2, JR-10: a key stands for what has passed the layers, in the next life too.
#[tokio::test(start_paused = true)]
async fn keys_stand_for_what_has_passed_the_layers() {
    let ledger = Ledger::default();
    let layered = |builder: EngineBuilder, _: &Log| builder.layer(AddsOne);
    let first = life_with(&ledger, layered).await;
    let pay = |id: &str| toolyard_tests::keyed("k", call(id, "serial", 10, "ok"));
    assert!(first.engine.session("s").call(pay("a")).await.success());
    let second = life_with(&ledger.crashed(), layered).await;
    let again = second.engine.session("s").call(pay("b")).await;
    assert_eq!((again.to_text(), again.dedupe), ("a".to_owned(), toolyard::Dedupe::Replayed));
}

/// SC-4, JR-1: a call that is cancelled before a recorder knows of it is not run by the next life.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_cancelled_before_its_record_does_not_run() {
    let ledger = Ledger::default();
    let first = life(&ledger).await;
    let session = first.engine.session("s");
    let turn = session.turn();
    let batch = turn.open_batch();
    batch.push(call("a", "serial", 10, "ok"));
    batch.push(call("b", "serial", 10, "ok"));
    // Nothing is taken in before this task waits.
    assert!(turn.cancel_call("b"));
    session.recorded().await.unwrap();
    tokio::time::sleep(Duration::from_millis(5)).await;
    let goes_on = toolyard::OnInterrupted::Continue;
    for records in 1..=ledger.len() {
        let left = ledger.cut(records);
        let second = life_with(&left, |builder, _| builder.on_interrupted(goes_on)).await;
        let known = left.turn(&SessionId::from("s"), turn.number()).unwrap();
        let is_known = known.is_some_and(|turn| turn.batches.iter().any(|batch| batch.calls.len() > 1));
        if is_known {
            let outcomes = resume_in(&second.engine.session("s"), turn.number()).await;
            assert_eq!(kinds(&outcomes)[1], Some(ErrorKind::Cancelled), "{records}: {}", shape(&outcomes));
            assert!(!second.log.started().contains(&"b".to_owned()), "{records}");
        }
    }
    assert!(ledger.len() > 4);
}
