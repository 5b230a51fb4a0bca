//! MCP clients on the same port.

use crate::{
    events::Events,
    yard::{APPROVER, CALLER, OTHER, Yard},
};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use toolyard_server::{Scope, SecretHash, Token};

/// A message of an MCP client, in a session once it has one.
pub(crate) fn message(yard: &Yard, secret: &str, session: Option<&str>, body: &Value) -> RequestBuilder {
    let request = yard.request(secret, Method::POST, "/mcp").json(body);
    let request = request.header("accept", "application/json, text/event-stream");
    session.into_iter().fold(request, |request, session| request.header("mcp-session-id", session))
}

/// HT-6, HT-7: a client makes calls with a token that may; its questions are answered here, and its session is its own.
#[tokio::test]
async fn an_mcp_client_asks_the_desk() {
    let yard = Yard::open().await;
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "demo", "version": "1"}});
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    assert_eq!(yard.sent(message(&yard, APPROVER, None, &open)).await.problem(403), "scope_missing");
    let opened = yard.sent(message(&yard, CALLER, None, &open)).await;
    let session = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
    opened.with(200);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    yard.sent(message(&yard, CALLER, Some(&session), &ready)).await.with(202);
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    assert_eq!(yard.sent(message(&yard, OTHER, Some(&session), &list)).await.status, 404);
    let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
        "params": {"name": "save", "arguments": {"path": "notes.md"}}});
    let calling = tokio::spawn(message(&yard, CALLER, Some(&session), &call).send());
    let question = loop {
        let all = yard.get(APPROVER, "/confirmations").await.with(200);
        match all["confirmations"].get(0) {
            Some(question) => break question.clone(),
            None => tokio::task::yield_now().await,
        }
    };
    let id = question["request_id"].as_str().unwrap();
    let at = format!("/sessions/{}/confirmations/{id}", question["session"].as_str().unwrap());
    yard.get(APPROVER, &at).await.with(200);
    assert_eq!(yard.get(OTHER, &at).await.problem(404), "not_found");
    let yes = json!({"decision": "allow", "digest": question["digest"]});
    yard.post(APPROVER, &Yard::answers(&question), yes).await.with(200);
    let answer = calling.await.unwrap().unwrap().text().await.unwrap();
    assert!(answer.contains("saved notes.md"), "{answer}");
    yard.close().await;
}

/// The secret of a token that may call, and approve its own calls.
const BOTH: &str = "the secret of somebody who approves his own calls";

/// A client with that token that declares these capabilities; returns the name of its session.
async fn connected(yard: &Yard, capabilities: Value) -> String {
    connected_as(yard, BOTH, capabilities).await
}

/// The same with another token.
pub(crate) async fn connected_as(yard: &Yard, secret: &str, capabilities: Value) -> String {
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities,
        "clientInfo": {"name": "demo", "version": "1"}});
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let opened = yard.sent(message(yard, secret, None, &open)).await;
    let session = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
    opened.with(200);
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    yard.sent(message(yard, secret, Some(&session), &ready)).await.with(202);
    session
}

/// A yard whose clients may approve their own calls.
async fn self_approving() -> Yard {
    let token = Token::new("both", SecretHash::of(BOTH), [Scope::Call, Scope::Approve]).self_approve();
    Yard::with(|options| options.token(token)).await
}

/// The stream on which a call of `save` is answered.
async fn saving(yard: &Yard, session: &str, path: &str) -> Events {
    let call = json!({"jsonrpc": "2.0", "id": path, "method": "tools/call",
        "params": {"name": "save", "arguments": {"path": path}}});
    Events::of(message(yard, BOTH, Some(session), &call).send().await.unwrap())
}

/// The next message of a stream with this method, or with an answer if it is empty.
async fn told(events: &mut Events, method: &str) -> Value {
    loop {
        let message = events.next().await.expect("the answer goes on").data;
        if message["method"].as_str().unwrap_or_default() == method {
            return message;
        }
    }
}

/// What the client is asked on this stream, and nobody else.
async fn elicited(yard: &Yard, calling: &mut Events) -> Value {
    let elsewhere =
        async { while yard.get(APPROVER, "/confirmations").await.with(200)["confirmations"] == json!([]) {} };
    tokio::select! {
        asked = told(calling, "elicitation/create") => asked,
        () = elsewhere => panic!("it is asked at the desk"),
    }
}

/// HT-6, PO-4: a client whose token may approve is asked itself, on the stream of its call; its yes lets that run, and its
/// no, or its turning away, is what the model reads. Nobody else is asked.
#[tokio::test]
async fn a_client_that_may_approve_is_asked_itself() {
    let yard = self_approving().await;
    let session = connected(&yard, json!({"elicitation": {}})).await;
    for (path, answer, expected) in [
        ("yes.md", json!({"action": "accept", "content": {"answer": "yes"}}), "saved yes.md"),
        (
            "no.md",
            json!({"action": "accept", "content": {"answer": "no", "reason": "not on a Friday"}}),
            "not on a Friday",
        ),
        ("declined.md", json!({"action": "decline"}), "denied"),
        ("cancelled.md", json!({"action": "cancel"}), "denied"),
    ] {
        let mut calling = saving(&yard, &session, path).await;
        let asked = elicited(&yard, &mut calling).await;
        assert!(asked["params"]["message"].as_str().unwrap().contains(path), "{asked}");
        assert_eq!(asked["params"]["requestedSchema"]["properties"]["answer"]["type"], "string", "{asked}");
        let desk = yard.get(APPROVER, "/confirmations").await.with(200);
        assert_eq!(desk["confirmations"], json!([]), "it is not asked here too");
        let given = json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer});
        yard.sent(message(&yard, BOTH, Some(&session), &given)).await.with(202);
        let result = told(&mut calling, "").await;
        assert_eq!(result["id"], path);
        assert_eq!(result["result"]["isError"].as_bool().unwrap_or_default(), path != "yes.md", "{result}");
        assert!(result["result"].to_string().contains(expected), "{result}");
    }
    assert_eq!(yard.saved.load(Ordering::Relaxed), 1);
    yard.close().await;
}

/// SM-5: the user of a client may change the arguments, and those run.
#[tokio::test]
async fn the_user_of_a_client_may_change_the_arguments() {
    let yard = self_approving().await;
    let session = connected(&yard, json!({"elicitation": {}})).await;
    let mut calling = saving(&yard, &session, "first.md").await;
    let asked = elicited(&yard, &mut calling).await;
    let content = json!({"answer": "yes", "arguments": "{\"path\": \"second.md\"}"});
    let given =
        json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": content}});
    yard.sent(message(&yard, BOTH, Some(&session), &given)).await.with(202);
    let result = told(&mut calling, "").await;
    assert!(result["result"].to_string().contains("saved second.md"), "{result}");
    yard.close().await;
}

/// HT-6: a client whose token may approve, but that cannot ask, is told so at once.
#[tokio::test]
async fn a_client_that_cannot_ask_is_told() {
    let yard = self_approving().await;
    let session = connected(&yard, json!({})).await;
    let mut calling = saving(&yard, &session, "notes.md").await;
    let result = told(&mut calling, "").await;
    assert!(result["result"].to_string().contains("cannot ask for approval"), "{result}");
    assert_eq!(yard.saved.load(Ordering::Relaxed), 0);
    yard.close().await;
}
