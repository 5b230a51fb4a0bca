//! The doubles themselves (KT-6).

use super::{EventRecorder, Reply, ScriptedApprover, ScriptedTool};
use crate::engine::Engine;
use std::{panic::catch_unwind, time::Duration};
use toolyard_core::{Answer, Call, ErrorKind, Receipt, RetryPolicy, ToolError, ToolSpec};

const SECOND: Duration = Duration::from_secs(1);

async fn engine(tools: &[&ScriptedTool], person: &ScriptedApprover) -> (Engine, EventRecorder) {
    let events = EventRecorder::default();
    let builder = tools.iter().fold(Engine::builder(), |builder, tool| builder.tool((*tool).clone()));
    (builder.approver(person.clone()).events(events.clone()).build().await.unwrap(), events)
}

/// KT-6: replies are given in turn, attempt by attempt, and the last one from then on.
#[tokio::test(start_paused = true)]
async fn a_scripted_tool_replies_in_turn() {
    let spec = ToolSpec::read("tool").retry(RetryPolicy::default().with_max_attempts(2)).timeout(60 * SECOND);
    let tool = ScriptedTool::new(spec)
        .then(Reply::error(ToolError::transient("busy")))
        .then(Reply::text("second").after(SECOND))
        .then(Reply::panic("told to"))
        .then(Reply::when_cancelled())
        .then(Reply::never());
    let (engine, events) = engine(&[&tool], &ScriptedApprover::never()).await;
    let session = engine.session("s");
    let first = session.call(Call::new("first", "tool", r#"{"n": 1}"#)).await;
    assert_eq!((first.to_text().as_str(), first.attempts), ("second", 2));
    let kind = async |call| session.call(call).await.error().map(|error| error.kind);
    assert_eq!(kind(Call::new("panics", "tool", "{}")).await, Some(ErrorKind::Panic));
    let turn = session.turn();
    let cancel = async {
        tokio::time::sleep(SECOND).await;
        turn.cancel();
    };
    let (cancelled, ()) = tokio::join!(turn.dispatch(vec![Call::new("stops", "tool", "{}")]), cancel);
    assert_eq!(cancelled[0].error().map(|error| error.kind), Some(ErrorKind::Cancelled));
    assert_eq!(kind(Call::new("never", "tool", "{}")).await, Some(ErrorKind::Timeout));
    let seen = tool.seen();
    let attempts: Vec<_> = seen.iter().map(|seen| (seen.call_id.as_str(), seen.attempt)).collect();
    assert_eq!(attempts[..3], [("first", 1), ("first", 2), ("panics", 1)]);
    assert_eq!(seen[0].arguments, serde_json::json!({"n": 1}));
    assert_eq!(seen[1].to.unwrap() - seen[1].from, SECOND);
    assert_eq!((tool.running(), tool.most_at_once()), (0, 1));
    events.check();
}

/// KT-6: the assertions of the recorder hold for what happened and fail for what did not.
#[tokio::test(start_paused = true)]
async fn the_recorder_tells_what_happened() {
    let read = ScriptedTool::new(ToolSpec::read("read")).then(Reply::text("").after(SECOND));
    let write = ScriptedTool::new(ToolSpec::write("write")).then(Reply::text("").after(SECOND));
    let (engine, events) = engine(&[&read, &write], &ScriptedApprover::new([Answer::allow("ada")])).await;
    let calls = [("a", "read"), ("b", "read"), ("c", "write")].map(|(id, tool)| Call::new(id, tool, "{}"));
    engine.session("s").dispatch(calls.to_vec()).await;
    events.assert_overlap("a", "b");
    events.assert_no_overlap("b", "c");
    events.assert_ran_before("a", "c");
    events.assert_one_end_per_call();
    events.check();
    let fails = |assertion: &(dyn Fn() + std::panic::RefUnwindSafe)| catch_unwind(assertion).is_err();
    let events = std::panic::AssertUnwindSafe(&events);
    assert!(fails(&|| events.assert_overlap("a", "c")));
    assert!(fails(&|| events.assert_no_overlap("a", "b")));
    assert!(fails(&|| events.assert_ran_before("c", "a")));
    assert!(fails(&|| events.assert_ran_before("a", "unknown")));
    let end = events.events().into_iter().find(|event| event.kind.is_terminal()).unwrap();
    crate::EventSink::accept(*events, &end);
    assert!(fails(&|| events.assert_one_end_per_call()));
    assert!(fails(&|| events.check()));
}

/// KT-6: answers are given in turn, the last one from then on, or never; what was asked is remembered.
#[tokio::test(start_paused = true)]
async fn a_scripted_approver_answers_in_turn() {
    let write = ScriptedTool::new(ToolSpec::write("write"));
    let person = ScriptedApprover::new([Answer::deny("ada"), Answer::allow("ada")]);
    let (engine, _) = self::engine(&[&write], &person).await;
    let session = engine.session("s");
    let mut ends = Vec::new();
    for id in ["no", "yes", "again"] {
        ends.push(session.call(Call::new(id, "write", "{}")).await.success());
    }
    assert_eq!(ends, [false, true, true]);
    let asked = person.asked();
    assert_eq!(
        asked.iter().map(|request| request.call_id().as_str()).collect::<Vec<_>>(),
        ["no", "yes", "again"]
    );
    assert!(person.receipts().iter().all(|receipt| *receipt == Receipt::Taken));
    let silent = ScriptedApprover::never();
    let (engine, _) = self::engine(&[&write], &silent).await;
    let end = engine.session("s").call(Call::new("c", "write", "{}")).await;
    assert_eq!(end.error().map(|error| error.kind), Some(ErrorKind::ConfirmationTimeout));
    assert_eq!((silent.asked().len(), silent.receipts().len()), (1, 0));
}
