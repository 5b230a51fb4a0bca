//! MCP clients on the same port.

use crate::yard::{APPROVER, CALLER, OTHER, Yard};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

/// A message of an MCP client, in a session once it has one.
fn message(yard: &Yard, secret: &str, session: Option<&str>, body: &Value) -> RequestBuilder {
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
