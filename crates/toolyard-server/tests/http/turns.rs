//! Turns and calls.

use crate::yard::{CALLER, OPERATOR, Yard, call};
use reqwest::Method;
use serde_json::{Value, json};
use toolyard_server::Bounds;

const OPENAI: &str = r#"{"choices":[{"message":{"role":"assistant","tool_calls":[
    {"id":"call_1","type":"function","function":{"name":"echo","arguments":"{\"x\":1}"}}]}}]}"#;

/// A provider's response runs, and its results are in its format, or in the one that was asked for.
#[tokio::test]
async fn a_response_runs_and_its_results_are_in_its_format() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let request = |query: &str| {
        let request = yard.request(CALLER, Method::POST, &format!("/sessions/a/turns{query}"));
        request.header("content-type", "application/json").header("prefer", "wait=60").body(OPENAI)
    };
    let answer = yard.sent(request("")).await;
    assert_eq!(answer.headers["preference-applied"], "wait");
    let turn = answer.with(200);
    assert_eq!(
        (&turn["format"], &turn["calls"], &turn["finished"]),
        (&json!("openai-chat"), &json!(1), &json!(1))
    );
    assert_eq!(turn["results"][0]["tool_call_id"], "call_1");
    let anthropic = yard.sent(request("?to=anthropic")).await.with(200);
    assert_eq!(anthropic["results"]["content"][0]["tool_use_id"], "call_1", "{anthropic}");
    let again = yard.get(CALLER, "/sessions/a/turns/1?to=neutral&partial=true").await.with(200);
    assert_eq!(again["results"]["results"][0]["call_id"], "call_1", "{again}");
    assert_eq!(again["outcomes"][0]["output"], json!({"x": 1}));
    assert_eq!(yard.sent(request("?from=nonsense")).await.problem(400), "malformed");
    yard.close().await;
}

/// What cannot be read as a response is refused whole; a call that is wrong is a result of its turn.
#[tokio::test]
async fn a_bad_response_is_refused_and_a_bad_call_is_answered() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let body = |text: &'static str| {
        let request = yard.request(CALLER, Method::POST, "/sessions/a/turns?wait=60");
        yard.sent(request.header("content-type", "application/json").body(text))
    };
    for bad in ["", "{", "[1]", "{\"x\":1}", "\u{7}"] {
        assert_eq!(body(bad).await.problem(422), "response", "{bad:?}");
    }
    let unknown = body("{\"x\":1}").await.with(422);
    assert!(unknown["detail"].as_str().unwrap().ends_with("name one with ?from="), "{unknown}");
    let turn = body(r#"{"calls":[{"call_id":"1","name":"nobody","arguments":{}}]}"#).await.with(200);
    assert_eq!(turn["results"]["results"][0]["error"]["code"], "not_found", "{turn}");
    yard.close().await;
}

/// HT-2, SC-4: a turn goes on while nobody waits for it; its calls and all of it can be cancelled.
#[tokio::test]
async fn a_turn_is_cancelled_whole_or_call_by_call() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let calls = json!([1, 2, 3].map(|id: u8| call(&id.to_string(), "gate", json!({}))));
    let turn = yard.turn("a", calls).await;
    let at = format!("/sessions/a/turns/{turn}");
    assert_eq!(
        yard.post(CALLER, &format!("{at}/calls/3/cancel"), Value::Null).await.problem(404),
        "not_found"
    );
    yard.post(CALLER, &format!("{at}/calls/1/cancel"), Value::Null).await.with(202);
    let outcomes = loop {
        let turn = yard.get(CALLER, &format!("{at}?partial=true")).await.with(200);
        if turn["finished"] == 1 {
            break turn["outcomes"].clone();
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((&outcomes[0], &outcomes[1]["error"]["code"]), (&Value::Null, &json!("cancelled")));
    yard.gate.add_permits(1);
    yard.post(OPERATOR, &format!("{at}/cancel"), Value::Null).await.with(202);
    let ended = yard.ended("a", turn).await;
    assert_eq!((&ended["state"], &ended["cancelled"]), (&json!("ended"), &json!(true)));
    yard.close().await;
}

/// HT-3: a turn may wait for another one.
#[tokio::test]
async fn a_turn_may_start_after_another() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let first = yard.turn("a", json!([call("1", "gate", json!({}))])).await;
    let batch = json!({"calls": [call("2", "echo", json!({}))]});
    let path = format!("/sessions/a/turns?after={first}");
    let second = yard.post(CALLER, &path, batch.clone()).await.with(202)["turn"].as_u64().unwrap();
    let beside = yard.post(CALLER, "/sessions/a/turns?wait=60", batch.clone()).await.with(200);
    assert_eq!(beside["state"], "ended");
    let waiting = yard.get(CALLER, &format!("/sessions/a/turns/{second}")).await.with(200);
    assert_eq!((&waiting["state"], &waiting["finished"]), (&json!("running"), &json!(0)));
    yard.gate.add_permits(1);
    assert_eq!(yard.ended("a", second).await["state"], "ended");
    assert_eq!(yard.post(CALLER, "/sessions/a/turns?after=99", batch).await.problem(404), "not_found");
    yard.close().await;
}

