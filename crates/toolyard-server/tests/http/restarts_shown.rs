//! What the next life of the server shows of what was before it: times, numbers, the order of lists (HT-12, HT-13).

use crate::{
    restarts::{after, first, save},
    yard::{APPROVER, CALLER, Yard, call},
};
use reqwest::Method;
use serde_json::{Value, json};
use std::time::{Duration, SystemTime};
use toolyard_tests::Ledger;

/// HT-12, HT-13: questions of an earlier life are older than those of this one, so that a page that goes on behind one of them
/// has what was asked since, and nothing that was asked before.
#[tokio::test]
async fn questions_of_an_earlier_life_are_the_oldest() {
    for seeds in [[1, 2], [2, 1]] {
        let ledger = Ledger::default();
        let seeded = |ledger: &Ledger, seed: u64| {
            let ledger = ledger.clone();
            Yard::over(move |builder| builder.recorder(ledger).seed(seed), |options| options)
        };
        let yard = seeded(&ledger, seeds[0]).await;
        yard.session("a").await;
        yard.turn("a", json!([save("1", "x")])).await;
        let old = yard.question("a").await["request_id"].clone();

        let next = seeded(&ledger.crashed(), seeds[1]).await;
        assert_eq!(next.server.recover().unwrap().turns, 1);
        assert_eq!(next.question("a").await["request_id"], old);
        next.session("b").await;
        next.turn("b", json!([save("1", "y")])).await;
        let new = next.question("b").await["request_id"].clone();
        let listed = async |cursor: &str| {
            let page = next.get(APPROVER, &format!("/confirmations{cursor}")).await.with(200);
            let all = page["confirmations"].as_array().unwrap();
            all.iter().map(|question| question["request_id"].clone()).collect::<Vec<_>>()
        };
        let behind = |id: &Value| format!("?cursor={}", id.as_str().unwrap());
        assert_eq!(listed("").await, [old.clone(), new.clone()], "{seeds:?}");
        assert_eq!(listed(&behind(&old)).await, std::slice::from_ref(&new), "{seeds:?}");
        assert_eq!(listed(&behind(&new)).await, [Value::Null; 0], "{seeds:?}");
        next.close().await;
    }
}

