//! Cancels of single calls that are not in flight, and the next life of the server (HT-13, JR-1, SM-10).

use crate::{
    restarts::{after, first, result, save, text},
    yard::{APPROVER, CALLER, Yard, call},
};
use async_trait::async_trait;
use reqwest::Method;
use serde_json::json;
use std::sync::{Arc, atomic::Ordering};
use tokio::sync::Semaphore;
use toolyard::{Abort, Call, Caller, Drain, Hooks};
use toolyard_tests::Ledger;

async fn cancel(yard: &Yard, path: &str) {
    yard.sent(yard.request(CALLER, Method::POST, &format!("{path}/cancel"))).await.with(202);
}

/// A hook that holds up every call before the gate.
#[derive(Clone)]
struct Held {
    reached: Arc<Semaphore>,
    let_go: Arc<Semaphore>,
}

#[async_trait]
impl Hooks for Held {
    async fn on_tool_call(&self, _: &Call, _: &Caller<'_>) -> Result<(), Abort> {
        self.reached.add_permits(1);
        self.let_go.acquire().await.expect("it is never closed").forget();
        Ok(())
    }
}

/// JR-1, HT-13: the cancel of a single call that has not passed the gate in this life is recorded when it is acknowledged.
#[tokio::test]
async fn a_cancel_before_the_gate_is_recorded() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    let turn = yard.turn("a", json!([call("1", "gate", json!({})), save("2", "x")])).await;

    let ledger = ledger.crashed();
    let held = Held { reached: Arc::new(Semaphore::new(0)), let_go: Arc::new(Semaphore::new(0)) };
    let hooks = held.clone();
    let yard = Yard::over(|builder| builder.recorder(ledger.clone()).hooks(hooks), |options| options).await;
    assert_eq!(yard.server.recover().unwrap().turns, 1);
    held.reached.acquire().await.unwrap().forget();
    cancel(&yard, "/sessions/a/turns/1/calls/0").await;

    let (next, _) = after(&ledger.crashed()).await;
    let question = next.question("a").await;
    let no = json!({"decision": "deny", "digest": question["digest"]});
    next.post(APPROVER, &Yard::answers(&question), no).await.with(200);
    let ended = next.ended("a", turn).await;
    assert_eq!(result(&ended, 0)["error"]["code"], "cancelled", "{ended}");
    assert_eq!(result(&ended, 1)["error"]["code"], "user_denied", "{ended}");
    // It reaches the call in the life in which it was given, too.
    held.let_go.add_permits(2);
    yard.question("a").await;
    let shown = yard.get(CALLER, "/sessions/a/turns/1?partial=true").await.with(200);
    assert_eq!(shown["outcomes"][0]["error"]["code"], "cancelled", "{shown}");
    next.close().await;
}

/// SM-10, JR-1: a single call of a turn that is suspended can be cancelled, and does not go on then.
#[tokio::test]
async fn a_cancel_reaches_one_call_that_is_suspended() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    let turn = yard.turn("a", json!([save("1", "x"), call("2", "gate", json!({}))])).await;
    yard.question("a").await;
    yard.server.drain();
    yard.engine.shutdown(Drain::default()).await;
    assert_eq!(yard.ended("a", turn).await["state"], "suspended");
    cancel(&yard, "/sessions/a/turns/1/calls/1").await;

    let (next, _) = after(&ledger.crashed()).await;
    let question = next.question("a").await;
    let yes = json!({"decision": "allow", "digest": question["digest"]});
    next.post(APPROVER, &Yard::answers(&question), yes).await.with(200);
    let ended = next.ended("a", turn).await;
    assert_eq!((text(&ended, 0), &result(&ended, 1)["error"]["code"]), ("saved x", &json!("cancelled")));
    assert_eq!(next.saved.load(Ordering::Relaxed), 1);
    next.close().await;
}
