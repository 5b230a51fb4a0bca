//! The confirmation flow, end to end.

use crate::{
    events::Events,
    yard::{APPROVER, CALLER, SECOND, Yard, call},
};
use futures::future::join_all;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use toolyard_server::ServerOptions;

fn save(path: &str) -> Value {
    json!([call("1", "save", json!({ "path": path }))])
}

fn given(question: &Value, decision: &str) -> Value {
    json!({"decision": decision, "digest": question["digest"]})
}

/// PO-3, PO-4: a write is asked about, shown with what it would do, and runs once it is allowed.
#[tokio::test]
async fn a_write_is_asked_about_and_allowed() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let turn = yard.turn("a", save("notes.md")).await;
    let question = yard.question("a").await;
    assert_eq!((&question["tool"], &question["arguments"]), (&json!("save"), &json!({"path": "notes.md"})));
    assert!(question["expires_ms"].as_u64().unwrap() > question["asked_ms"].as_u64().unwrap());
    let id = question["request_id"].as_str().unwrap();
    let whole = yard.get(APPROVER, &format!("/sessions/a/confirmations/{id}")).await.with(200);
    assert_eq!(whole["sheet"][0], json!({"label": "tool", "lines": ["save (write)"]}));
    let waiting = yard.get(APPROVER, "/turns?state=waiting").await.with(200);
    assert_eq!(waiting["turns"][0]["turn"], turn);
    let taken = yard.post(APPROVER, &Yard::answers(&question), given(&question, "allow")).await.with(200);
    assert_eq!((&taken["who"], &taken["decision"]), (&json!("ada"), &json!("allow")));
    let ended = yard.ended("a", turn).await;
    assert_eq!(ended["results"]["results"][0]["status"], "ok", "{ended}");
    let late = yard.post(SECOND, &Yard::answers(&question), given(&question, "deny")).await;
    assert_eq!(late.problem(409), "already_resolved");
    assert_eq!((&late.body["who"], &late.body["decision"]), (&json!("ada"), &json!("allow")));
    assert_eq!(
        yard.get(APPROVER, &format!("/sessions/a/confirmations/{id}")).await.problem(409),
        "already_resolved"
    );
    assert_eq!(yard.saved.load(Ordering::Relaxed), 1);
    yard.close().await;
}

/// PO-3: a no, with its reason, is what the model reads, and nothing has run.
#[tokio::test]
async fn a_no_is_what_the_model_reads() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let turn = yard.turn("a", save("notes.md")).await;
    let question = yard.question("a").await;
    let mut no = given(&question, "deny");
    no["reason"] = json!("not on a Friday");
    yard.post(APPROVER, &Yard::answers(&question), no).await.with(200);
    let result = yard.ended("a", turn).await["results"]["results"][0].take();
    assert_eq!(result["error"]["code"], "user_denied");
    assert!(result.to_string().contains("not on a Friday"), "{result}");
    assert_eq!(yard.saved.load(Ordering::Relaxed), 0);
    yard.close().await;
}

/// KT-16: "never" is a no to this call and to all others of its pattern, and the model reads the reason with each.
#[tokio::test]
async fn never_is_a_no_to_the_whole_pattern() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let turn = yard.turn("a", save("notes.md")).await;
    let question = yard.question("a").await;
    assert!(!question["always"].is_null(), "{question}");
    let mut never = given(&question, "never");
    never["reason"] = json!("it is not ours");
    let taken = yard.post(APPROVER, &Yard::answers(&question), never).await.with(200);
    assert_eq!((&taken["who"], &taken["decision"]), (&json!("ada"), &json!("never")));
    let second = yard.turn("a", save("notes.md")).await;
    for turn in [turn, second] {
        let result = yard.ended("a", turn).await["results"]["results"][0].take();
        assert_eq!(result["error"]["code"], "user_denied", "{result}");
        assert!(result.to_string().contains("it is not ours"), "{result}");
    }
    // Another pattern is asked about.
    let other = yard.turn("a", save("other.md")).await;
    let question = yard.question("a").await;
    yard.post(APPROVER, &Yard::answers(&question), given(&question, "allow")).await.with(200);
    assert_eq!(yard.ended("a", other).await["results"]["results"][0]["status"], "ok");
    assert_eq!(yard.saved.load(Ordering::Relaxed), 1);
    let document = yard.get(APPROVER, "/openapi.json").await.with(200);
    let decisions = document["components"]["schemas"]["Decision"].to_string();
    assert!(decisions.contains("\"never\""), "{decisions}");
    yard.close().await;
}

