//! Questions, logs and progress.

use crate::relay::{
    client::Client,
    yard::{SECRET, Yard},
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn form() -> Value {
    let properties = json!({"name": {"type": "string", "default": "Ada"}});
    let schema = json!({"type": "object", "properties": properties, "required": ["name"]});
    let params = json!({"message": "Your\u{1b} name?", "requestedSchema": schema});
    json!({"method": "elicitation/create", "params": params})
}

fn prompt() -> Value {
    let messages = json!([{"role": "user", "content": {"type": "text", "text": "Say hello"}}]);
    let params = json!({"messages": messages, "maxTokens": 5, "includeContext": "allServers"});
    json!({"method": "sampling/createMessage", "params": params})
}

/// The capabilities of a client that can answer.
pub(crate) fn able() -> Value {
    json!({"elicitation": {}, "sampling": {}})
}

/// Makes the server ask this.
pub(crate) async fn ask(client: &mut Client, id: i64, question: Value) {
    client.call(id, "asks", question, json!({})).await;
}

/// What the server was answered, which it returns as the result of its call.
pub(crate) async fn relayed_answer(client: &mut Client, id: i64) -> Value {
    let answer = client.answer(id).await;
    serde_json::from_str(answer["result"]["content"][0]["text"].as_str().unwrap()).unwrap()
}

/// A form reaches the user of the client that made the call, names the server, and its answer reaches that server.
#[tokio::test]
async fn a_form_goes_to_the_client_of_the_call_and_its_answer_back() {
    let yard = Yard::open(true).await;
    let mut client = yard.client(able()).await;
    ask(&mut client, 1, form()).await;
    let question = client.received("elicitation/create").await;
    assert_eq!(question["params"]["message"], "The MCP server 's' asks: Your name?");
    assert_eq!(question["params"]["requestedSchema"], form()["params"]["requestedSchema"]);
    let answer = json!({"action": "accept", "content": {"name": "Grace"}});
    client.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": answer})).await;
    assert_eq!(relayed_answer(&mut client, 1).await, answer);
    yard.servers.shutdown().await;
}

/// A server's question is shown whole, up to 64 KiB, or refused: nobody answers what was not shown.
#[tokio::test]
async fn a_question_is_passed_on_whole_or_not_at_all() {
    let yard = Yard::open(true).await;
    let mut client = yard.client(able()).await;
    let question = |bytes: usize| {
        let mut question = form();
        question["params"]["message"] = format!("{} the end", "x".repeat(bytes)).into();
        question["params"]["requestedSchema"]["properties"]["name"]["description"] =
            "y".repeat(20_000).into();
        question
    };
    ask(&mut client, 1, question(20_000)).await;
    let shown = client.received("elicitation/create").await;
    assert!(shown["params"]["message"].as_str().unwrap().ends_with("x the end"));
    assert_eq!(shown["params"]["requestedSchema"], question(0)["params"]["requestedSchema"]);
    client.send(json!({"jsonrpc": "2.0", "id": shown["id"], "result": {"action": "decline"}})).await;
    assert_eq!(relayed_answer(&mut client, 1).await, json!({"action": "decline"}));
    ask(&mut client, 2, question(64 << 10)).await;
    let refused = relayed_answer(&mut client, 2).await;
    let message = refused["message"].as_str().unwrap();
    assert_eq!(
        (&refused["code"], message.ends_with("ask in fewer words")),
        (&json!(-32602), true),
        "{refused}"
    );
    yard.servers.shutdown().await;
}

/// A server may use the client's model, and learns nothing about other servers from it.
#[tokio::test]
async fn a_prompt_goes_to_the_clients_model() {
    let yard = Yard::open(true).await;
    let mut client = yard.client(able()).await;
    ask(&mut client, 1, prompt()).await;
    let request = client.received("sampling/createMessage").await;
    assert_eq!(request["params"]["messages"], prompt()["params"]["messages"]);
    assert!(request["params"].get("includeContext").is_none());
    let answer = json!({"role": "assistant", "content": {"type": "text", "text": "hello"}, "model": "m"});
    client.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": answer})).await;
    assert_eq!(relayed_answer(&mut client, 1).await, answer);
    yard.servers.shutdown().await;
}

/// A client that cannot answer is not asked, and the server learns why.
#[tokio::test]
async fn a_client_that_cannot_answer_is_not_asked() {
    let yard = Yard::open(true).await;
    let mut client = yard.client(json!({})).await;
    for (id, question, lacks) in [(1, form(), "elicitation"), (2, prompt(), "sampling")] {
        ask(&mut client, id, question).await;
        assert_eq!(
            relayed_answer(&mut client, id).await,
            json!({"code": -32601, "message": format!("the client of this call declares no {lacks}")})
        );
    }
    assert_eq!(client.drain_sent().await, [] as [Value; 0]);
    yard.servers.shutdown().await;
}

/// A server that may not ask is refused, even if its client could answer.
#[tokio::test]
async fn a_server_that_may_not_ask_is_refused() {
    let yard = Yard::open(false).await;
    let mut client = yard.client(able()).await;
    ask(&mut client, 1, form()).await;
    assert_eq!(
        relayed_answer(&mut client, 1).await,
        json!({"code": -32601, "message": "servers may not ask questions here"})
    );
    yard.servers.shutdown().await;
}

/// Over stdio nothing says which call a question belongs to: while the server has calls of two clients it is refused,
/// and neither client sees it.
#[tokio::test]
async fn a_question_that_may_be_anothers_is_refused() {
    let yard = Yard::open(true).await;
    let (mut one, mut other) = (yard.client(able()).await, yard.client(able()).await);
    ask(&mut other, 1, form()).await;
    let open = other.received("elicitation/create").await;
    ask(&mut one, 1, form()).await;
    let refused = relayed_answer(&mut one, 1).await;
    assert!(
        refused["message"].as_str().unwrap().starts_with("calls of several clients are running"),
        "{refused}"
    );
    assert_eq!(one.drain_sent().await, [] as [Value; 0]);
    other.send(json!({"jsonrpc": "2.0", "id": open["id"], "result": {"action": "decline"}})).await;
    assert_eq!(relayed_answer(&mut other, 1).await, json!({"action": "decline"}));
    yard.servers.shutdown().await;
}

/// SC-4: a question is withdrawn with its call.
#[tokio::test]
async fn a_cancelled_call_takes_its_question_with_it() {
    let yard = Yard::open(true).await;
    let mut client = yard.client(able()).await;
    ask(&mut client, 1, form()).await;
    let question = client.received("elicitation/create").await;
    client.notify("notifications/cancelled", json!({"requestId": 1})).await;
    let withdrawn = client.received("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    yard.servers.shutdown().await;
}

/// A client gets what a server logs during its call, before the call's result and from the level on that it has set.
#[tokio::test]
async fn logs_go_to_the_client_of_the_call() {
    let yard = Yard::open(true).await;
    let mut client = yard.client(json!({})).await;
    for (id, level, expect) in [(1, None, 2), (2, Some("debug"), 3), (3, Some("emergency"), 0)] {
        if let Some(level) = level {
            client.request(10 + id, "logging/setLevel", json!({"level": level})).await;
            assert_eq!(client.answer(10 + id).await["result"], json!({}));
        }
        client.call(id, "logs", json!({}), json!({})).await;
        client.answer(id).await;
        // A message sent after the result would not have been read yet.
        let logs = client.take_kept();
        assert_eq!(logs.iter().filter(|said| said["method"] == "notifications/message").count(), expect);
    }
    yard.servers.shutdown().await;
}

/// A server's progress is passed on as the server counts it, under the client's token.
#[tokio::test]
async fn steps_are_sent_as_the_server_counts_them() {
    let yard = Yard::open(true).await;
    let mut client = yard.client(json!({})).await;
    client.call(1, "steps", json!({}), json!({"progressToken": "mine"})).await;
    client.answer(1).await;
    let step =
        |n| json!({"progressToken": "mine", "progress": f64::from(n), "total": 3.0, "message": "step"});
    let steps: Vec<Value> = client.take_kept().into_iter().map(|mut said| said["params"].take()).collect();
    assert_eq!(steps, [step(1), step(2), step(3)]);
    yard.servers.shutdown().await;
}

/// No client is shown a registered secret, wherever it appears in what a server says.
#[tokio::test]
async fn no_secret_is_passed_on() {
    let yard = Yard::open(true).await;
    let mut client = yard.client(able()).await;
    let mut question = form();
    question["params"]["message"] = json!(format!("Is it {SECRET}?"));
    question["params"]["requestedSchema"]["properties"]["name"]["default"] = json!(SECRET);
    ask(&mut client, 1, question).await;
    let question = client.received("elicitation/create").await;
    assert_eq!(question["params"]["message"], "The MCP server 's' asks: Is it [redacted]?");
    assert_eq!(question["params"]["requestedSchema"]["properties"]["name"]["default"], "[redacted]");
    client.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "cancel"}})).await;
    client.answer(1).await;
    yard.servers.shutdown().await;
}

/// A server that keeps asking has at most 16 questions open, and none once its call has ended.
#[tokio::test]
async fn a_flood_of_questions_is_bounded_and_ends_with_its_call() {
    let yard = Yard::open(true).await;
    let mut client = yard.client(able()).await;
    let mut flood = form();
    flood["times"] = json!(100);
    ask(&mut client, 1, flood).await;
    assert_eq!(relayed_answer(&mut client, 1).await["message"], "too many questions are open already");
    let ids = |said: Vec<Value>, method: &str, id: fn(&Value) -> &Value| -> BTreeSet<String> {
        said.iter().filter(|said| said["method"] == method).map(|said| id(said).to_string()).collect()
    };
    let mut said = client.drain_sent().await;
    let asked = ids(said.clone(), "elicitation/create", |question| &question["id"]);
    assert!(asked.len() <= 16, "{asked:?}");
    let withdrawn = |said: &[Value]| {
        ids(said.to_vec(), "notifications/cancelled", |withdrawn| &withdrawn["params"]["requestId"])
    };
    while !asked.is_subset(&withdrawn(&said)) {
        said.push(client.received("notifications/cancelled").await);
    }
    yard.servers.shutdown().await;
}
