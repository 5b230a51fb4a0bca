//! Servers that send what nobody can read: each costs itself, and no other.

use crate::{server::odd, yard::Yard};
use serde_json::json;
use toolyard::{Effect, ErrorKind};
use toolyard_mcp::{Servers, StartError};

/// V4, V5: a line without end or of no text loses the server: its calls are transient, their outcome unknown, they are not
/// made again, and another server does not notice.
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

async fn refused(how: &str) -> String {
    let short = std::time::Duration::from_millis(if how == "mute" { 500 } else { 30_000 });
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
        ("exits", "it last said: no licence found"),
        ("endless", "more than 64 pages"),
        ("many", "more than 2000 tools"),
        ("circle", "goes back to a page that was there before"),
    ] {
        let says = refused(how).await;
        assert!(says.contains(why), "{how}: {says}");
    }
}

/// One that is not required is left out, and the others are there.
#[tokio::test]
async fn a_server_that_is_not_required_is_left_out() {
    let yard = Yard::open(vec![odd("good", "plain"), odd("bad", "exits").required(false)]).await;
    assert!(yard.names().iter().all(|name| name.starts_with("good__")));
    assert_eq!(yard.text("good__echo", json!({"text": "x"})).await, "x");
    yard.servers.shutdown().await;
}
