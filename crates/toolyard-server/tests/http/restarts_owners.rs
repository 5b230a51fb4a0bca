//! Whose a session is, and what its holder may, in this life of the server and the next one (HT-6, HT-7, HT-13).

use crate::{
    restarts::{after, result, save, text},
    yard::{APPROVER, CALLER, OTHER, SECOND, Yard, call},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, Ordering},
    mpsc::channel,
};
use tokio::sync::Semaphore;
use toolyard::Capabilities;
use toolyard_server::{Scope, SecretHash, Token};
use toolyard_tests::Ledger;

/// HT-7, HT-13: of two who open a session under the same new name at the same moment one has it, in this life and the next one,
/// whatever the other does between the look at the name's past and the opening.
#[tokio::test]
async fn a_name_that_two_want_is_that_of_one() {
    let (reads, (go_on, wait)) = (Arc::new(Semaphore::new(0)), channel::<()>());
    let (begun, is_first, wait) = (reads.clone(), AtomicBool::new(true), Mutex::new(wait));
    // The first look at the past takes until it is told to go on.
    let ledger = Ledger::default().on_read(move |_| {
        if is_first.swap(false, Ordering::Relaxed) {
            begun.add_permits(1);
            let _ = wait.lock().expect("nobody panics with it").recv();
        }
    });
    let yard = crate::restarts::first(&ledger).await;
    let open = |secret: &str| {
        let request = yard.request(secret, Method::POST, "/sessions");
        request.json(&json!({"id": "a"})).send()
    };
    let slow = tokio::spawn(open(OTHER));
    reads.acquire().await.unwrap().forget();
    let quick = open(CALLER).await.unwrap().status().as_u16();
    if quick == 201 {
        yard.delete(CALLER, "/sessions/a").await.with(202);
    }
    go_on.send(()).unwrap();
    let slow = slow.await.unwrap().unwrap().status().as_u16();
    let (owner, loser) = match (slow, quick) {
        (201, 409) => (OTHER, CALLER),
        (409, 201) => (CALLER, OTHER),
        both => panic!("not one of them: {both:?}"),
    };

    let (next, _) = after(&ledger.crashed()).await;
    assert_eq!(next.get(loser, "/sessions/a").await.status.as_u16(), 404);
    assert_eq!(next.post(loser, "/sessions", json!({"id": "a"})).await.problem(409), "session_open");
    if owner == OTHER {
        next.get(owner, "/sessions/a").await.with(200);
    }
    next.close().await;
}

fn token(name: &str, secret: &str, scopes: &[Scope]) -> Token {
    Token::new(name, SecretHash::of(secret), scopes.iter().copied())
}

/// HT-6, HT-7, HT-13: what tokens may after a restart counts, also for what an earlier life has left.
#[tokio::test]
async fn what_tokens_may_now_counts() {
    let ledger = Ledger::default();
    let yard = crate::restarts::first(&ledger).await;
    yard.session("a").await;
    yard.post(CALLER, "/sessions", json!({"id": "b", "role": "builder"})).await.with(201);
    yard.post(OTHER, "/sessions", json!({"id": "c"})).await.with(201);
    let fork = json!({"name": "writer", "only_tools": ["save", "echo"]});
    yard.post(CALLER, "/sessions/a/agents", fork).await.with(201);
    for path in ["/sessions/a/turns", "/sessions/a/turns?agent=root/writer", "/sessions/b/turns"] {
        yard.post(CALLER, path, json!({"calls": [save("1", "x")]})).await.with(202);
    }
    let asked = yard.turn("a", json!([call("1", "gate", json!({}))])).await;
    let ended = yard.turn("a", json!([call("1", "echo", json!({}))])).await;
    yard.ended("a", ended).await;
    let question = yard.question("b").await;

    let ledger = ledger.crashed();
    let next = crate::restarts::first(&ledger).await;
    // Neither the tool `save` nor the role any more; one who could approve only observes, the other one only calls.
    next.server
        .set_tokens(vec![
            token("caller", CALLER, &[Scope::Call])
                .capabilities(Capabilities::default().tools(["echo", "gate"])),
            token("other", OTHER, &[Scope::Observe]),
            token("ada", APPROVER, &[Scope::Observe]),
            token("bob", SECOND, &[Scope::Call]),
            token("op", "a new secret", &[Scope::Approve]),
        ])
        .unwrap();
    let recovered = next.server.recover().unwrap();
    let left = recovered.left.iter().map(|it| it.split(':').next().unwrap()).collect::<Vec<_>>();
    assert_eq!((recovered.sessions, recovered.turns), (1, 3), "{recovered:?}");
    assert_eq!(left[..2], ["session b", "session c"], "{recovered:?}");
    // Calls that were asked about then are refused now, those of agents too, and nobody is asked.
    for turn in [1, 2] {
        let ended = next.ended("a", turn).await;
        assert_eq!(result(&ended, 0)["error"]["code"], "permission_denied", "{ended}");
    }
    assert_eq!(text(&next.ended("a", ended).await, 0), "{}", "what it had it may read");
    next.gate.add_permits(1);
    assert_eq!(text(&next.ended("a", asked).await, 0), "passed");
    let calls = json!({"calls": [save("2", "x")]});
    for path in ["/sessions/a/turns?wait=60", "/sessions/a/turns?wait=60&agent=root/writer"] {
        let ended = next.post(CALLER, path, calls.clone()).await.with(200);
        assert_eq!(result(&ended, 0)["error"]["code"], "permission_denied", "{ended}");
    }
    // What was left is nobody's to see or to go on with, its questions included.
    for secret in [CALLER, OTHER, APPROVER, SECOND, "a new secret"] {
        for path in ["/sessions/b", "/sessions/b/turns/1", "/sessions/b/confirmations", "/sessions/c"] {
            assert_eq!(next.get(secret, path).await.status.as_u16(), 404, "{secret} {path}");
        }
    }
    let yes = json!({"decision": "allow", "digest": question["digest"]});
    for (secret, status) in [(APPROVER, 403), (SECOND, 403), (CALLER, 403), ("a new secret", 404)] {
        let told = next.post(secret, &Yard::answers(&question), yes.clone()).await;
        assert_eq!(told.status.as_u16(), status, "{told:?}");
    }
    let none = next.get(APPROVER, "/confirmations").await.with(200);
    assert_eq!(none["confirmations"], Value::Array(Vec::new()));
    assert_eq!(next.post(SECOND, "/sessions", json!({"id": "c"})).await.problem(409), "session_open");
    assert_eq!(next.post(OTHER, "/sessions", json!({"id": "c"})).await.problem(403), "scope_missing");
    let with_role = json!({"id": "b", "role": "builder"});
    assert_eq!(next.post(CALLER, "/sessions", with_role).await.problem(422), "invalid");
    assert_eq!(next.saved.load(Ordering::Relaxed), 0);
    next.close().await;
}
