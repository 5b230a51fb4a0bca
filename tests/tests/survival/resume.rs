//! JR-5 to JR-11: turns that an engine has left open, taken up by the next one.

mod approvals;
mod at_the_end;
mod budgets;
mod cuts;
mod forks;
mod keys;
mod reconcile;

use super::no_hang;
use std::time::Duration;
use toolyard::{
    Call, Dedupe, Effect, Engine, EngineBuilder, ErrorKind, Outcome, PolicyRules, ResumeError, Rule, Session,
    ToolSpec,
};
use toolyard_tests::{Ledger, Log, Yard, call, scripted, shape, yard};

/// An engine that records in this ledger, with a further tool `idem` that may be repeated.
async fn life(ledger: &Ledger) -> Yard {
    life_with(ledger, |builder, _| builder).await
}

async fn life_with(ledger: &Ledger, change: impl FnOnce(EngineBuilder, &Log) -> EngineBuilder) -> Yard {
    yard(|builder, log| {
        let idem = ToolSpec::network("idem").concurrent().idempotent();
        change(builder.recorder(ledger.clone()).tool(scripted(idem, log)), log)
    })
    .await
}

/// Runs a batch in the session `s`, and ends the engine's life after so many milliseconds. Returns what the next one finds.
async fn crashed_after(ms: u64, calls: Vec<Call>) -> Ledger {
    let ledger = Ledger::default();
    let yard = life(&ledger).await;
    let session = yard.engine.session("s");
    let running = tokio::spawn(async move { session.dispatch(calls).await });
    tokio::time::sleep(Duration::from_millis(ms)).await;
    let left = ledger.crashed();
    running.abort();
    left
}

/// Takes up the first open turn.
async fn resume(engine: &Engine) -> Vec<Outcome> {
    let open = engine.open_turns().unwrap().remove(0);
    resume_in(&engine.session(open.session), open.turn).await
}

async fn resume_in(session: &Session, turn: u64) -> Vec<Outcome> {
    no_hang(session.resume(turn).await.unwrap().finish()).await.concat()
}

/// JR-8: what has ended has its result, what was running and changes something is interrupted, and what would have waited
/// for it is not started.
#[tokio::test(start_paused = true)]
async fn nothing_runs_behind_a_call_of_which_nobody_knows() {
    let calls = vec![
        call("r", "read", 10, "ok"),
        call("w", "serial", 10, "ok"),
        call("x", "serial", 10, "ok"),
        call("late", "read", 10, "ok"),
    ];
    let left = crashed_after(15, calls).await;
    let yard = life(&left).await;
    let outcomes = resume(&yard.engine).await;
    assert_eq!(shape(&outcomes), "r ok, w interrupted, x cancelled, late cancelled");
    assert_eq!(yard.log.started(), Vec::<String>::new());
    let reasons = outcomes.iter().map(|outcome| outcome.error().and_then(|error| error.reason));
    let unknown = Some(toolyard::Reason::PredecessorUnknown);
    assert_eq!(reasons.collect::<Vec<_>>(), [None, None, unknown, unknown]);
    assert!(yard.engine.open_turns().unwrap().is_empty(), "the turn has ended");
    yard.events.check();
}

/// JR-8: an engine that is told so runs what is behind it.
#[tokio::test(start_paused = true)]
async fn an_engine_may_go_on_behind_it() {
    let left = crashed_after(5, vec![call("w", "serial", 10, "ok"), call("x", "serial", 10, "ok")]).await;
    let goes_on = toolyard::OnInterrupted::Continue;
    let yard = life_with(&left, |builder, _| builder.on_interrupted(goes_on)).await;
    assert_eq!(shape(&resume(&yard.engine).await), "w interrupted, x ok");
    assert_eq!(yard.log.started(), ["x"]);
}

/// JR-5: a read that was running runs, as if it had not been started; what changes something and may be repeated runs again,
/// and the number of its attempt goes on.
#[tokio::test(start_paused = true)]
async fn what_may_be_repeated_runs_again() {
    let left = crashed_after(5, vec![call("r", "read", 10, "ok"), call("i", "idem", 10, "ok")]).await;
    let first = crashed_after(15, vec![call("r", "read", 10, "ok"), call("i", "idem", 10, "ok")]).await;
    for (left, started, attempts) in
        [(left, ["r", "i"].as_slice(), [1, 1]), (first, ["i"].as_slice(), [1, 2])]
    {
        let yard = life(&left).await;
        let outcomes = resume(&yard.engine).await;
        assert_eq!(shape(&outcomes), "r ok, i ok");
        assert_eq!(yard.log.started(), started);
        assert_eq!(outcomes.iter().map(|outcome| outcome.attempts).collect::<Vec<_>>(), attempts);
        yard.events.check();
    }
}

