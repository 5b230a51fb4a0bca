//! ID-9, JR-10: idempotency keys in the next life of an engine.

use super::{crashed_after, life, life_with, resume};
use crate::no_hang;
use serde_json::Value;
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use toolyard::{
    Answer, ApprovalRequest, Approver, Call, ConfirmationMode, Confirmations, Dedupe, Drain, EngineBuilder,
    ErrorKind, ToolClass, ToolContext, ToolError, ToolSpec, async_trait, tool_fn,
};
use toolyard_tests::{Ledger, Log, call, keyed, kinds};

/// JR-10: a named session knows its keys, with the results of what has ended; other arguments do not fit.
#[tokio::test(start_paused = true)]
async fn keys_outlive_their_engine() {
    let ledger = Ledger::default();
    let first = life(&ledger).await;
    let outcome = first.engine.session("s").call(keyed("k", call("a", "serial", 10, "ok"))).await;
    assert!(outcome.success());
    let second = life(&ledger.crashed()).await;
    let session = second.engine.session("s");
    let again = session.call(keyed("k", call("b", "serial", 10, "ok"))).await;
    assert_eq!((again.to_text(), again.dedupe), ("a".to_owned(), Dedupe::Replayed));
    let other = session.call(keyed("k", call("c", "serial", 11, "ok"))).await;
    assert_eq!(kinds(&[other]), [Some(ErrorKind::KeyMismatch)]);
    tokio::time::sleep(Duration::from_secs(61)).await;
    let late = session.call(keyed("k", call("d", "serial", 10, "ok"))).await;
    assert_eq!(kinds(&[late]), [Some(ErrorKind::AlreadyExecuted)]);
    let elsewhere = second.engine.session("t").call(keyed("k", call("e", "serial", 10, "ok"))).await;
    assert!(elsewhere.success(), "keys are those of a session");
    assert_eq!(second.log.started(), ["e"]);
}

/// ID-9: a key under which something was running is not run again, before its turn is taken up and after.
#[tokio::test(start_paused = true)]
async fn a_key_that_was_in_flight_is_interrupted() {
    let left = crashed_after(5, vec![keyed("k", call("a", "serial", 10, "ok"))]).await;
    let yard = life(&left).await;
    let session = yard.engine.session("s");
    let same = || keyed("k", call("b", "serial", 10, "ok"));
    assert_eq!(kinds(&[session.call(same()).await]), [Some(ErrorKind::Interrupted)]);
    assert_eq!(kinds(&resume(&yard.engine).await), [Some(ErrorKind::Interrupted)]);
    assert_eq!(kinds(&[session.call(same()).await]), [Some(ErrorKind::Interrupted)]);
    assert_eq!(yard.log.started(), Vec::<String>::new());
}

/// ID-9, JR-5: a call that may be repeated runs again under its key.
#[tokio::test(start_paused = true)]
async fn a_repeatable_call_runs_again_under_its_key() {
    let left = crashed_after(5, vec![keyed("k", call("a", "idem", 10, "ok"))]).await;
    let yard = life(&left).await;
    assert_eq!(kinds(&resume(&yard.engine).await), [None]);
    let again = yard.engine.session("s").call(keyed("k", call("b", "idem", 10, "ok"))).await;
    assert_eq!((again.to_text(), again.dedupe), ("a".to_owned(), Dedupe::Replayed));
    assert_eq!(yard.log.started(), ["a"]);
}

/// ID-2, JR-10: the key of a call that ran with what an approver has changed stands for what was sent: whoever sends that again
/// learns what became of it, once its turn is resumed too.
#[tokio::test(start_paused = true)]
async fn a_key_stands_for_what_was_sent_not_for_what_an_approver_made_of_it() {
    let edited = || {
        let approver = EditsTime;
        move |builder: toolyard::EngineBuilder, _: &toolyard_tests::Log| {
            let ask = Confirmations::auto().tool("serial", ConfirmationMode::Prompt);
            builder.confirmations(ask).approver(approver)
        }
    };
    let pay = |id: &str| keyed("k", call(id, "serial", 10, "ok"));
    let ledger = Ledger::default();
    let first = life_with(&ledger, edited()).await;
    let session = first.engine.session("s");
    tokio::spawn(async move { session.dispatch(vec![pay("a")]).await });
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(first.log.started(), ["a"]);
    let second = life_with(&ledger.crashed(), edited()).await;
    let session = second.engine.session("s");
    let interrupted = Some(ErrorKind::Interrupted);
    assert_eq!(kinds(&[session.call(pay("b")).await]), [interrupted]);
    assert_eq!(kinds(&resume(&second.engine).await), [interrupted]);
    assert_eq!(kinds(&[session.call(pay("c")).await]), [interrupted]);
}