/// HT-2: only who asks for it has its turn cancelled when it goes away.
#[tokio::test]
async fn going_away_cancels_what_was_asked_to() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let batch = json!({"calls": [call("1", "gate", json!({}))]});
    for (query, cancels) in [("?wait=60&cancel_on_disconnect=true", true), ("?wait=60", false)] {
        let open = yard.get(CALLER, "/turns?session=a&limit=1000").await.with(200)["turns"]
            .as_array()
            .unwrap()
            .len();
        let request = yard.request(CALLER, Method::POST, &format!("/sessions/a/turns{query}")).json(&batch);
        let waiting = tokio::spawn(request.send());
        let turn = loop {
            let turns = yard.get(CALLER, "/turns?session=a&limit=1000").await.with(200);
            if turns["turns"].as_array().unwrap().len() > open {
                break turns["turns"][0]["turn"].as_u64().unwrap();
            }
            tokio::task::yield_now().await;
        };
        waiting.abort();
        if !cancels {
            yard.gate.add_permits(1);
        }
        let ended = yard.ended("a", turn).await;
        assert_eq!(ended["cancelled"], cancels, "{query}");
    }
    yard.close().await;
}

/// HT-4: turns that have ended are kept within bounds; older ones were there.
#[tokio::test]
async fn old_turns_are_gone() {
    let yard = Yard::bounded(|bounds: &mut Bounds| bounds.turns_kept_max = 2).await;
    yard.session("a").await;
    for _ in 0..4 {
        let batch = json!({"calls": [call("1", "echo", json!({}))]});
        yard.post(CALLER, "/sessions/a/turns?wait=60", batch).await.with(200);
    }
    assert_eq!(yard.get(CALLER, "/sessions/a/turns/2").await.problem(410), "gone");
    yard.get(CALLER, "/sessions/a/turns/3").await.with(200);
    assert_eq!(yard.get(CALLER, "/sessions/a/turns/5").await.problem(404), "not_found");
    yard.close().await;
}

/// SM-11: one call has one answer, which says everything that is known of it.
#[tokio::test]
async fn one_call_has_one_answer() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let answer = yard.post(CALLER, "/sessions/a/calls", call("1", "echo", json!({"x": 2}))).await.with(200);
    assert_eq!((&answer["success"], &answer["output"]), (&json!(true), &json!({"x": 2})));
    let failed = yard.post(CALLER, "/sessions/a/calls", call("1", "nobody", json!({}))).await.with(200);
    assert_eq!(failed["error"]["code"], "not_found");
    assert_eq!(yard.post(CALLER, "/sessions/a/calls", json!({"tool": "echo"})).await.problem(422), "invalid");
    yard.close().await;
}

/// HT-10: a body that is too large is refused, and the next request is served.
#[tokio::test]
async fn a_body_is_bounded() {
    let yard = Yard::bounded(|bounds: &mut Bounds| bounds.body_bytes_max = 1000).await;
    yard.session("a").await;
    let large = json!({"calls": [call("1", "echo", json!({"x": "x".repeat(2000)}))]});
    assert_eq!(yard.post(CALLER, "/sessions/a/turns", large).await.problem(413), "body_too_large");
    yard.get(CALLER, "/sessions/a").await.with(200);
    yard.close().await;
}