/// JR-10, JR-11: the numbers of a session go on, and it says what it goes on from.
#[tokio::test(start_paused = true)]
async fn a_session_goes_on_where_it_was() {
    let left = crashed_after(5, vec![call("w", "serial", 10, "ok")]).await;
    let yard = life(&left).await;
    let session = yard.engine.session("s");
    assert_eq!(session.turn().number(), 2);
    let recovered = yard.events.events().into_iter().find_map(|event| match event.kind {
        toolyard::EventKind::SessionRecovered { epoch, interrupted, open } => {
            Some((epoch, interrupted, open))
        }
        _ => None,
    });
    assert_eq!(recovered, Some((yard.engine.epoch(), 1, 1)));
    assert_eq!(yard.engine.session("other").turn().number(), 1);
}

/// JR-8: a turn is taken up once in a life, by its own agent, from outside; what has ended has its results again.
#[tokio::test(start_paused = true)]
async fn a_turn_is_taken_up_once() {
    let left = crashed_after(15, vec![call("r", "read", 10, "ok"), call("w", "serial", 10, "ok")]).await;
    let yard = life(&left).await;
    let session = yard.engine.session("s");
    let error = session.resume(7).await.unwrap_err();
    assert!(matches!(error, ResumeError::Unknown { turn: 7 }), "{error}");
    let resumed = session.resume(1).await.unwrap();
    let error = session.resume(1).await.unwrap_err();
    assert!(matches!(error, ResumeError::InThisLife { turn: 1 }), "{error}");
    let outcomes = no_hang(resumed.finish()).await.concat();
    assert_eq!(shape(&outcomes), "r ok, w interrupted");

    // Another crash, after the turn has ended.
    let next = life(&left.crashed()).await;
    assert!(next.engine.open_turns().unwrap().is_empty());
    let again = resume_in(&next.engine.session("s"), 1).await;
    assert_eq!(shape(&again), "r ok, w interrupted");
    assert_eq!(next.log.started(), Vec::<String>::new());
    let fresh = next.engine.session("s").dispatch(vec![call("n", "read", 1, "ok")]).await;
    assert_eq!(shape(&fresh), "n ok");
}

/// JR-8: without a recorder there is nothing to take up.
#[tokio::test(start_paused = true)]
async fn an_engine_without_a_recorder_resumes_nothing() {
    let yard = yard(|builder, _| builder).await;
    assert!(yard.engine.open_turns().unwrap().is_empty());
    let error = yard.engine.session("s").resume(1).await.unwrap_err();
    assert!(matches!(error, ResumeError::NoRecorder), "{error}");
}

/// SC-1, JR-1: a call that was cancelled is not run by the next life.
#[tokio::test(start_paused = true)]
async fn what_was_cancelled_does_not_run() {
    let ledger = Ledger::default();
    let yard = life(&ledger).await;
    let session = yard.engine.session("s");
    let turn = std::sync::Arc::new(session.turn());
    let running = {
        let turn = turn.clone();
        let calls =
            vec![call("a", "serial", 10, "ok"), call("b", "serial", 10, "ok"), call("c", "read", 10, "ok")];
        tokio::spawn(async move { turn.dispatch(calls).await })
    };
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(turn.cancel_call("c"));
    // Its end is lost, the cancel is not.
    let left = ledger.cut(ledger.len() - 1);
    running.abort();
    let goes_on = toolyard::OnInterrupted::Continue;
    let next = life_with(&left, |builder, _| builder.on_interrupted(goes_on)).await;
    assert_eq!(shape(&resume(&next.engine).await), "a interrupted, b ok, c cancelled");
    assert_eq!(next.log.started(), ["b"]);
}

/// JR-5: a call that was cancelled while it ran has run, although it could have run again.
#[tokio::test(start_paused = true)]
async fn what_was_cancelled_while_it_ran_is_not_said_to_be_not_started() {
    let ledger = Ledger::default();
    let yard = life(&ledger).await;
    let turn = std::sync::Arc::new(yard.engine.session("s").turn());
    let running = {
        let turn = turn.clone();
        tokio::spawn(async move { turn.dispatch(vec![call("i", "idem", 60_000, "ok")]).await })
    };
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(turn.cancel_call("i"));
    let left = ledger.crashed();
    running.abort();
    let next = life(&left).await;
    let outcomes = resume(&next.engine).await;
    let error = outcomes[0].error().unwrap();
    assert_eq!((error.kind, error.attempts), (toolyard::ErrorKind::Cancelled, 1));
    assert_eq!(error.effect, toolyard::Effect::Unknown);
    assert_eq!(next.log.started(), Vec::<String>::new());
    next.events.check();
}

