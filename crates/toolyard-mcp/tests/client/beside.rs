//! Hostile servers, and a good one beside them: it is listed and answers while they misbehave, and afterwards.

use crate::client::{server::odd, yard::Yard};
use serde_json::json;
use std::fs;
use toolyard::{Call, Effect, ErrorKind, Outcome};
use toolyard_mcp::{ServerState, StartError};

/// The number of calls that the good server gets beside the bad one's.
const BESIDE: u32 = 8;

fn echo(n: u32) -> Call {
    Call::new(format!("g{n}"), "good__echo", json!({"text": n.to_string()}))
}

fn check_answered(outcomes: Vec<Outcome>) {
    for (n, outcome) in outcomes.into_iter().enumerate() {
        assert_eq!(outcome.status.unwrap().to_text(), n.to_string());
    }
}

/// Checks that the good server is ready with all its tools, and answers.
async fn check_well(yard: &Yard) {
    let status = yard.servers.status().into_iter().find(|one| one.name == "good").unwrap();
    assert_eq!((status.state, status.refused.len()), (ServerState::Ready, 0));
    assert!(status.tools.iter().all(|(tool, _)| yard.engine.registry().has(tool)));
    check_answered(yard.all((0..BESIDE).map(echo).collect()).await);
}

/// Does something bad beside a server that has calls meanwhile. If the bad thing would never end, the clock is paused
/// as soon as those calls are answered, so that its timeout comes at once.
async fn beside<T>(yard: &Yard, is_endless: bool, bad: impl Future<Output = T>) -> T {
    let good = async {
        check_well(yard).await;
        if is_endless {
            tokio::time::pause();
        }
    };
    let (result, ()) = tokio::join!(bad, good);
    if is_endless {
        tokio::time::resume();
    }
    result
}

/// The result of starting a server that behaves like this, beside one that has calls.
async fn started_as(how: &str) -> (Yard, Result<(), StartError>) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("how");
    let bad = odd("bad", "plain").env("ODD_FILE", file.to_str().unwrap());
    let yard = Yard::open(vec![bad, odd("good", "plain")]).await;
    fs::write(&file, how).unwrap();
    let result = beside(&yard, how == "mute", yard.servers.restart("bad")).await;
    (yard, result)
}

/// V4: a server that cannot be used is reported as such, in bounded time, and affects no other.
#[tokio::test]
async fn a_server_that_cannot_be_used_leaves_the_other_unharmed() {
    for (how, wanted) in [
        ("mute", "it was not ready within 30s"),
        ("exits", "on stderr: no licence found"),
        ("endless", "more than 64 pages"),
        ("many", "more than 2000 tools"),
        ("circle", "its list of tools repeats a page"),
        ("long_list", "a line of more than 16777216 bytes"),
        ("bytes_list", "a line that is not UTF-8"),
    ] {
        let (yard, result) = started_as(how).await;
        let Err(StartError::Server { server, why }) = result else { panic!("{how}: {result:?}") };
        assert!(server == "bad" && why.contains(wanted), "{how}: {why}");
        check_well(&yard).await;
        let error = yard.call("bad__echo", json!({})).await.status.unwrap_err();
        assert!(matches!(error.kind, ErrorKind::Transient | ErrorKind::NotFound), "{how}: {error:?}");
        yard.servers.shutdown().await;
    }
}

/// A tool whose schema is on the network is refused, and a description with hidden characters is cleaned; the tools of
/// the other server are unchanged.
#[tokio::test]
async fn bad_tools_leave_the_tools_of_another_server_unharmed() {
    let (yard, result) = started_as("bad_tools").await;
    result.unwrap();
    let bad = yard.servers.status().into_iter().find(|one| one.name == "bad").unwrap();
    let network = bad.refused.iter().find(|one| one.tool == "bad__network").unwrap();
    assert!(network.why.contains("refers outside itself"), "{}", network.why);
    let good = yard.engine.registry().get("bad__good").unwrap();
    assert_eq!(good.spec().description, "reads[2J a file\n");
    check_well(&yard).await;
    yard.servers.shutdown().await;
}

/// V4, V5, SC-5: whatever goes wrong with a call affects that call only; calls to another server at the same time are
/// answered, and so are those that follow.
#[tokio::test]
async fn a_call_that_goes_wrong_leaves_the_other_server_unharmed() {
    let yard = Yard::open(vec![odd("bad", "plain"), odd("good", "plain")]).await;
    for (tool, kind, said) in [
        ("hang", ErrorKind::Timeout, ""),
        ("wrong_id", ErrorKind::Timeout, ""),
        ("long", ErrorKind::Transient, "a line of more than 16777216 bytes"),
        ("bytes", ErrorKind::Transient, "a line that is not UTF-8"),
        ("die", ErrorKind::Transient, "it closed its output"),
    ] {
        let name = format!("bad__{tool}");
        let outcome = beside(&yard, kind == ErrorKind::Timeout, yard.call(&name, json!({}))).await;
        assert_eq!(outcome.attempts, 1);
        let error = outcome.status.unwrap_err();
        assert_eq!((error.kind, error.effect), (kind, Effect::Unknown), "{tool}: {error:?}");
        assert!(error.message.contains(said), "{tool}: {}", error.message);
        check_well(&yard).await;
        yard.servers.restart("bad").await.unwrap();
    }
    let outcome = beside(&yard, false, yard.call("bad__twice", json!({}))).await;
    assert_eq!(outcome.status.unwrap().to_text(), "first");
    assert_eq!(yard.text("bad__echo", json!({"text": "its own"})).await, "its own");
    check_well(&yard).await;
    yard.servers.shutdown().await;
}
