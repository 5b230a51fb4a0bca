//! Tools listed and called.

use crate::client::{Person, Yard, meta, read, text, until, working_in};
use rmcp::{model::ErrorCode, service::ServiceError};
use serde_json::json;
use std::{collections::BTreeSet, fs};

/// The tools of the configuration are listed, with hints from their side effects, and can be called.
#[tokio::test]
async fn tools_are_listed_and_called() {
    let yard = Yard::open("mcp-list").await;
    let tools = yard.client.list_all_tools().await.unwrap();
    let hints = tools.iter().map(|tool| {
        let read_only = tool.annotations.as_ref().unwrap().read_only_hint;
        (tool.name.as_ref(), read_only.unwrap())
    });
    let expect = [("echo", true), ("read_file", true), ("shell", false), ("write_file", false)];
    assert_eq!(hints.collect::<BTreeSet<_>>(), BTreeSet::from(expect));
    let wrote = yard.call("write_file", json!({"path": "a.txt", "content": "x"})).await.unwrap();
    assert_eq!(wrote.is_error, Some(false));
    let read = yard.call("read_file", json!({"path": "a.txt"})).await.unwrap();
    assert_eq!(text(&read), "x");
    assert_eq!(read.structured_content.unwrap()["content"], "x");
}

/// CL-8: 64 calls at once, half of them writes to one file: every one is answered, and the last write is the last sent.
#[tokio::test]
async fn calls_at_once_are_all_answered() {
    let yard = Yard::open("mcp-many").await;
    let mut sent = Vec::new();
    for n in 0..32 {
        let content = json!({"path": "same.txt", "content": format!("write {n}")});
        sent.push(yard.send("write_file", content, json!({})).await);
        sent.push(yard.send("echo", json!({"text": format!("echo {n}")}), json!({})).await);
    }
    for (n, call) in sent.into_iter().enumerate() {
        let result = read(call).await.unwrap();
        assert_eq!(result.is_error, Some(false));
        if n % 2 == 1 {
            assert_eq!(text(&result), format!("echo {}", n / 2));
        }
    }
    assert_eq!(fs::read_to_string(yard.dir.join("same.txt")).unwrap(), "write 31");
}

/// SC-4: a cancelled call's processes end, and the connection stays usable.
#[tokio::test]
async fn a_cancelled_call_leaves_no_process() {
    let yard = Yard::open("mcp-cancel").await;
    let command = json!({"command": "(setsid sleep 600 &); echo > ready; sleep 600"});
    let sent = yard.send("shell", command, json!({})).await;
    until("the command runs", || yard.dir.join("ready").exists()).await;
    sent.cancel(Some("changed my mind".to_owned())).await.unwrap();
    until("no process is left", || working_in(&yard.dir, yard.program.id()) == 0).await;
    assert_eq!(text(&yard.call("echo", json!({"text": "still here"})).await.unwrap()), "still here");
}

/// The output of a running command is reported as progress before its result.
#[tokio::test]
async fn output_is_reported_as_progress() {
    let yard = Yard::open("mcp-progress").await;
    let command = json!({"command": "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo done"});
    let sent = yard.send("shell", command, json!({})).await;
    let token = sent.progress_token.clone();
    let notes = yard.client.service().progress.clone();
    let output = || -> String {
        let notes = notes.lock().unwrap();
        notes
            .iter()
            .filter(|note| note.progress_token == token)
            .filter_map(|note| note.message.clone())
            .collect()
    };
    until("the first line is reported", || output() == "begun\n").await;
    fs::write(yard.dir.join("go"), "").unwrap();
    assert!(text(&read(sent).await.unwrap()).starts_with("begun\ndone"));
    until("the last line is reported", || output() == "begun\ndone\n").await;
}

/// ID-1: of two calls with one key, one runs.
#[tokio::test]
async fn a_duplicate_key_runs_once() {
    let yard = Yard::open("mcp-key").await;
    let command = json!({"command": "echo ran >> log; while [ ! -e go ]; do sleep 0.05; done; echo ok"});
    let key = json!({"toolyard/idempotency_key": "step-3"});
    let first = yard.send("shell", command.clone(), key.clone()).await;
    let second = yard.send("shell", command, key).await;
    until("it runs", || yard.dir.join("log").exists()).await;
    fs::write(yard.dir.join("go"), "").unwrap();
    let (first, second) = (read(first).await.unwrap(), read(second).await.unwrap());
    assert_eq!(text(&first), text(&second));
    assert_eq!(meta(&first, "toolyard/call")["dedupe"], "fresh");
    assert_ne!(meta(&second, "toolyard/call")["dedupe"], "fresh");
    assert_eq!(fs::read_to_string(yard.dir.join("log")).unwrap(), "ran\n");
}

/// V4: an unknown tool is a protocol error; invalid arguments are a result that the model can learn from.
#[tokio::test]
async fn errors_are_reported_where_they_belong() {
    let yard = Yard::open("mcp-wrong").await;
    let Err(ServiceError::McpError(error)) = yard.call("nope", json!({})).await else { panic!("no error") };
    assert_eq!(error.code, ErrorCode::INVALID_PARAMS);
    assert!(error.message.starts_with("Tool 'nope' not found. Available: [echo, "), "{error}");
    let wrong = yard.call("echo", json!({"txt": 1})).await.unwrap();
    assert_eq!(
        (wrong.is_error, &meta(&wrong, "toolyard/error")["code"]),
        (Some(true), &json!("invalid_input"))
    );
    let failed = yard.call("read_file", json!({"path": "../x"})).await.unwrap();
    assert_eq!(meta(&failed, "toolyard/error")["outcome"], "not_started");
}

/// PO-3, PO-4: a call that needs approval runs after a yes of the client's user, and not after a no. If the client
/// cannot ask, the call is refused.
#[tokio::test]
async fn the_clients_user_is_asked() {
    for (name, answer) in [("yes", Some("yes")), ("no", Some("no")), ("nobody", None)] {
        let person = Person { answer, ..Person::default() };
        let yard = Yard::with(&format!("mcp-ask-{name}"), &[], person.clone()).await;
        let result = yard.call("write_file", json!({"path": "a.txt", "content": "x"})).await.unwrap();
        assert_eq!(result.is_error, Some(answer != Some("yes")), "{name}");
        assert_eq!(yard.dir.join("a.txt").exists(), answer == Some("yes"), "{name}");
        assert_eq!(person.asked.lock().unwrap().len(), usize::from(answer.is_some()), "{name}");
        if answer != Some("yes") {
            assert_eq!(meta(&result, "toolyard/error")["code"], "user_denied", "{name}");
        }
    }
}