/// JR-8, JR-6: a read whose handler had dispatched something may have changed something: nothing runs behind it.
#[tokio::test(start_paused = true)]
async fn a_read_that_has_dispatched_holds_back_what_is_behind_it() {
    let nests = |builder: EngineBuilder, _: &Log| {
        let nest = |cx: toolyard::ToolContext| async move {
            cx.dispatch(toolyard::Batch::new(vec![call("inner", "serial", 1000, "ok")])).await;
            Ok("nested")
        };
        builder.tool(toolyard::tool_fn(ToolSpec::read("nests"), move |(): (), cx| nest(cx)))
    };
    let ledger = Ledger::default();
    let first = life_with(&ledger, nests).await;
    let session = first.engine.session("s");
    let calls = vec![Call::new("n", "nests", "{}"), call("w", "serial", 10, "ok")];
    tokio::spawn(async move { session.dispatch(calls).await });
    tokio::time::sleep(Duration::from_millis(500)).await;
    let second = life_with(&ledger.crashed(), nests).await;
    assert_eq!(shape(&resume(&second.engine).await), "n interrupted, w cancelled");
}

/// JR-5, SC-4: a call that earlier lives have started, and that is cancelled before it is tried again, has its attempts, and
/// nobody says that it has done nothing.
#[tokio::test(start_paused = true)]
async fn a_cancel_does_not_undo_what_earlier_lives_have_started() {
    let left = crashed_after(5, vec![call("a", "idem", 10, "ok")]).await;
    let yard = life(&left).await;
    let session = yard.engine.session("s");
    let resumed = session.resume(1).await.unwrap();
    resumed.turn().cancel();
    let ended = no_hang(resumed.finish()).await.concat();
    let error = ended[0].error().unwrap();
    assert_eq!((error.kind, ended[0].attempts, error.effect), (ErrorKind::Cancelled, 1, Effect::Unknown));
    assert!(yard.log.started().is_empty());
    yard.events.check();
}

/// JR-5, PO-1: a call that earlier lives have started, and that the gate refuses now, is not said to have done nothing.
#[tokio::test(start_paused = true)]
async fn a_no_at_the_gate_does_not_undo_what_earlier_lives_have_started() {
    let left = crashed_after(5, vec![call("a", "idem", 10, "ok")]).await;
    let rules = PolicyRules::new(Rule::allow()).tool("idem", Rule::Deny);
    let yard = life_with(&left, |builder, _| builder.policy(rules)).await;
    let ended = resume(&yard.engine).await;
    let error = ended[0].error().unwrap();
    assert_eq!(
        (error.kind, ended[0].attempts, error.effect),
        (ErrorKind::PermissionDenied, 1, Effect::Unknown)
    );
    assert!(yard.log.started().is_empty());
    yard.events.check();
}

/// CL-8, JR-5: a call that came again within its turn, and was answered, does not run in another life, whichever record of
/// that is the last.
#[tokio::test(start_paused = true)]
async fn what_was_answered_again_does_not_run_in_another_life() {
    let ledger = Ledger::default();
    let turn = life(&ledger).await.engine.session("s").turn();
    let first = call("a", "serial", 1, "ok");
    turn.dispatch(vec![first.clone()]).await;
    let again = turn.resend(vec![first, call("b", "serial", 1, "ok")]).await;
    assert_eq!((again[0].dedupe, again.len()), (Dedupe::Replayed, 2));
    let (mut has_begun, mut resumed) = (false, 0);
    for records in 1..=ledger.len() {
        let yard = life(&ledger.cut(records)).await;
        for open in yard.engine.open_turns().unwrap() {
            resume_in(&yard.engine.session(open.session), open.turn).await;
            let runs = yard.log.started().iter().any(|it| it == "a");
            assert!(!(has_begun && runs), "after {records} records: {:?}", yard.log.started());
            (has_begun, resumed) = (has_begun || !runs, resumed + 1);
            yard.events.check();
        }
    }
    assert!(has_begun && resumed > 4, "{resumed}");
}
