//! Approvals as elicitation.

use super::{client::Client, yard::Yard};
use serde_json::{Value, json};

fn can_ask() -> Value {
    json!({"elicitation": {}})
}

/// Answers the next question; returns what was shown.
async fn say(client: &mut Client, result: Value) -> String {
    let question = client.received("elicitation/create").await;
    let schema = &question["params"]["requestedSchema"];
    assert_eq!(schema["properties"]["answer"]["enum"], json!(["yes", "always", "no", "never"]));
    client.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": result})).await;
    question["params"]["message"].as_str().unwrap().to_owned()
}

/// PO-3, PO-4: the client's user is shown what would run, and it runs only after a yes.
#[tokio::test(start_paused = true)]
async fn a_call_runs_when_the_user_says_yes() {
    let yard = Yard::open().await;
    let (mut client, _serving) = yard.connect(can_ask()).await;
    client.call(1, "ask", json!({"n": 17}), json!({})).await;
    let shown = say(&mut client, json!({"action": "accept", "content": {"answer": "yes"}})).await;
    assert!(shown.contains("\ntool: ask (execute)\n") && shown.contains("\n    \"n\": 17\n"), "{shown}");
    assert_eq!(client.answer(1).await["result"]["structuredContent"], json!({"n": 17}));
    let refusals = [
        json!({"action": "accept", "content": {"answer": "no"}}),
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
    ];
    for (id, refusal) in (2..).zip(refusals) {
        client.call(id, "ask", json!({"n": 17}), json!({})).await;
        say(&mut client, refusal).await;
        let answer = client.answer(id).await;
        assert_eq!(answer["result"]["_meta"]["toolyard/error"]["code"], "user_denied");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert!(text.ends_with("ask the user what to do instead."), "{text}");
    }
}

/// SM-5: the client's user may change the arguments of a call; what may not run is asked about again, with the reason,
/// and what is changed is for one call. The model reads what ran.
#[tokio::test(start_paused = true)]
async fn the_user_may_change_the_arguments() {
    let yard = Yard::open().await;
    let (mut client, _serving) = yard.connect(can_ask()).await;
    client.call(1, "ask", json!({"n": 17}), json!({})).await;
    let says = |answer: &str, arguments: &str| json!({"action": "accept", "content": {"answer": answer, "arguments": arguments}});
    let shown = say(&mut client, says("yes", "{\"n\": ")).await;
    assert!(!shown.contains("refused"), "{shown}");
    let shown = say(&mut client, says("always", "{\"n\": 18}")).await;
    let why = "\nrefused: your change may not run: Invalid JSON: EOF while parsing a value at position 6";
    assert!(shown.ends_with(why), "{shown}");
    let shown = say(&mut client, says("yes", "{\"n\": 18}")).await;
    assert!(shown.ends_with("hold for one call alone; answer yes to run it with them"), "{shown}");
    let answer = client.answer(1).await;
    assert_eq!(answer["result"]["structuredContent"], json!({"n": 18}));
    let told = r#"The arguments of this call were changed by the person who approved it: {"n":18}"#;
    assert_eq!(answer["result"]["content"][0]["text"], told);
    assert_eq!(answer["result"]["_meta"]["toolyard/call"]["edited"], json!({"n": 18}));

    // The form offers the arguments as they are; sent back like this they are no change.
    client.call(2, "ask", json!({"n": 17}), json!({})).await;
    let question = client.received("elicitation/create").await;
    let field = &question["params"]["requestedSchema"]["properties"]["arguments"];
    assert_eq!((field["type"].as_str(), field["default"].as_str()), (Some("string"), Some("{\"n\":17}")));
    let same = says("yes", "{\"n\":17}");
    client.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": same})).await;
    let answer = client.answer(2).await;
    assert_eq!(answer["result"]["structuredContent"], json!({"n": 17}));
    assert!(answer["result"]["_meta"]["toolyard/call"].get("edited").is_none());

    // Arguments that do not fit a field are not offered there.
    client.call(3, "ask", json!({"command": "x".repeat(5_000)}), json!({})).await;
    let question = client.received("elicitation/create").await;
    assert_eq!(question["params"]["requestedSchema"]["properties"]["arguments"], Value::Null);
}

