//! Servers that die, and what is left of them.

use crate::client::{server::odd, yard::Yard};
use serde_json::json;
use std::time::Duration;
use toolyard::{BreakerOf, BreakerPolicy, Call, Effect, ErrorKind, EventKind, RetryPolicy};
use toolyard_mcp::{ServerState, Servers, StartError};

/// V4, V5: the death of a server during calls is transient for each, their outcome unknown, and nothing runs twice. The
/// restarted server answers the next calls.
#[tokio::test]
async fn a_death_in_mid_call_is_transient_and_reads_survive_it() {
    let yard = Yard::open(vec![odd("s", "plain")]).await;
    let outcome = yard.call("s__die", json!({})).await;
    assert_eq!(outcome.attempts, 1);
    let error = outcome.status.unwrap_err();
    assert_eq!((error.kind, error.effect, error.retryable), (ErrorKind::Transient, Effect::Unknown, false));
    yard.servers.settled().await;
    assert_eq!(yard.text("s__echo", json!({"text": "x"})).await, "x");
    yard.servers.shutdown().await;
}

/// RT-1, V5: a lost call that changes things is made again only if its trusted server says that it is idempotent.
#[tokio::test]
async fn a_call_that_is_idempotent_is_made_again_after_a_death() {
    // Enough attempts that a server that starts slowly is ready before the last.
    let retry = RetryPolicy::default().with_max_attempts(30);
    let retry = retry.with_delays(Duration::from_millis(100), 1.5, Duration::from_secs(1));
    for trusted in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let servers = vec![odd("s", "plain").trusted(trusted)];
        let yard = Yard::built(servers, |engine| engine.retry(retry).breaker(BreakerPolicy::DISABLED)).await;
        let outcome = yard.call("s__die_once", json!({"note": dir.path().join("died")})).await;
        let result = (outcome.attempts > 1, outcome.status.is_ok());
        assert_eq!(result, (trusted, trusted), "{:?}", outcome.status);
        yard.servers.shutdown().await;
    }
}

/// CB-9: a server's breaker counts its deaths, over all its tools; failures that its tools report are not counted.
#[tokio::test]
async fn deaths_count_with_the_servers_breaker() {
    let yard = Yard::open(vec![odd("s", "plain")]).await;
    let failures = || {
        let all = yard.engine.breakers();
        all.into_iter().find(|one| one.of == BreakerOf::backend("mcp s")).unwrap().failures
    };
    yard.call("s__no", json!({})).await;
    assert_eq!(failures(), 0);
    yard.call("s__die", json!({})).await;
    assert_eq!(failures(), 1);
    yard.servers.shutdown().await;
}

/// Calls to a server that was stopped say so at once.
#[tokio::test]
async fn a_call_of_a_server_that_is_gone_says_so() {
    let yard = Yard::open(vec![odd("s", "plain")]).await;
    let Yard { engine, servers, .. } = yard;
    servers.shutdown().await;
    let call = Call::new("c", "s__hang", json!({}));
    let error = engine.session("s").call(call).await.status.unwrap_err();
    assert_eq!((error.kind, error.effect), (ErrorKind::Transient, Effect::Failed));
    assert!(error.message.contains("it was given up: it was stopped"), "{}", error.message);
}

/// A server that only knows the older greeting, and exits on the newer one, is started once more.
#[tokio::test]
async fn a_server_of_the_older_way_is_greeted_so() {
    let yard = Yard::open(vec![odd("s", "old")]).await;
    assert_eq!(yard.servers.status()[0].state, ServerState::Ready);
    assert_eq!(yard.text("s__echo", json!({"text": "x"})).await, "x");
    yard.servers.shutdown().await;
}

/// A server that knows the newer way is not greeted in the older.
#[tokio::test]
async fn a_server_of_the_newer_way_is_greeted_so() {
    let yard = Yard::open(vec![odd("s", "new")]).await;
    let asked = yard.text("s__heard", json!({})).await;
    assert!(asked.starts_with("server/discover tools/list") && !asked.contains("initialize"), "{asked}");
    yard.servers.shutdown().await;
}

