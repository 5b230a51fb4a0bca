//! How conversations end (AG-14, SC-8).

use crate::parent::Parent;
use serde_json::json;
use std::time::Duration;
use toolyard::{Drain, Engine};
use toolyard_server::{ServerOptions, TalkEnd, TalkError};

/// AG-14: after bye nothing new is begun, what is open is answered, invocations too, and the last line is goodbye.
#[tokio::test]
async fn a_parent_says_bye() {
    let mut parent = Parent::new().await;
    parent.functions(&[("read", "read")]).await;
    parent.send(json!({"op": "tool_calls", "turn": "t", "more": true, "calls": [{"tool_call_id": "c", "tool": "read", "args": {}}]})).await;
    let call = parent.invoked("read").await;
    parent.send(json!({"op": "bye", "id": 1})).await;
    parent.calls("u", &[("d", "read")]).await;
    assert_eq!(parent.line("error").await["code"], "shutting_down");
    parent.result(&call, json!(1)).await;
    let (end, lines) = parent.over().await;
    assert_eq!(end.unwrap(), TalkEnd::Bye);
    let ops: Vec<_> = lines.iter().map(|line| line["op"].as_str().unwrap()).collect();
    assert_eq!(ops, ["tool_response", "turn_ended", "goodbye"]);
}

/// AG-14: a parent that says bye and closes its end hears what has come of its turns, and goodbye as the last line; a
/// function of it that is asked for fails, and a question to it is answered by nobody.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parent_says_bye_and_closes_its_end() {
    for _ in 0..20 {
        let mut parent = Parent::new().await;
        parent
            .ask(json!({"op": "hello", "protocol": 1, "confirm": true, "meta": true, "events": true}))
            .await;
        parent.functions(&[("read", "read"), ("save", "write")]).await;
        let calls: Vec<_> = (0..50).map(|at| json!({"tool_call_id": at.to_string(), "tool": if at == 49 { "save" } else { "read" }, "args": {}})).collect();
        parent.send(json!({"op": "tool_calls", "turn": "t", "calls": calls})).await;
        parent.send(json!({"op": "bye", "id": 7})).await;
        let (end, lines) = parent.closed().await;
        assert_eq!(end.unwrap(), TalkEnd::Bye);
        let count = |op: &str| lines.iter().filter(|line| line["op"] == op).count();
        assert_eq!((count("tool_response"), count("turn_ended")), (50, 1));
        assert_eq!(lines.last().unwrap(), &json!({"op": "goodbye", "id": 7}));
        let saved =
            lines.iter().find(|line| line["op"] == "tool_response" && line["tool"] == "save").unwrap();
        assert_eq!(saved["ok"], false, "{saved}");
    }
}

/// AG-14: a bye that is read while answers wait for room counts, though the end of the parent's lines is behind it.
#[tokio::test]
async fn a_bye_behind_answers_that_wait_counts() {
    let mut parent = Parent::new().await;
    let schema = json!({"type": "object", "title": "x".repeat(200 << 10)});
    parent.register(json!({"name": "large", "side_effects": "read", "input_schema": schema})).await;
    for _ in 0..400 {
        parent.send(json!({"op": "definitions"})).await;
    }
    parent.send(json!({"op": "bye"})).await;
    let (end, lines) = parent.closed().await;
    assert_eq!((end.unwrap(), lines.len()), (TalkEnd::Bye, 401));
    assert_eq!(lines.last().unwrap()["op"], "goodbye");
}

/// AG-14: a second bye is refused, and the first one is answered.
#[tokio::test]
async fn a_parent_says_bye_once() {
    let mut parent = Parent::new().await;
    parent.functions(&[("read", "read")]).await;
    parent.calls("t", &[("c", "read")]).await;
    let call = parent.invoked("read").await;
    parent.send(json!({"op": "bye", "id": 1})).await;
    parent.send(json!({"op": "bye", "id": 2})).await;
    assert_eq!(parent.line("error").await["id"], 2);
    parent.result(&call, json!(1)).await;
    assert_eq!(parent.line("goodbye").await["id"], 1);
}

