//! MCP clients of an earlier life of the server (HT-13, JR-10).

use crate::{
    mcp::{connected_as, message},
    restarts::{after, first},
    yard::{APPROVER, CALLER, Yard},
};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use toolyard_tests::Ledger;

fn save() -> Value {
    json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
        "name": "save", "arguments": {"path": "notes.md"}, "_meta": {"toolyard/idempotency_key": "k"}}})
}

/// A client that saves something, once its question is open.
async fn asks(yard: &Yard) -> (tokio::task::JoinHandle<()>, Value) {
    let session = connected_as(yard, CALLER, json!({})).await;
    let sent = message(yard, CALLER, Some(&session), &save()).send();
    let calling = tokio::spawn(async move { drop(sent.await.unwrap().text().await) });
    loop {
        let all = yard.get(APPROVER, "/confirmations").await.with(200);
        match all["confirmations"].as_array().unwrap().as_slice() {
            [] => tokio::task::yield_now().await,
            [question] => return (calling, question.clone()),
            several => panic!("{several:?}"),
        }
    }
}

/// HT-13, JR-10: what a kill leaves open of an MCP client over HTTP is left as it was, and said, in each later life: it is asked
/// about and runs no more. Its key is known for its own life alone.
#[tokio::test]
async fn what_an_mcp_client_has_left_stays() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    let (calling, question) = asks(&yard).await;
    let session = question["session"].as_str().unwrap();
    assert!(session.starts_with("mcp:"), "{session}");

    let mut ledger = ledger.crashed();
    for _ in 0..2 {
        let (next, recovered) = after(&ledger).await;
        assert_eq!((recovered.sessions, recovered.turns), (0, 0), "{recovered:?}");
        assert!(recovered.left[0].starts_with("1 turns of other sessions, of MCP clients"), "{recovered:?}");
        assert_eq!(recovered.settled().await, Vec::<String>::new());
        assert_eq!(next.get(APPROVER, "/confirmations").await.with(200)["confirmations"], json!([]));
        let open = ledger.open_in_next_life();
        assert_eq!(open.iter().map(|open| open.session.as_str()).collect::<Vec<_>>(), [session]);
        assert_eq!(next.saved.load(Ordering::Relaxed), 0);
        ledger = ledger.crashed();
        next.close().await;
    }

    // The same client, with the same key, is another one: its call is asked about, and runs.
    let (last, _) = after(&ledger).await;
    let (called, again) = asks(&last).await;
    assert_ne!(again["session"], question["session"]);
    let yes = json!({"decision": "allow", "digest": again["digest"]});
    last.post(APPROVER, &Yard::answers(&again), yes).await.with(200);
    called.await.unwrap();
    assert_eq!(last.saved.load(Ordering::Relaxed), 1);
    calling.abort();
    last.close().await;
}