/// SM-5: a user who says again and again that changed arguments hold for good does not allow the call.
#[tokio::test(start_paused = true)]
async fn a_change_is_never_for_good() {
    let yard = Yard::open().await;
    let (mut client, _serving) = yard.connect(can_ask()).await;
    client.call(1, "ask", json!({"n": 17}), json!({})).await;
    for _ in 0..3 {
        let always = json!({"action": "accept", "content": {"answer": "always", "arguments": "{}"}});
        say(&mut client, always).await;
    }
    let answer = client.answer(1).await;
    assert_eq!(answer["result"]["_meta"]["toolyard/error"]["code"], "user_denied");
    assert_eq!(yard.count("tool.called"), 0);
}

/// PO-4: an 'always' covers later calls of the same client that match the pattern shown, and no other client's.
#[tokio::test(start_paused = true)]
async fn an_always_is_for_this_client_alone() {
    let yard = Yard::open().await;
    let (mut client, _serving) = yard.connect(can_ask()).await;
    client.call(1, "ask", json!({}), json!({})).await;
    let shown = say(&mut client, json!({"action": "accept", "content": {"answer": "always"}})).await;
    assert!(shown.ends_with("\nalways: ask, with exactly these arguments"), "{shown}");
    client.answer(1).await;
    client.call(2, "ask", json!({}), json!({})).await;
    assert_eq!(client.answer(2).await["result"]["isError"], false);
    let mut other = yard.client().await;
    other.call(1, "ask", json!({}), json!({})).await;
    assert_eq!(other.answer(1).await["result"]["isError"], true);
}

/// PO-3: a client that cannot ask is not asked, and the model reads why the call is refused.
#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_ask_is_refused_with_advice() {
    let yard = Yard::open().await;
    let mut client = yard.client().await;
    client.call(1, "ask", json!({}), json!({})).await;
    let answer = client.answer(1).await;
    assert_eq!(answer["result"]["_meta"]["toolyard/error"]["code"], "user_denied");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    let nobody = "This operation needs approval and nobody can be asked.";
    assert!(text.starts_with(nobody) && text.contains("declares no elicitation"), "{text}");
    assert_eq!(client.drain_sent().await, [] as [Value; 0]);
}

/// PO-4: a question shows all that would run, however long, up to 64 KiB; a longer one is not asked, its call does not
/// run, and the model reads what to do.
#[tokio::test(start_paused = true)]
async fn a_question_is_shown_whole_or_not_asked() {
    let yard = Yard::open().await;
    let (mut client, _serving) = yard.connect(can_ask()).await;
    let command = format!("{}; rm -rf ~; {}", "x".repeat(30_000), "y".repeat(30_000));
    client.call(1, "ask", json!({"command": command, "\n\nname": 1}), json!({})).await;
    let shown = say(&mut client, json!({"action": "accept", "content": {"answer": "yes"}})).await;
    assert!(
        shown.contains(&command) && shown.contains(r#""\n\nname": 1"#) && shown.lines().count() == 8,
        "{shown}"
    );
    assert_eq!(client.answer(1).await["result"]["isError"], false);

    let long = json!({"command": "x".repeat(64 << 10)});
    client.call(2, "ask", long, json!({})).await;
    let answer = client.answer(2).await;
    assert_eq!(answer["result"]["_meta"]["toolyard/error"]["code"], "user_denied");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    let refused = "This operation needs approval and is too long to be shown whole.";
    assert!(text.starts_with(refused) && text.contains("several calls with shorter arguments"), "{text}");
    assert_eq!((client.drain_sent().await, yard.count("tool.called")), (Vec::new(), 1));
}

/// SC-4: when a call is cancelled, the question about it is withdrawn, and the call does not run.
#[tokio::test(start_paused = true)]
async fn the_question_of_a_cancelled_call_is_withdrawn() {
    let yard = Yard::open().await;
    let (mut client, _serving) = yard.connect(can_ask()).await;
    client.call(1, "ask", json!({}), json!({})).await;
    let question = client.received("elicitation/create").await;
    client.notify("notifications/cancelled", json!({"requestId": 1})).await;
    let withdrawn = client.received("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    assert_eq!(yard.count("tool.called"), 0);
}

/// PO-4: a question without an answer is withdrawn when its time is over.
#[tokio::test(start_paused = true)]
async fn a_question_that_nobody_answers_expires() {
    let yard = Yard::open().await;
    let (mut client, _serving) = yard.connect(can_ask()).await;
    client.call(1, "ask", json!({}), json!({})).await;
    let question = client.received("elicitation/create").await;
    let answer = client.answer(1).await;
    assert_eq!(answer["result"]["_meta"]["toolyard/error"]["code"], "confirmation_timeout");
    let withdrawn = client.received("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
}
