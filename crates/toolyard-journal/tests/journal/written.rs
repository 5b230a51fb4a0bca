//! What is in the file, and when (JR-1, JR-2).

use crate::scene::{Scene, end, engine, text};
use serde_json::json;
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};
use tokio::sync::Notify;
use toolyard::{
    Batch, Budget, Budgets, Call, Dedupe, Drain, Durable, ErrorKind, ForkPolicy, Recorder, SessionOptions,
    ToolContext, ToolError, ToolSpec, tool_fn,
};
use toolyard_journal::{CallRow, CallState, CancelRow, Reader, VIEWS};

/// JR-1: the attempt of a write is in the file before its handler runs, with what it runs with.
#[tokio::test]
async fn an_attempt_is_in_the_file_before_its_handler_runs() {
    let scene = Scene::new();
    let (path, seen) = (scene.path(), Arc::new(Mutex::new(None::<CallRow>)));
    let looks = Arc::clone(&seen);
    let charge = tool_fn(ToolSpec::write("charge").cost(3), move |_: serde_json::Value, _: ToolContext| {
        let (path, looks) = (path.clone(), Arc::clone(&looks));
        async move {
            let turn = Reader::open(path).unwrap().turn("demo", 1).unwrap().unwrap();
            *looks.lock().unwrap() = Some(turn.batches[0].calls[0].clone());
            Ok("charged")
        }
    });
    let engine = engine(&scene.open()).tool(charge).build().await.unwrap();
    let call = Call::new("call_1", "charge", r#"{ "cents": 500 }"#).idempotency_key("order-17");
    assert!(engine.session("demo").call(call.clone()).await.status.is_ok());
    let seen = seen.lock().unwrap().take().unwrap();
    assert_eq!(seen.call, call);
    let CallState::Attempted { attempts } = seen.state else { panic!("{:?}", seen.state) };
    assert_eq!(attempts.len(), 1);
    assert_eq!((attempts[0].attempt, attempts[0].key.as_deref()), (1, Some("order-17")));
    assert_eq!((attempts[0].cost, &attempts[0].arguments), (Some(3), &json!({"cents": 500})));
}

/// JR-1: the result of a write is in the file before anybody is given it.
#[tokio::test]
async fn a_result_is_in_the_file_before_it_is_given() {
    let scene = Scene::new();
    let engine = engine(&scene.open()).build().await.unwrap();
    let session = engine.session("demo");
    for number in 1..=5 {
        let given = session.call(Call::new("call_1", "save", "{}")).await;
        let turn = scene.turn(number);
        let state = &turn.batches[0].calls[0].state;
        assert_eq!(
            (text(state).as_str(), end(state).started, end(state).dedupe),
            ("saved", 1, Dedupe::Fresh)
        );
        assert_eq!(given.status.unwrap(), *end(state).status.as_ref().unwrap());
    }
}

/// JR-1: calls are kept as they came, those included that do not run, and so are the ends of attempts that are retried.
#[tokio::test]
async fn calls_are_kept_as_they_came() {
    let scene = Scene::new();
    let tries = Arc::new(AtomicUsize::new(0));
    let flaky = tool_fn(ToolSpec::write("flaky").idempotent(), move |(): (), _: ToolContext| {
        let is_first = tries.fetch_add(1, Ordering::SeqCst) == 0;
        async move { if is_first { Err(ToolError::transient("busy")) } else { Ok("at last") } }
    });
    let engine = engine(&scene.open()).tool(flaky).build().await.unwrap();
    let mut odd = Call::new("call_2", "save", "{broken").deadline(std::time::Duration::from_secs(9));
    odd.provider_id = Some("item_2".into());
    let calls = vec![Call::new("call_1", "flaky", json!({})), odd, Call::new("call_3", "nothing", "{}")];
    let batch = Batch::new(calls.clone()).of_request("request-1");
    engine.session("demo").dispatch(batch).await;
    let turn = scene.turn(1);
    let batch = &turn.batches[0];
    assert_eq!((batch.request.as_deref(), batch.is_open, batch.parent), (Some("request-1"), false, None));
    let kept: Vec<_> = batch.calls.iter().map(|row| row.call.clone()).collect();
    assert_eq!(kept, calls);
    let flaky = end(&batch.calls[0].state);
    assert_eq!((flaky.started, flaky.attempts.len()), (2, 2));
    let first = flaky.attempts[0].end.as_ref().unwrap();
    assert_eq!((first.status.as_ref().unwrap_err().kind, first.is_retried), (ErrorKind::Transient, true));
    let kinds: Vec<_> =
        batch.calls[1..].iter().map(|row| end(&row.state).status.as_ref().unwrap_err().kind).collect();
    assert_eq!(kinds, [ErrorKind::InvalidInput, ErrorKind::NotFound]);
}

/// JR-1: open batches, sub-agents, nested calls and cancels are kept.
#[tokio::test]
async fn batches_that_grow_forks_and_cancels_are_kept() {
    let scene = Scene::new();
    let engine = engine(&scene.open()).build().await.unwrap();
    let session = engine.session("demo");
    let open = session.open_batch();
    open.push(Call::new("call_1", "save", "{}"));
    open.push(Call::new("call_2", "save", "{}"));
    assert_eq!(open.finish().await.len(), 2);
    let fork = session.fork(ForkPolicy::default().name("researcher")).unwrap();
    fork.call(Call::new("call_3", "save", "{}")).await;
    let turn = session.turn();
    let number = turn.number();
    turn.cancel();
    session.recorded().await.unwrap();
    let reader = scene.reader();
    let first = reader.turn("demo", 1).unwrap().unwrap();
    assert_eq!((first.batches[0].calls.len(), first.batches[0].is_open), (2, false));
    let sessions = reader.sessions().unwrap();
    assert!(sessions[0].is_named && sessions[0].forks[0].is_named);
    assert_eq!(sessions[0].forks[0].agent.as_str(), "root/researcher");
    let agent = toolyard::AgentPath::root();
    assert!(first.cancels.contains(&CancelRow::Turn { agent, turn: number }));
    assert_eq!(reader.open_turns().unwrap(), []);
}

/// JR-2: at most three rows a call, an attempt and a retry included; and the documented views can be read.
#[tokio::test]
async fn a_call_is_two_rows_and_its_views_can_be_read() {
    let scene = Scene::new();
    let journal = scene.open();
    let engine = engine(&journal).build().await.unwrap();
    let calls = (0..10).map(|n| Call::new(format!("call_{n}"), "save", "{}"));
    engine.session("demo").dispatch(Batch::new(calls.collect())).await;
    engine.shutdown(Drain::default()).await;
    journal.close().unwrap();
    let db = scene.sql();
    let count = |table: &str| -> i64 {
        db.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    let made = ["call_rows", "attempt_rows", "question_rows", "answer_rows", "verdict_rows", "cancel_rows"]
        .map(count);
    assert_eq!(made, [10, 10, 0, 0, 0, 0]);
    assert_eq!(VIEWS.map(count), [1, 1, 10, 10, 0, 1, 0, 1, 0, 0]);
    let states: i64 = db
        .query_row("SELECT count(*) FROM calls WHERE state = 'ended' AND code IS NULL", [], |row| row.get(0))
        .unwrap();
    assert_eq!(states, 10);
}

/// JR-1: which calls a cancel of all in flight has reached is in the file, and that a later one was not.
#[tokio::test]
async fn what_a_cancel_has_reached_is_kept() {
    let scene = Scene::new();
    let journal = scene.open();
    let (entered, leaves) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (enters, left) = (Arc::clone(&entered), Arc::clone(&leaves));
    let hold = tool_fn(ToolSpec::write("hold"), move |(): (), _: ToolContext| {
        let (enters, left) = (Arc::clone(&enters), Arc::clone(&left));
        async move {
            enters.notify_one();
            left.notified().await;
            Ok("held")
        }
    });
    let engine = engine(&journal).tool(hold).build().await.unwrap();
    let session = engine.session("demo");
    let held = session.call(Call::new("call_1", "hold", "{}"));
    let beside = async {
        entered.notified().await;
        assert_eq!(session.cancel_calls(), 1);
        session.recorded().await.unwrap();
        assert!(session.call(Call::new("call_2", "look", "{}")).await.status.is_ok());
        let Durable::When(given) = journal.flush() else { panic!("a flush is waited for") };
        given.await.unwrap();
        let first = scene.turn(1).batches[0].calls[0].clone();
        assert!(first.is_cancelled && matches!(first.state, CallState::Attempted { .. }), "{first:?}");
        assert!(!scene.turn(2).batches[0].calls[0].is_cancelled);
        leaves.notify_one();
    };
    tokio::join!(held, beside);
    let sql = "SELECT group_concat(call_id) FROM calls WHERE is_cancelled";
    let cancelled: String = scene.sql().query_row(sql, [], |row| row.get(0)).unwrap();
    assert_eq!(cancelled, "call_1");
}

/// JR-1: the settings of a session are kept, its budgets among them, so that whoever goes on with it knows its limits.
#[tokio::test]
async fn budgets_are_kept() {
    let scene = Scene::new();
    let engine = engine(&scene.open()).build().await.unwrap();
    let budgets = Budgets::default().turn(Budget::calls(20)).tree(Budget::calls(500).with_cost(10_000));
    let session = engine.session_with("demo", SessionOptions::default().budgets(budgets));
    engine.session("other").recorded().await.unwrap();
    session.recorded().await.unwrap();
    let sessions = scene.reader().sessions().unwrap();
    let of = |name: &str| {
        let row = sessions.iter().find(|row| row.session.as_str() == name).unwrap();
        serde_json::from_value::<Option<Budgets>>(row.terms["budgets"].clone()).unwrap()
    };
    assert_eq!((of("demo"), of("other")), (Some(budgets), None));
}
