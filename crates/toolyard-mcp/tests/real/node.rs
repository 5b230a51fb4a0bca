//! The servers `filesystem`, `everything`, `memory` and `time`.

use crate::real::{place, yard::Yard};
use serde_json::{Value, json};
use std::fs;
use toolyard::{Call, ErrorKind, EventKind, SideEffects};

/// CL-1, CL-4: sixty-four reads at once, from a server that answers out of order; and writes in order.
#[tokio::test]
async fn filesystem_answers_many_calls_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let path = |n: usize| root.join(format!("{n}.txt")).to_str().unwrap().to_owned();
    let Some(server) = place::node("filesystem", &[root.to_str().unwrap()]) else { return };
    let yard = Yard::open(vec![server.prefix("fs")]).await;
    let effects = |name| yard.engine.registry().get(name).unwrap().spec().side_effects;
    assert_eq!(effects("fs__read_text_file"), SideEffects::Read);
    assert_eq!(effects("fs__write_file"), SideEffects::Write);
    (0..64).for_each(|n| fs::write(path(n), "x".repeat(n * 1000) + &n.to_string()).unwrap());
    let read = |n: usize| Call::new(format!("r{n}"), "fs__read_text_file", json!({"path": path(n)}));
    for (n, outcome) in yard.all((0..64).map(read).collect()).await.into_iter().enumerate() {
        assert_eq!(outcome.status.unwrap().to_text(), "x".repeat(n * 1000) + &n.to_string());
    }
    let write = |n: usize| {
        let args = json!({"path": path(0), "content": n.to_string()});
        Call::new(format!("w{n}"), "fs__write_file", args)
    };
    let calls = (0..20)
        .flat_map(|n| [write(n), Call::new(format!("a{n}"), "fs__read_text_file", json!({"path": path(0)}))]);
    for (n, outcome) in yard.all(calls.collect()).await.into_iter().skip(1).step_by(2).enumerate() {
        assert_eq!(outcome.status.unwrap().to_text(), n.to_string(), "a read sees the write before it");
    }
    let outside = yard.call("fs__read_text_file", json!({"path": "/etc/hostname"})).await;
    assert_eq!(outside.status.unwrap_err().kind, ErrorKind::ExecutionError);
    let missing = yard.call("fs__read_text_file", json!({})).await;
    assert_eq!(missing.status.unwrap_err().kind, ErrorKind::InvalidInput);
    yard.servers.shutdown().await;
}

/// Progress, images, data and resources of the server `everything`.
#[tokio::test]
async fn everything_is_kept() {
    let Some(server) = place::node("everything", &["stdio"]) else { return };
    let yard = Yard::open(vec![server.prefix("")]).await;
    assert_eq!(yard.text("echo", json!({"message": "hello"})).await, "Echo: hello");
    let picture = yard.call("get-tiny-image", json!({})).await.status.unwrap();
    let is_picture = |part: &toolyard::Content| matches!(part, toolyard::Content::Image { .. });
    assert!(picture.content.iter().any(is_picture));
    let data = yard.call("get-structured-content", json!({"location": "New York"})).await.status.unwrap();
    assert!(data.structured().is_some_and(|data| data.is_object()));
    let links = yard.call("get-resource-links", json!({"count": 3})).await.status.unwrap();
    assert!(links.metadata("mcp.content").is_some());
    let long = json!({"duration": 1, "steps": 4});
    yard.call("trigger-long-running-operation", long).await.status.unwrap();
    assert_eq!(yard.count_events(is_delta), 4);
    yard.servers.shutdown().await;
}

fn is_delta(kind: &EventKind) -> bool {
    matches!(kind, EventKind::OutputDelta { .. })
}

/// Waits until the call has made progress, so that it is certainly in flight.
async fn under_way(yard: &Yard) {
    yard.until("the call is under way", |yard| yard.count_events(is_delta) > 0).await;
}

fn long_call() -> Call {
    Call::new("long", "trigger-long-running-operation", json!({"duration": 600, "steps": 6000}))
}

/// SC-4: a cancelled call ends at once, and the server keeps running.
#[tokio::test]
async fn a_cancelled_call_ends_and_its_server_lives_on() {
    let Some(server) = place::node("everything", &["stdio"]) else { return };
    let yard = Yard::open(vec![server.prefix("")]).await;
    let session = yard.engine.session("t");
    let cancel = async {
        under_way(&yard).await;
        session.cancel_calls();
    };
    let (outcome, ()) = tokio::join!(session.call(long_call()), cancel);
    assert_eq!(outcome.status.unwrap_err().kind, ErrorKind::Cancelled);
    assert_eq!(yard.text("echo", json!({"message": "there"})).await, "Echo: there");
    yard.servers.shutdown().await;
}

/// V4, V5: a server that is killed during a call leaves the outcome unknown, and is restarted.
#[cfg(unix)]
#[tokio::test]
async fn a_killed_server_is_started_again() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let Some(script) = place::script("everything") else { return };
    // The shell records its id, which is then the server's.
    let line = format!("echo $$ > {}; exec node \"$0\" stdio", pid.display());
    let wrapped = toolyard_mcp::ServerConfig::new("everything", "sh").args(["-c", &line, &script]).prefix("");
    let yard = Yard::open(vec![wrapped]).await;
    let session = yard.engine.session("t");
    let kill = async {
        under_way(&yard).await;
        let pid = fs::read_to_string(&pid).unwrap();
        assert!(std::process::Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
    };
    let (outcome, ()) = tokio::join!(session.call(long_call()), kill);
    assert_eq!(outcome.attempts, 1);
    let error = outcome.status.unwrap_err();
    assert_eq!((error.kind, error.effect), (ErrorKind::Transient, toolyard::Effect::Unknown));
    yard.servers.settled().await;
    assert_eq!(yard.text("echo", json!({"message": "again"})).await, "Echo: again");
    yard.servers.shutdown().await;
}

#[tokio::test]
async fn memory_keeps_what_it_was_told_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let Some(server) = place::node("memory", &[]) else { return };
    let file = dir.path().join("memory.jsonl").to_str().unwrap().to_owned();
    let yard = Yard::open(vec![server.env("MEMORY_FILE_PATH", file)]).await;
    let create = |n: u32| {
        let entity = json!({"name": n.to_string(), "entityType": "number", "observations": []});
        Call::new(n.to_string(), "memory__create_entities", json!({"entities": [entity]}))
    };
    for outcome in yard.all((0..64).map(create).collect()).await {
        outcome.status.unwrap();
    }
    let graph = yard.call("memory__read_graph", json!({})).await.status.unwrap();
    let graph: Value = serde_json::from_str(&graph.to_text()).unwrap();
    let names =
        graph["entities"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned());
    assert_eq!(names.collect::<Vec<_>>(), (0..64).map(|n| n.to_string()).collect::<Vec<_>>());
    yard.servers.shutdown().await;
}

#[tokio::test]
async fn time_is_told() {
    let Some(server) = place::python("time", &[]) else { return };
    let yard = Yard::open(vec![server]).await;
    let args = json!({"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    assert!(yard.text("time__convert_time", args).await.contains("21:00"));
    let wrong = json!({"source_timezone": "Nowhere", "time": "12:00", "target_timezone": "UTC"});
    assert_eq!(
        yard.call("time__convert_time", wrong).await.status.unwrap_err().kind,
        ErrorKind::ExecutionError
    );
    yard.servers.shutdown().await;
}
