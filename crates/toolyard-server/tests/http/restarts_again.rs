//! A later life of the server answers as the one before would have (HT-13).

use crate::{
    restarts::{after, first, result, save, text},
    yard::{CALLER, Yard, call},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use toolyard::{Durable, ForkRecord, RecordError, Recorder, SessionId, SessionRecord};
use toolyard_tests::Ledger;

/// What a request without a body is answered with.
async fn told(yard: &Yard, method: Method, path: &str) -> (u16, Value) {
    let answer = yard.sent(yard.request(CALLER, method, path)).await;
    (answer.status.as_u16(), answer.body)
}

/// HT-13: a cancel of what an earlier life has ended is answered as in that life, and so is the close of a session that it has
/// closed.
#[tokio::test]
async fn what_comes_again_is_answered_as_before() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    let turn = yard.turn("a", json!([call("1", "echo", json!({}))])).await;
    assert_eq!(yard.ended("a", turn).await["state"], "ended");
    yard.session("b").await;
    yard.delete(CALLER, "/sessions/b").await.with(202);
    let all = [
        (Method::POST, "/sessions/a/turns/1/cancel"),
        (Method::POST, "/sessions/a/turns/1/calls/0/cancel"),
        (Method::POST, "/sessions/a/turns/1/calls/7/cancel"),
        (Method::POST, "/sessions/a/turns/9/cancel"),
        (Method::POST, "/sessions/b/turns/1/cancel"),
        (Method::DELETE, "/sessions/b"),
    ];
    let mut before = Vec::new();
    for (method, path) in &all {
        before.push(told(&yard, method.clone(), path).await);
    }
    let statuses: Vec<_> = before.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [202, 202, 404, 404, 404, 404]);

    let (next, _) = after(&ledger.crashed()).await;
    for ((method, path), before) in all.iter().zip(&before) {
        assert_eq!(told(&next, method.clone(), path).await, *before, "{path}");
    }
    assert!(next.engine.find(&SessionId::from("b")).is_none());
    assert_eq!(text(&next.ended("a", turn).await, 0), "{}", "it is as it was");
    next.close().await;
}

/// HT-13: what had not ended of a session that an earlier life has closed ends in the next one, as it would have in its own:
/// nothing of it starts, and nothing is left open.
#[tokio::test]
async fn what_was_closed_comes_to_its_end() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    yard.post(CALLER, "/sessions/a/agents", json!({"name": "writer"})).await.with(201);
    for path in ["/sessions/a/turns", "/sessions/a/turns?agent=root/writer"] {
        yard.post(CALLER, path, json!({"calls": [save("1", "x"), call("2", "gate", json!({}))]}))
            .await
            .with(202);
    }
    let records = ledger.len();
    yard.delete(CALLER, "/sessions/a").await.with(202);

    // The close is the last that is known.
    let ledger = ledger.cut(records + 1);
    let (next, recovered) = after(&ledger).await;
    assert_eq!((recovered.sessions, recovered.turns, recovered.left.len()), (0, 0, 0), "{recovered:?}");
    assert_eq!(recovered.settled().await, Vec::<String>::new());
    assert_eq!(told(&next, Method::DELETE, "/sessions/a").await.0, 404);
    next.session("a").await;
    assert_eq!(next.get(CALLER, "/sessions/a").await.with(200)["agents"], json!(["root"]));
    assert_eq!(next.get(CALLER, "/sessions/a/turns/1").await.status.as_u16(), 410, "it has ended");

    let (last, recovered) = after(&ledger.crashed()).await;
    assert_eq!((recovered.sessions, recovered.turns, recovered.left.len()), (1, 0, 0), "{recovered:?}");
    assert!(last.engine.open_turns().unwrap().is_empty());
    for (turn, agent) in [(1, "root"), (2, "root/writer")] {
        let ended = last.get(CALLER, &format!("/sessions/a/turns/{turn}?to=neutral")).await;
        if agent == "root" {
            let ended = ended.with(200);
            assert_eq!(result(&ended, 0)["error"]["code"], "cancelled", "{ended}");
            assert_eq!(result(&ended, 1)["error"]["code"], "cancelled", "{ended}");
        } else {
            ended.problem(404); // nobody has made its agent again
        }
    }
    assert_eq!(next.saved.load(Ordering::Relaxed), 0);
    last.close().await;
    next.close().await;
}

/// HT-13: whoever asks for a turn that goes on, or cancels it, before it is taken up waits for that, however many there are.
#[tokio::test]
async fn whoever_asks_while_turns_are_taken_up_waits() {
    const TURNS: u64 = 40;
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    for at in 1..=TURNS {
        assert_eq!(yard.turn("a", json!([save("1", "x")])).await, at);
    }

    let (next, recovered) = after(&ledger.crashed()).await;
    let last = format!("/sessions/a/turns/{TURNS}");
    let (shown, cancelled, ()) = futures::join!(
        next.get(CALLER, &last),
        next.sent(next.request(CALLER, Method::POST, &format!("/sessions/a/turns/{}/cancel", TURNS - 1))),
        async { assert_eq!(recovered.settled().await, Vec::<String>::new()) },
    );
    assert_eq!(shown.with(200)["turn"], TURNS);
    cancelled.with(202);
    let ended = next.ended("a", TURNS - 1).await;
    assert_eq!(result(&ended, 0)["error"]["code"], "cancelled", "{ended}");
    next.close().await;
}

/// A journal that cannot be written when the first sub-agent is made.
#[derive(Default)]
struct FullOnce(AtomicBool);

impl Recorder for FullOnce {
    fn outlives_engine(&self) -> bool {
        true
    }

    fn session(&self, _: &SessionRecord<'_>) -> Durable {
        Durable::when(async { Ok(()) })
    }

    fn fork(&self, _: &ForkRecord<'_>) -> Durable {
        let is_first = !self.0.swap(true, Ordering::Relaxed);
        Durable::when(
            async move { if is_first { Err(RecordError::new("the disk is full")) } else { Ok(()) } },
        )
    }
}

/// CL-7, HT-13: nothing is left of a sub-agent that could not be recorded: it can be made again under its name.
#[tokio::test]
async fn a_sub_agent_that_is_not_recorded_is_not_kept() {
    let yard = Yard::over(|builder| builder.recorder(FullOnce::default()), |options| options).await;
    yard.session("a").await;
    let make = || yard.post(CALLER, "/sessions/a/agents", json!({"name": "one"}));
    assert_eq!(make().await.problem(503), "not_recorded");
    assert_eq!(yard.get(CALLER, "/sessions/a").await.with(200)["agents"], json!(["root"]));
    assert_eq!(make().await.with(201)["agent"], "root/one");
    assert_eq!(yard.get(CALLER, "/sessions/a").await.with(200)["agents"], json!(["root", "root/one"]));
    yard.close().await;
}
