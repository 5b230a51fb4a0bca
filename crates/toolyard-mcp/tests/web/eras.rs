//! Servers of either protocol, and those that do not say which.

use crate::{
    server::{Asked, Reply, Web, json_of, pieces, plain, reply},
    yard::Yard,
};
use futures::stream;
use serde_json::json;
use std::sync::atomic::{AtomicBool, Ordering};

/// A server of the newer way that knows nothing of the older.
fn newer(asked: &Asked) -> Reply {
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

/// A server is spoken to in the newer way where it knows that, and in the older where it says that it does not: by an
/// error of the protocol or of HTTP.
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
    // An answer without sense is no reason to leave it either, nor one that names older versions.
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

/// One that never answers the newer question, in whatever form, is asked the older after a short while.
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

/// One that is late with its answer and knows nothing of the older way is waited for when it is asked once more.
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