/// A server that does not answer the newer greeting is greeted in the older way long before its time limit, and a late
/// answer to the first does not answer the second. After a restart, it is greeted in the older way at once.
#[tokio::test]
async fn a_server_that_does_not_answer_is_asked_in_the_older_way() {
    for how in ["shy", "late"] {
        let yard = Yard::open(vec![odd("s", how).startup_timeout(Duration::from_secs(8))]).await;
        let asked = "initialize notifications/initialized tools/list tools/call";
        assert_eq!(yard.text("s__heard", json!({})).await, format!("server/discover {asked}"));
        yard.call("s__die", json!({})).await;
        yard.servers.settled().await;
        assert_eq!(yard.text("s__heard", json!({})).await, asked);
        yard.servers.shutdown().await;
    }
}

/// SC-6: everything that a server started ends with it.
#[cfg(unix)]
#[tokio::test]
async fn with_a_server_ends_all_that_it_started() {
    let yard = Yard::open(vec![odd("s", "plain")]).await;
    let pid: i32 = yard.text("s__child", json!({})).await.parse().unwrap();
    let is_there = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        !stat.is_empty() && !stat.contains(") Z ")
    };
    assert!(is_there());
    yard.servers.shutdown().await;
    assert!(!is_there());
}

/// A server that was given up is started on request, which fails if it cannot be. Its tools are added to an engine that
/// had none of them.
#[tokio::test]
async fn a_server_that_was_given_up_is_started_when_it_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    let shut = odd("s", "shut").env("ODD_KEY", key.to_str().unwrap()).required(false);
    let yard = Yard::open(vec![shut]).await;
    let state = || yard.servers.status().remove(0).state;
    for _ in 0..2 {
        assert!(matches!(state(), ServerState::GivenUp { .. }) && yard.names().is_empty(), "{:?}", state());
        let Err(StartError::Server { server, why }) = yard.servers.restart("s").await else {
            panic!("it is shut")
        };
        assert!(server == "s" && why.contains("exit status: 4"), "{why}");
    }
    std::fs::write(&key, "").unwrap();
    yard.servers.restart("s").await.unwrap();
    assert_eq!(state(), ServerState::Ready);
    assert_eq!(yard.text("s__echo", json!({"text": "x"})).await, "x");
    assert_eq!(yard.servers.restart("t").await, Err(StartError::Unknown("t".into())));
    yard.servers.shutdown().await;
}

/// CB-10: a restarted server is a new process; a call that it had in flight is lost, and its breakers are closed.
/// Concurrent requests are all answered once it is running.
#[tokio::test]
async fn a_server_that_is_started_anew_begins_anew() {
    let yard = Yard::open(vec![odd("s", "plain")]).await;
    yard.text("s__echo", json!({"text": "x"})).await;
    let session = yard.engine.session("t");
    let restart = async {
        yard.until("the call is made", |yard| {
            yard.count_events(|kind| matches!(kind, EventKind::Attempt)) == 2
        })
        .await;
        let all = (0..8).map(|_| yard.servers.restart("s"));
        assert!(futures::future::join_all(all).await.into_iter().all(|result| result.is_ok()));
    };
    let (outcome, ()) = tokio::join!(session.call(Call::new("c", "s__hang", json!({}))), restart);
    let error = outcome.status.unwrap_err();
    assert_eq!((error.kind, error.effect), (ErrorKind::Transient, Effect::Unknown), "{error:?}");
    assert!(!yard.text("s__heard", json!({})).await.contains("tools/call tools/call"));

    for of in [BreakerOf::backend("mcp s"), BreakerOf::tool("s__echo")] {
        assert!(yard.engine.force_open(&of));
    }
    assert_eq!(yard.call("s__echo", json!({})).await.status.unwrap_err().kind, ErrorKind::CircuitOpen);
    yard.servers.restart("s").await.unwrap();
    assert_eq!(yard.text("s__echo", json!({"text": "x"})).await, "x");
    yard.servers.shutdown().await;
}

/// SC-6: a server that announces a changed list and then does not answer the list request delays no shutdown.
#[tokio::test]
async fn a_list_that_does_not_come_holds_up_nothing() {
    let yard = Yard::open(vec![odd("s", "coy")]).await;
    yard.text("s__change", json!({})).await;
    let ended = tokio::time::timeout(Duration::from_secs(20), yard.servers.shutdown()).await;
    assert!(ended.is_ok(), "the list is waited for as long as a start may take, which is 30 s");
}

/// A program that does not exist is reported as such.
#[tokio::test]
async fn a_program_that_is_not_there_is_told() {
    let missing = toolyard_mcp::ServerConfig::new("s", "/no/such/program");
    let Err(error) = Servers::start(vec![missing]).await else { panic!("it is not there") };
    assert!(error.to_string().contains("'/no/such/program' cannot be started"), "{error}");
}
