//! Servers that send what cannot be read: each affects only itself.

use crate::client::{server::odd, yard::Yard};
use serde_json::json;
use std::time::Duration;
use toolyard::{Call, Effect, ErrorKind};
use toolyard_mcp::{Servers, StartError};

/// V4, V5: a server that sends an endless line, or bytes that are not text, is lost. Its calls are transient, their
/// outcome unknown, they are not made again, and another server does not notice.
#[tokio::test]
async fn what_cannot_be_read_loses_one_server() {
    let yard = Yard::open(vec![odd("bad", "plain"), odd("good", "plain")]).await;
    for (tool, why) in [("long", "a line of more than 16777216 bytes"), ("bytes", "a line that is not UTF-8")]
    {
        let outcome = yard.call(&format!("bad__{tool}"), json!({})).await;
        assert_eq!(outcome.attempts, 1);
        let error = outcome.status.unwrap_err();
        assert_eq!(
            (error.kind, error.effect, error.retryable),
            (ErrorKind::Transient, Effect::Unknown, false)
        );
        assert!(error.message.contains(why), "{}", error.message);
        assert_eq!(yard.text("good__echo", json!({"text": "x"})).await, "x");
        yard.servers.settled().await;
    }
    assert_eq!(yard.text("bad__echo", json!({"text": "again"})).await, "again");
    yard.servers.shutdown().await;
}

/// SC-5: a server that stops reading holds up its own calls, each until its timeout, and no others.
#[tokio::test]
async fn a_server_that_does_not_read_holds_up_itself() {
    let yard = Yard::open(vec![odd("bad", "plain"), odd("good", "plain")]).await;
    let long = json!({"text": "x".repeat(200 << 10)});
    let mut calls = vec![Call::new("a", "bad__deaf", json!({})).timeout(Duration::from_millis(100))];
    calls
        .extend((0..4).map(|n| {
            Call::new(n.to_string(), "bad__echo", long.clone()).timeout(Duration::from_millis(200))
        }));
    calls.push(Call::new("g", "good__echo", long.clone()));
    let mut outcomes = yard.all(calls).await;
    assert_eq!(outcomes.pop().unwrap().status.unwrap().to_text().len(), 200 << 10);
    for outcome in outcomes {
        let kind = outcome.status.unwrap_err().kind;
        // In the end the breaker opens.
        assert!(matches!(kind, ErrorKind::Timeout | ErrorKind::CircuitOpen), "{kind:?}");
    }
    yard.servers.shutdown().await;
}

/// A server that sends notifications without end is read up to its answer, and another server meanwhile.
#[tokio::test]
async fn a_server_that_talks_without_end_is_heard() {
    let yard = Yard::open(vec![odd("bad", "plain"), odd("good", "plain")]).await;
    let calls = ["bad__chatty", "good__echo"].map(|tool| Call::new(tool, tool, json!({"text": "x"})));
    let outcomes = yard.all(calls.into()).await;
    let texts: Vec<String> = outcomes.into_iter().map(|outcome| outcome.status.unwrap().to_text()).collect();
    assert_eq!(texts, ["at last", "x"]);
    yard.servers.shutdown().await;
}

async fn refused(how: &str) -> String {
    let short = Duration::from_millis(if how == "mute" { 500 } else { 30_000 });
    match Servers::start(vec![odd("good", "plain"), odd("bad", how).startup_timeout(short)]).await {
        Err(StartError::Server { server, why }) => {
            assert_eq!(server, "bad");
            why
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("'{how}' was started"),
    }
}

/// A server that cannot be used says why, in bounded time.
#[tokio::test]
async fn a_server_that_cannot_be_used_says_why() {
    for (how, why) in [
        ("mute", "it was not ready within 500ms"),
        ("exits", "on stderr: no licence found"),
        ("long_cursor", "its list has a cursor of more than 4096 bytes"),
        ("endless", "more than 64 pages"),
        ("many", "more than 2000 tools"),
        ("circle", "its list of tools repeats a page"),
    ] {
        let says = refused(how).await;
        assert!(says.contains(why), "{how}: {says}");
    }
}

/// A server that is not required is left out, and the others are started.
#[tokio::test]
async fn a_server_that_is_not_required_is_left_out() {
    let yard = Yard::open(vec![odd("good", "plain"), odd("bad", "exits").required(false)]).await;
    assert!(yard.names().iter().all(|name| name.starts_with("good__")));
    assert_eq!(yard.text("good__echo", json!({"text": "x"})).await, "x");
    yard.servers.shutdown().await;
}