/// HT-12, HT-13: questions of several earlier lives are in the order in which they were asked.
#[tokio::test]
async fn questions_of_earlier_lives_are_in_order() {
    for seeds in [[1, 2, 3], [2, 1, 3]] {
        let mut ledger = Ledger::default();
        let mut asked = Vec::new();
        for (seed, session) in seeds.into_iter().zip(["a", "b", "c"]) {
            ledger = ledger.crashed();
            let recorder = ledger.clone();
            let yard =
                Yard::over(move |builder| builder.recorder(recorder).seed(seed), |options| options).await;
            assert_eq!(yard.server.recover().unwrap().turns, asked.len());
            yard.session(session).await;
            yard.turn(session, json!([save("1", "x")])).await;
            let question = yard.question(session).await["request_id"].as_str().unwrap().to_owned();
            asked.push(question);
            for earlier in ["a", "b", "c"].into_iter().take(asked.len()) {
                yard.question(earlier).await;
            }
            let listed = async |cursor: &str| {
                let page = yard.get(APPROVER, &format!("/confirmations{cursor}")).await.with(200);
                let all = page["confirmations"].as_array().unwrap();
                all.iter().map(|it| it["request_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
            };
            assert_eq!(listed("").await, asked, "{seeds:?}");
            for at in 0..asked.len() {
                assert_eq!(listed(&format!("?cursor={}", asked[at])).await, asked[at + 1..], "{seeds:?}");
            }
        }
    }
}

/// HT-13: a session has been open since it was opened first, in whichever life.
#[tokio::test]
async fn a_session_is_as_old_as_it_was() {
    let mut ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    let opened = yard.get(CALLER, "/sessions/a").await.with(200)["opened_ms"].as_u64().unwrap();
    for _ in 0..2 {
        // Time has passed, however fast this is.
        while SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis() <= opened.into() {
            tokio::task::yield_now().await;
        }
        ledger = ledger.crashed();
        let (next, _) = after(&ledger).await;
        assert_eq!(next.get(CALLER, "/sessions/a").await.with(200)["opened_ms"], opened);
    }
}

/// JR-10, HT-13: the number of a turn is that of no other turn in a later life, also if the turn had no calls.
#[tokio::test]
async fn numbers_of_turns_are_not_used_again() {
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    let answer = json!({"type": "message", "role": "assistant", "stop_reason": "end_turn",
        "content": [{"type": "text", "text": "Done."}]});
    let one = yard.post(CALLER, "/sessions/a/turns?wait=60", answer.clone()).await.with(200);
    assert_eq!(
        (&one["turn"], &one["state"], &one["calls"]),
        (&json!(1), &json!("ended"), &json!(0)),
        "{one}"
    );

    let (next, _) = after(&ledger.crashed()).await;
    let two = next.post(CALLER, "/sessions/a/turns?wait=60", answer).await.with(200);
    assert_eq!(two["turn"], 2, "{two}");
    assert_eq!(next.get(CALLER, "/sessions/a/turns/1").await.with(200)["state"], "ended");
    next.close().await;
}

/// HT-13: a turn of an earlier life is shown with the times that it had, also among others and to whoever sends it again, and
/// as recorded; one that goes on ends now.
#[tokio::test]
async fn a_turn_has_its_times() {
    const HOUR: u64 = 3_600_000;
    let ledger = Ledger::default();
    let yard = first(&ledger).await;
    yard.session("a").await;
    let keyed = |yard: &Yard| {
        let request = yard.request(CALLER, Method::POST, "/sessions/a/turns?wait=60");
        request.header("idempotency-key", "k").json(&json!({"calls": [call("1", "echo", json!({}))]}))
    };
    yard.sent(keyed(&yard)).await.with(200);
    let one = yard.get(CALLER, "/sessions/a/turns/1?partial=true").await.with(200);
    yard.turn("a", json!([save("2", "x")])).await;
    let two = yard.get(CALLER, "/sessions/a/turns/2").await.with(200);
    let listed = yard.get(CALLER, "/sessions/a").await.with(200);

    // As if it was an hour ago: whatever the clock says, and however fast this is.
    let (next, _) = after(&ledger.crashed().earlier(Duration::from_millis(HOUR))).await;
    let is_same = |again: &Value, before: &Value, of: &str| {
        let ms = |shown: &Value| shown[of].as_u64().unwrap_or_else(|| panic!("no {of}: {shown}"));
        let ago = ms(before).abs_diff(ms(again));
        assert!((HOUR - HOUR / 2..HOUR + HOUR / 2).contains(&ago), "{of}: {before}, {again}");
    };
    let repeated = next.sent(keyed(&next)).await.with(200);
    let mut again = next.get(CALLER, "/sessions/a/turns/1?partial=true").await.with(200);
    let all = next.get(CALLER, "/turns?session=a").await.with(200);
    for shown in [&repeated, &again, &all["turns"][1]] {
        is_same(shown, &one, "started_ms");
        is_same(shown, &one, "ended_ms");
        assert_eq!((&shown["turn"], shown.get("recorded")), (&json!(1), None), "{shown}");
    }
    again["outcomes"][0]["dedupe"] = one["outcomes"][0]["dedupe"].clone();
    assert_eq!((&again["outcomes"], &again["results"]), (&one["outcomes"], &one["results"]));
    let session = next.get(CALLER, "/sessions/a").await.with(200);
    assert_eq!(session["turns"], listed["turns"]);
    let question = next.question("a").await;
    let no = json!({"decision": "deny", "digest": question["digest"]});
    next.post(APPROVER, &Yard::answers(&question), no).await.with(200);
    let ended = next.ended("a", 2).await;
    is_same(&ended, &two, "started_ms");
    let [started, end] = ["started_ms", "ended_ms"].map(|of| ended[of].as_u64().unwrap());
    assert!(end - started > HOUR / 2, "it ends now: {ended}");
    next.close().await;
}
