//! Servers of either protocol, and servers that do not say which.

use crate::web::{
    server::{Asked, Reply, Web, json_of, pieces, plain, reply},
    yard::Yard,
};
use futures::stream;
use hyper::header::HeaderValue;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};
use toolyard::ErrorKind;

/// A server of the newer way that does not know the older.
pub(crate) fn newer(asked: &Asked) -> Reply {
    match asked.what() {
        "server/discover" => json_of(&asked.result(json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "ttlMs": 0,
            "cacheScope": "private",
        }))),
        "initialize" => json_of(&asked.refusal(-32601)),
        _ => plain(asked),
    }
}

async fn echoes(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Web {
    let web = Web::open(answer).await;
    let yard = Yard::open(vec![web.config("s")]).await;
    assert_eq!(yard.text("s__echo", json!({})).await, "echo");
    yard.servers.shutdown().await;
    web
}

/// A server is greeted in the newer way if it knows that, and in the older if it says that it does not: by a protocol
/// error or an HTTP error.
#[tokio::test]
async fn a_server_is_greeted_in_its_own_way() {
    let web = echoes(newer).await;
    assert_eq!((web.count("server/discover"), web.count("initialize")), (1, 0));
    let web = echoes(plain).await;
    assert_eq!((web.count("server/discover"), web.count("initialize")), (1, 1));
    let web = echoes(|asked| match asked.what() {
        "server/discover" => reply(400, "text/plain", "no session"),
        _ => plain(asked),
    })
    .await;
    assert_eq!(web.count("initialize"), 1);
    // An answer that makes no sense, or that names older versions, is no reason to give up either.
    for versions in [json!("all"), json!(["2025-11-25"])] {
        let web = echoes(move |asked| match asked.what() {
            "server/discover" => json_of(&asked.result(json!({
                "resultType": "complete",
                "supportedVersions": versions,
                "capabilities": {},
                "ttlMs": 0,
                "cacheScope": "private",
            }))),
            _ => plain(asked),
        })
        .await;
        assert_eq!(web.count("initialize"), 1);
    }
}

/// A server that never answers the newer greeting, in whatever form, is greeted in the older way after a short time.
#[tokio::test]
async fn a_server_that_does_not_answer_is_asked_in_the_older_way() {
    for kind in ["application/json", "text/event-stream"] {
        let web = echoes(move |asked| match asked.what() {
            "server/discover" => pieces(kind, stream::pending()),
            _ => plain(asked),
        })
        .await;
        assert_eq!((web.count("server/discover"), web.count("initialize")), (1, 1));
    }
}

/// A server that answers late and does not know the older way is given more time when it is greeted once more.
#[tokio::test]
async fn a_server_that_is_late_is_asked_once_more() {
    let was_asked = AtomicBool::new(false);
    let web = echoes(move |asked| match asked.what() {
        "server/discover" if !was_asked.swap(true, Ordering::Relaxed) => {
            pieces("application/json", stream::pending())
        }
        _ => newer(asked),
    })
    .await;
    assert_eq!((web.count("server/discover"), web.count("initialize")), (2, 1));
}

/// A parameter that a server wants in a header is sent there, and is left out if it is absent. It is a text, a number
/// or a boolean, so null is not one of its values (V4): a call with null is refused, and nothing of it is sent.
#[tokio::test]
async fn a_parameter_that_is_left_out_is_in_no_header() {
    let web = Web::open(|asked| match asked.what() {
        "tools/list" => json_of(&asked.result(json!({"tools": [{"name": "odd", "inputSchema": {
            "type": "object",
            "properties": {"flag": {"type": "boolean", "x-mcp-header": "Flag"}},
        }}]}))),
        _ => newer(asked),
    })
    .await;
    let yard = Yard::open(vec![web.config("s")]).await;
    yard.text("s__odd", json!({"flag": false})).await;
    yard.text("s__odd", json!({})).await;
    let refused = yard.call("s__odd", json!({"flag": null})).await.status.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::InvalidInput);
    let seen = web.seen.lock().unwrap().clone();
    let calls = seen.iter().filter(|asked| asked.tool() == "odd");
    let flags: Vec<_> = calls.map(|asked| asked.headers.get("mcp-param-flag")).collect();
    assert_eq!(flags, [Some(&HeaderValue::from_static("false")), None]);
    yard.servers.shutdown().await;
}
