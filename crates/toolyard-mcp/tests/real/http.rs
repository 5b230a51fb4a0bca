//! A third-party server over streamable HTTP.

use crate::real::{place, yard::Yard};
use serde_json::json;
use std::{net::TcpListener, process::Stdio};
use tokio::io::{AsyncBufReadExt, BufReader};
use toolyard::{Call, Effect, ErrorKind, EventKind};
use toolyard_mcp::{ServerConfig, Servers};

/// The server `everything` at a free port, once it says that it listens.
async fn everything() -> Option<(tokio::process::Child, String)> {
    let script = place::script("everything")?;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = tokio::process::Command::new("node");
    command.arg(script).arg("streamableHttp").env("PORT", port.to_string()).kill_on_drop(true);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    while let Some(line) = lines.next_line().await.unwrap() {
        if line.contains("listening on port") {
            break;
        }
    }
    // Keeps reading, so that the server is never blocked.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Some((child, format!("http://127.0.0.1:{port}/mcp")))
}

/// Calls, many at once, with progress; and the server's death during one.
#[tokio::test]
async fn a_server_over_http_is_called_like_any_other() {
    let Some((mut child, url)) = everything().await else { return };
    let yard = Yard::open(vec![ServerConfig::http("web", url).prefix("")]).await;
    let echo = |n: u32| Call::new(n.to_string(), "echo", json!({"message": n.to_string()}));
    for (n, outcome) in yard.all((0..64).map(echo).collect()).await.into_iter().enumerate() {
        assert_eq!(outcome.status.unwrap().to_text(), format!("Echo: {n}"));
    }
    yard.call("trigger-long-running-operation", json!({"duration": 1, "steps": 4})).await.status.unwrap();
    let deltas = |yard: &Yard| yard.count_events(|kind| matches!(kind, EventKind::OutputDelta { .. }));
    assert_eq!(deltas(&yard), 4);
    let session = yard.engine.session("t");
    let kill = async {
        yard.until("there is progress", |yard| deltas(yard) > 4).await;
        child.kill().await.unwrap();
    };
    let long = Call::new("long", "trigger-long-running-operation", json!({"duration": 600, "steps": 6000}));
    let (outcome, ()) = tokio::join!(session.call(long), kill);
    let error = outcome.status.unwrap_err();
    assert_eq!((error.kind, error.effect), (ErrorKind::Transient, Effect::Unknown), "{error:?}");
    yard.servers.shutdown().await;
}

/// A server that does not exist is reported at once.
#[tokio::test]
async fn a_server_that_nobody_runs_is_told_of() {
    // Not a port that the system assigns: one that was free a moment ago may belong to another test by now.
    let server = ServerConfig::http("web", "http://127.0.0.1:1/mcp");
    let Err(error) = Servers::start(vec![server]).await else { panic!("nobody is there") };
    assert!(error.to_string().contains("it cannot be reached"), "{error}");
}