/// PO-4, SM-6: an answer for something else than what would run does not count, and says what would run.
#[tokio::test]
async fn an_answer_is_for_what_was_shown() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let turn = yard.turn("a", save("notes.md")).await;
    let question = yard.question("a").await;
    let path = Yard::answers(&question);
    let other = json!({"decision": "allow", "digest": "0".repeat(64)});
    let refused = yard.post(APPROVER, &path, other).await;
    assert_eq!(refused.problem(412), "digest_mismatch");
    assert_eq!(refused.body["question"]["digest"], question["digest"]);
    for bad in [
        json!({"decision": "allow"}),
        json!({"decision": "perhaps", "digest": "0"}),
        json!({"decision": "allow", "digest": "x"}),
    ] {
        assert_eq!(yard.post(APPROVER, &path, bad).await.problem(422), "invalid");
    }
    let elsewhere = path.replace(&format!("/turns/{turn}/"), "/turns/77/");
    assert_eq!(yard.post(APPROVER, &elsewhere, given(&question, "allow")).await.problem(404), "not_found");
    yard.post(APPROVER, &path, given(&question, "deny")).await.with(200);
    yard.ended("a", turn).await;
    yard.close().await;
}

/// SM-5: a yes may change the arguments; what may not run is refused to its giver, and asked again.
#[tokio::test]
async fn a_yes_may_change_the_arguments() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let turn = yard.turn("a", save("notes.md")).await;
    let question = yard.question("a").await;
    let mut edit = given(&question, "allow");
    edit["arguments"] = json!({"path": 7});
    assert_eq!(yard.post(APPROVER, &Yard::answers(&question), edit).await.problem(422), "edit_refused");
    let again = loop {
        let question = yard.question("a").await;
        if !question["refused"].is_null() {
            break question;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!((&again["request_id"], &again["asked_ms"]), (&question["request_id"], &question["asked_ms"]));
    let mut edit = given(&again, "allow");
    edit["arguments"] = json!({"path": "other.md"});
    yard.post(APPROVER, &Yard::answers(&again), edit).await.with(200);
    let result = yard.ended("a", turn).await["results"]["results"][0].take();
    assert!(result.to_string().contains("saved other.md"), "{result}");
    yard.close().await;
}

/// SC-4: a question whose call was cancelled was withdrawn.
#[tokio::test]
async fn a_cancelled_call_withdraws_its_question() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let turn = yard.turn("a", save("notes.md")).await;
    let question = yard.question("a").await;
    yard.post(CALLER, &format!("/sessions/a/turns/{turn}/cancel"), Value::Null).await.with(202);
    yard.ended("a", turn).await;
    let late = yard.post(APPROVER, &Yard::answers(&question), given(&question, "allow")).await;
    assert_eq!(late.problem(410), "withdrawn");
    yard.close().await;
}

/// PO-4: of a thousand races between two answers, one wins each, and the other hears of it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_answer_wins() {
    let yard = Yard::open().await;
    yard.session("a").await;
    for round in 0..1000 {
        let turn = yard.turn("a", save("notes.md")).await;
        let question = yard.question("a").await;
        let path = Yard::answers(&question);
        let answers = [(APPROVER, "allow"), (SECOND, "deny")];
        let order = if round % 2 == 0 { answers } else { [answers[1], answers[0]] };
        let both =
            join_all(order.map(|(secret, decision)| yard.post(secret, &path, given(&question, decision))))
                .await;
        let (won, lost): (Vec<_>, Vec<_>) = both.into_iter().partition(|answer| answer.status == 200);
        let ([won], [lost]) = (won.as_slice(), lost.as_slice()) else { panic!("{won:?} {lost:?}") };
        assert_eq!(lost.problem(409), "already_resolved");
        assert_eq!((&lost.body["who"], &lost.body["decision"]), (&won.body["who"], &won.body["decision"]));
        let result = yard.ended("a", turn).await["results"]["results"][0].take();
        assert_eq!(result["status"] == "ok", won.body["decision"] == "allow", "{result}");
    }
    yard.close().await;
}

/// HT-2: whoever reads of a question in the stream of events can answer it at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_event_tells_of_can_be_answered() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let mut asked = Events::open(&yard, APPROVER, "/events?kinds=tool.confirmation_requested", None).await;
    for _ in 0..300 {
        let turn = yard.turn("a", save("notes.md")).await;
        let event = asked.next().await.unwrap().data;
        let request = event["request"].as_str().unwrap();
        let path = format!("/sessions/a/turns/{turn}/confirmations/{request}");
        yard.post(APPROVER, &path, given(&event, "deny")).await.with(200);
        yard.ended("a", turn).await;
    }
    yard.close().await;
}

/// HT-6: where nobody may answer, a question is refused at once.
#[tokio::test]
async fn where_nobody_may_answer_nothing_waits() {
    use toolyard::{Call, Engine, ToolContext, ToolSpec, tool_fn};
    use toolyard_server::{Front, Scope, SecretHash, Server, Token};
    let front = Front::default();
    let save = tool_fn(ToolSpec::write("save"), |_: Value, _: ToolContext| async { Ok("saved") });
    let engine = Engine::builder().tool(save).approver(front.clone()).build().await.unwrap();
    let caller = Token::new("a", SecretHash::of("a"), [Scope::Call]);
    let _server = Server::new(engine.clone(), front, ServerOptions::default().token(caller)).unwrap();
    let outcome = engine.session("s").call(Call::new("1", "save", "{}")).await;
    assert_eq!(outcome.error().map(|error| error.kind.code()), Some("user_denied"));
}