/// SC-8: a server that shuts down starts nothing new, and says so.
#[tokio::test]
async fn a_draining_server_starts_nothing() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let ready = || yard.sent(yard.request(CALLER, Method::GET, "/readyz"));
    assert_eq!(ready().await.status.as_u16(), 200);
    yard.server.drain();
    let refused = ready().await;
    assert_eq!(refused.problem(503), "shutting_down");
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(yard.post(CALLER, "/sessions", json!({})).await.problem(503), "shutting_down");
    let batch = json!({"calls": [call("1", "echo", json!({}))]});
    assert_eq!(yard.post(CALLER, "/sessions/a/turns", batch).await.problem(503), "shutting_down");
    yard.get(CALLER, "/sessions/a").await.with(200);
    yard.close().await;
}

/// HT-3: a turn that waits for another ends at once when it is cancelled.
#[tokio::test]
async fn a_turn_that_waits_can_be_cancelled() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let first = yard.turn("a", json!([call("1", "gate", json!({}))])).await;
    let batch = json!({"calls": [call("2", "echo", json!({}))]});
    let path = format!("/sessions/a/turns?after={first}");
    let second = yard.post(CALLER, &path, batch).await.with(202)["turn"].as_u64().unwrap();
    yard.post(CALLER, &format!("/sessions/a/turns/{second}/cancel"), Value::Null).await.with(202);
    let ended = yard.ended("a", second).await;
    assert_eq!(ended["results"]["results"][0]["error"]["code"], "cancelled", "{ended}");
    assert_eq!(yard.get(CALLER, &format!("/sessions/a/turns/{first}")).await.with(200)["state"], "running");
    yard.gate.add_permits(1);
    yard.ended("a", first).await;
    yard.close().await;
}

/// HT-4: the results of turns that are kept are bounded in bytes, with the arguments; the latest stays, however large.
#[tokio::test]
async fn results_are_kept_within_their_bytes() {
    let yard = Yard::bounded(|bounds| bounds.results_bytes_max = 8 << 10).await;
    yard.session("a").await;
    for size in [100, 100, 20_000] {
        let batch = json!({"calls": [call("1", "echo", json!({"text": "x".repeat(size)}))]});
        yard.post(CALLER, "/sessions/a/turns?wait=60", batch).await.with(200);
    }
    for gone in [1, 2] {
        assert_eq!(yard.get(CALLER, &format!("/sessions/a/turns/{gone}")).await.problem(410), "gone");
    }
    yard.get(CALLER, "/sessions/a/turns/3").await.with(200);
    yard.close().await;
}

/// HT-10: the open turns of a session are bounded.
#[tokio::test]
async fn open_turns_are_bounded() {
    let yard = Yard::bounded(|bounds| bounds.turns_open_max = 2).await;
    yard.session("a").await;
    let batch = json!({"calls": [call("1", "gate", json!({}))]});
    let turns = [(); 2].map(|()| yard.turn("a", batch["calls"].clone()));
    let [first, _] = futures::future::join_all(turns).await.try_into().unwrap();
    let refused = yard.post(CALLER, "/sessions/a/turns", batch.clone()).await;
    assert_eq!(refused.problem(429), "too_many");
    assert!(refused.headers.contains_key("retry-after"));
    yard.gate.add_permits(3); // the server waits for the last one too
    yard.ended("a", first).await;
    yard.turn("a", batch["calls"].clone()).await;
    yard.close().await;
}

/// HT-10: whoever waits for results when the server stops gets them.
#[tokio::test]
async fn whoever_waits_is_answered_when_it_stops() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let turn =
        yard.turn("a", json!([call("1", "gate", json!({})), call("2", "save", json!({"path": "x"}))])).await;
    yard.question("a").await;
    let waiting = yard.ended("a", turn);
    let stopping = async {
        yard.server.drain();
        yard.engine.shutdown(toolyard::Drain::default().finish(std::time::Duration::ZERO)).await;
        yard.stop.cancel();
    };
    let (ended, ()) = futures::join!(waiting, stopping);
    let code = |at: usize| ended["results"]["results"][at]["error"]["code"].as_str().unwrap_or_default();
    let stopped = ["cancelled", "shutting_down"];
    assert!(stopped.contains(&code(0)) && stopped.contains(&code(1)), "{ended}");
}
