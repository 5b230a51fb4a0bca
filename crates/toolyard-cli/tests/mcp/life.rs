//! How the program ends.

use crate::client::{Person, Yard, meta, read, until, working_in};
use serde_json::{Value, json};
use std::{collections::BTreeMap, process};

/// Starts a command that never ends, along with a detached process.
async fn begun(yard: &Yard) -> rmcp::service::RequestHandle<rmcp::RoleClient> {
    let command = json!({"command": "(setsid sleep 600 &); echo > ready; sleep 600"});
    let sent = yard.send("shell", command, json!({})).await;
    until("the command runs", || yard.dir.join("ready").exists()).await;
    sent
}

/// Every received call has one end, the numbers of every session have no gap, and the engine has stopped.
fn check_whole(events: &[Value]) {
    let (mut open, mut last) = (BTreeMap::new(), BTreeMap::new());
    for event in events {
        let session = event["session"].as_str().unwrap();
        let seq = last.entry(session).or_insert(0);
        if event["event"] != "engine.started" {
            *seq += 1; // the beginning has number 0
        }
        assert_eq!(event["seq"], *seq, "{event}");
        let call = (session, event["batch"].as_u64());
        match event["event"].as_str().unwrap() {
            "tool.call.received" => *open.entry(call).or_insert(0) += 1,
            "tool.completed" | "tool.failed" | "tool.call.denied" | "tool.input_invalid" => {
                *open.get_mut(&call).unwrap() -= 1;
            }
            _ => {}
        }
    }
    assert!(open.values().all(|open| *open == 0), "{open:?}");
    assert!(events.iter().any(|event| event["step"] == "stopped"));
}

/// When the client closes the connection, the program ends.
#[tokio::test]
async fn the_program_ends_with_its_client() {
    let mut yard = Yard::open("mcp-end").await;
    yard.call("echo", json!({"text": "x"})).await.unwrap();
    yard.client.close().await.unwrap();
    assert_eq!(yard.ended().await, Some(0));
    check_whole(&yard.events());
}

/// SC-1, SC-4: a client that disappears during a call leaves no process and no call without an end.
#[tokio::test]
async fn a_client_that_disappears_leaves_nothing_behind() {
    let mut yard = Yard::open("mcp-gone").await;
    let sent = begun(&yard).await;
    drop(sent);
    yard.client.close().await.unwrap();
    assert_eq!(yard.ended().await, Some(0));
    assert_eq!(working_in(&yard.dir, None), 0);
    let events = yard.events();
    check_whole(&events);
    assert!(events.iter().any(|event| event["code"] == "cancelled"));
}

/// SC-8: a signal cancels running calls, whose callers still get a result, and ends the program.
#[tokio::test]
async fn a_signal_drains() {
    for signal in ["-INT", "-TERM"] {
        let mut yard = Yard::open(&format!("mcp-signal{signal}")).await;
        let sent = begun(&yard).await;
        let pid = yard.program.id().unwrap().to_string();
        assert!(process::Command::new("kill").args([signal, &pid]).status().unwrap().success());
        let result = read(sent).await.unwrap();
        assert_eq!(meta(&result, "toolyard/error")["code"], "cancelled");
        assert_eq!(yard.ended().await, Some(130));
        assert_eq!(working_in(&yard.dir, None), 0);
        check_whole(&yard.events());
    }
}

/// PO-3: if the answer is given beforehand, nobody is asked.
#[tokio::test]
async fn an_answer_given_beforehand_asks_nobody() {
    let person = Person { answer: Some("yes"), ..Person::default() };
    let yard = Yard::with("mcp-deny", &["--approve", "deny"], person.clone()).await;
    let result = yard.call("write_file", json!({"path": "a.txt", "content": "x"})).await.unwrap();
    assert_eq!(meta(&result, "toolyard/error")["code"], "user_denied");
    assert!(person.asked.lock().unwrap().is_empty());
}