/// Says yes, with more time than was asked for.
#[derive(Clone)]
struct EditsTime;

#[async_trait]
impl Approver for EditsTime {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        let mut args = serde_json::Value::clone(request.arguments());
        args["ms"] = 1000.into();
        Answer::edit("ada", args)
    }
}

/// CL-3, JR-5: a call that was running, and ends before it is started again, leaves its key to the next one; what is behind
/// both starts once that one has ended.
#[tokio::test(start_paused = true)]
async fn a_key_that_is_left_before_its_call_starts_again_holds_nothing_back() {
    let calls = || {
        vec![
            keyed("k", call("a", "read", 1000, "ok")),
            keyed("k", call("b", "read", 1000, "ok")),
            call("behind", "serial", 10, "ok"),
        ]
    };
    let left = crashed_after(5, calls()).await;
    let yard = life(&left).await;
    yard.engine.pause(ToolClass::Read).await.unwrap();
    let session = yard.engine.session("s");
    let resumed = session.resume(1).await.unwrap();
    let finished = tokio::spawn(resumed.finish());
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(session.cancel_call("a"));
    yard.engine.resume(ToolClass::Read).await.unwrap();
    let outcomes = no_hang(finished).await.unwrap().concat();
    assert_eq!(kinds(&outcomes), [Some(ErrorKind::Cancelled), None, None]);
    assert_eq!(yard.log.started(), ["b", "behind"]);
}

/// I5, JR-10: what a key stands for is what came of the call that was started last under it, also if another one came later,
/// which a drain has ended before it changed anything: the earlier one was taken up since.
#[tokio::test(start_paused = true)]
async fn a_key_is_that_of_the_call_that_was_started_last() {
    let ran = Arc::new(AtomicUsize::new(0));
    let change = |builder: EngineBuilder, _: &Log| {
        let ran = ran.clone();
        builder.tool(tool_fn(ToolSpec::write("save"), move |_: Value, cx: ToolContext| {
            let ran = ran.clone();
            async move {
                if cx.call_id().as_str() == "b" {
                    return Err(ToolError::transient("busy").no_side_effect());
                }
                ran.fetch_add(1, Ordering::Relaxed);
                Ok("saved")
            }
        }))
    };
    let save = |id: &str| keyed("k", Call::new(id, "save", "{}"));
    let ledger = Ledger::default();
    let first = life_with(&ledger, change).await;
    first.engine.pause(ToolClass::Serial).await.unwrap();
    let (session, waits) = (first.engine.session("s"), save("a"));
    let waiting = tokio::spawn(async move { session.dispatch(vec![waits]).await });
    tokio::time::sleep(Duration::from_millis(5)).await;
    let left = ledger.crashed();
    waiting.abort();

    // Sent again, it is started, and a drain ends it while it waits for its next attempt.
    let second = life_with(&left, change).await;
    let (session, engine, again) = (second.engine.session("s"), second.engine.clone(), save("b"));
    let drain = async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        engine.shutdown(Drain::default().finish(Duration::ZERO).grace(Duration::ZERO)).await;
    };
    let (ended, _) = no_hang(async { tokio::join!(session.call(again), drain) }).await;
    assert_eq!((kinds(&[ended]), ran.load(Ordering::Relaxed)), (vec![Some(ErrorKind::ShuttingDown)], 0));

    let left = left.crashed();
    let third = life_with(&left, change).await;
    assert_eq!(kinds(&resume(&third.engine).await), [None]);
    let left = left.crashed();
    let fourth = life_with(&left, change).await;
    let again = fourth.engine.session("s").call(save("c")).await;
    assert_eq!((again.dedupe, ran.load(Ordering::Relaxed)), (Dedupe::Replayed, 1));
}