/// AG-14: the end of a parent is noticed though answers wait for room.
#[tokio::test]
async fn a_parent_that_reads_nothing_can_end() {
    let mut parent = Parent::new().await;
    let open = parent.ask(json!({"op": "open", "session": "s"})).await;
    assert_eq!(open["op"], "opened");
    let schema = json!({"type": "object", "title": "x".repeat(200 << 10)});
    parent.register(json!({"name": "large", "side_effects": "read", "input_schema": schema})).await;
    for _ in 0..400 {
        parent.send(json!({"op": "definitions"})).await;
    }
    assert_eq!(parent.leave().await.unwrap(), TalkEnd::Closed);
}

/// AG-14: when the parent closes its end, what it has begun is cancelled, and its sessions and functions are gone.
#[tokio::test(start_paused = true)]
async fn a_parent_closes_its_end() {
    let mut parent = Parent::new().await;
    parent.functions(&[("read", "read")]).await;
    parent.calls("t", &[("c", "read")]).await;
    parent.invoked("read").await;
    let engine = parent.engine.clone();
    assert_eq!(parent.close().await.unwrap(), TalkEnd::Closed);
    assert!(engine.registry().list().is_empty());
    let report = engine.shutdown(Drain::default()).await;
    assert_eq!(report.abandoned, 0, "{report:?}");
}

/// SC-8: a program that is told to end says so, begins nothing new, and answers what runs.
#[tokio::test(start_paused = true)]
async fn a_program_is_told_to_end() {
    let mut parent = Parent::new().await;
    parent.functions(&[("read", "read")]).await;
    parent.calls("t", &[("c", "read")]).await;
    let call = parent.invoked("read").await;
    parent.stop.cancel();
    assert_eq!(parent.line("shutdown").await["grace_ms"], 5_000);
    parent.calls("u", &[("d", "read")]).await;
    assert_eq!(parent.line("error").await["code"], "shutting_down");
    parent.result(&call, json!("in time")).await;
    let (end, lines) = parent.over().await;
    assert_eq!(end.unwrap(), TalkEnd::Stopped);
    assert_eq!((&lines[0]["result"]["text"], &lines[1]["op"]), (&json!("in time"), &json!("turn_ended")));
}

/// SC-8: what does not end in its time is answered by the engine's drain.
#[tokio::test(start_paused = true)]
async fn a_function_that_does_not_end_is_left() {
    let mut parent = Parent::new().await;
    parent.functions(&[("read", "read")]).await;
    parent.calls("t", &[("c", "read")]).await;
    parent.invoked("read").await;
    let engine = parent.engine.clone();
    parent.stop.cancel();
    // As the program does it: what runs is told to stop at once.
    let drain = Drain::default().finish(Duration::ZERO).grace(Duration::from_secs(5));
    let ((end, lines), _) = tokio::join!(parent.over(), engine.shutdown(drain));
    assert_eq!(end.unwrap(), TalkEnd::Stopped);
    let ops: Vec<_> = lines.iter().map(|line| line["op"].as_str().unwrap()).collect();
    assert_eq!(ops, ["shutdown", "tool_cancel", "tool_response", "turn_ended"]);
}

/// AG-14: lines that cannot be read end the conversation, with an error that says why.
#[tokio::test]
async fn a_line_that_is_no_text_ends_it() {
    let mut parent = Parent::new().await;
    parent.send_bytes(b"\n{\"op\":\"hello\",\"protocol\":1}\n\xff\n").await;
    let (end, lines) = parent.over().await;
    assert!(matches!(end, Err(TalkError::Read(_))), "{end:?}");
    assert_eq!(
        (&lines[0]["op"], &lines[1]["op"], &lines[1]["line"]),
        (&json!("welcome"), &json!("error"), &json!(3))
    );
}

/// AG-14: a server speaks with one parent, and a second conversation is refused.
#[tokio::test]
async fn a_server_has_one_parent() {
    let parent = Parent::of(Engine::builder(), ServerOptions::default()).await;
    tokio::task::yield_now().await;
    let second = parent.server.talk(&b""[..], Vec::new(), Default::default()).await;
    assert!(matches!(second, Err(TalkError::Twice)));
    assert_eq!(parent.close().await.unwrap(), TalkEnd::Closed);
}
