//! The configuration is read again, and tokens come and go while it is served (HT-11).

use crate::yard::{APPROVER, CALLER, OPERATOR, OTHER, Yard, call};
use async_trait::async_trait;
use futures::{StreamExt as _, channel::mpsc};
use parking_lot::Mutex;
use reqwest::{Body, Method, Response};
use serde_json::{Value, json};
use std::{convert::Infallible, sync::Arc};
use toolyard_server::{
    ConfigFault, Reload, ReloadError, Reloaded, Scope, SecretHash, ServeError, Server, Token,
};

const NEW: &str = "the caller's new secret";

/// Puts these tokens in force, or says that they cannot be.
#[derive(Clone, Default)]
struct Configured(Arc<Mutex<Vec<Token>>>);

#[async_trait]
impl Reload for Configured {
    async fn reload(&self, server: &Server) -> Result<Reloaded, ReloadError> {
        let tokens = self.0.lock().clone();
        if tokens.is_empty() {
            let fault = |line, detail: &str| ConfigFault { line: Some(line), detail: detail.to_owned() };
            return Err(ReloadError::Invalid(vec![
                fault(3, "x.toml line 3: a"),
                fault(7, "x.toml line 7: b"),
            ]));
        }
        server.set_tokens(tokens)?;
        Ok(Reloaded { changed: vec!["server.tokens".into()], needs_restart: vec!["server.hosts".into()] })
    }
}

fn token(name: &str, secret: &str, scopes: &[Scope]) -> Token {
    Token::new(name, SecretHash::of(secret), scopes.iter().copied())
}

/// The tokens that every yard has, as it has them, but for that of the caller.
fn others() -> Vec<Token> {
    vec![
        token("other", OTHER, &[Scope::Call]),
        token("ada", APPROVER, &[Scope::Approve, Scope::Observe]),
        token("op", OPERATOR, &[Scope::Operate, Scope::Observe]),
    ]
}

/// The rest of a stream of events.
async fn rest(mut response: Response) -> String {
    let mut text = String::new();
    while let Ok(Some(bytes)) = response.chunk().await {
        text.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    text
}

async fn opened(yard: &Yard, secret: &str, path: &str) -> Response {
    let response = yard.request(secret, Method::GET, path).send().await.unwrap();
    assert_eq!(response.status(), 200, "{path}");
    response
}

/// HT-11: an operator has the configuration read again; what is invalid changes nothing and says where it is wrong.
#[tokio::test]
async fn an_operator_reloads() {
    let configured = Configured::default();
    let hook = configured.clone();
    let yard = Yard::with(|options| options.reload(hook)).await;
    assert_eq!(yard.post(APPROVER, "/reload", json!({})).await.problem(403), "scope_missing");
    let invalid = yard.post(OPERATOR, "/reload", json!({})).await;
    assert_eq!(invalid.problem(422), "invalid_configuration");
    let faults = [(3, "x.toml line 3: a"), (7, "x.toml line 7: b")];
    assert_eq!(
        invalid.body["errors"],
        json!(faults.map(|(line, detail)| json!({"line": line, "detail": detail})))
    );
    yard.get(CALLER, "/sessions").await.with(200);

    *configured.0.lock() = others();
    let done = yard.post(OPERATOR, "/reload", json!({})).await.with(200);
    assert_eq!(done, json!({"changed": ["server.tokens"], "needs_restart": ["server.hosts"]}));
    assert_eq!(yard.get(CALLER, "/sessions").await.problem(401), "unknown_token");
    assert_eq!(yard.server.reload().await.unwrap().needs_restart, ["server.hosts"]);

    // Its holder would approve its own calls.
    configured.0.lock().push(token("both", NEW, &[Scope::Call, Scope::Approve]));
    let refused = yard.post(OPERATOR, "/reload", json!({})).await;
    assert_eq!(refused.problem(422), "invalid_configuration");
    assert!(refused.body["detail"].as_str().unwrap().contains("self_approve"), "{refused:?}");
    yard.get(OTHER, "/sessions").await.with(200);
    assert_eq!(yard.get(NEW, "/sessions").await.problem(401), "unknown_token");
    yard.close().await;
}

/// HT-11: a server that has nothing to read again says so.
#[tokio::test]
async fn without_a_configuration_there_is_nothing_to_reload() {
    let yard = Yard::open().await;
    assert_eq!(yard.post(OPERATOR, "/reload", json!({})).await.problem(404), "not_reloadable");
    yard.server.drain();
    assert_eq!(yard.post(OPERATOR, "/reload", json!({})).await.problem(503), "shutting_down");
    let twice = [others(), others()].concat();
    assert!(matches!(yard.server.set_tokens(twice), Err(ServeError::Twice(_))));
}

/// HT-11: who is removed is refused, and what he has open ends; his session waits for whoever has his name. Nobody else
/// notices.
#[tokio::test]
async fn a_removed_token_is_refused_and_its_streams_end() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let ticket = |answer: Value| answer["ticket"].as_str().unwrap().to_owned();
    let [spent, unspent] = [
        ticket(yard.post(CALLER, "/tickets", json!({})).await.with(201)),
        ticket(yard.post(CALLER, "/tickets", json!({})).await.with(201)),
    ];
    let socket = |ticket: String| {
        let path = format!("/stream?ticket={ticket}&session=a");
        let request = yard.client.get(format!("http://{}{path}", yard.address));
        let request = request.header("connection", "upgrade").header("upgrade", "websocket");
        request
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
            .send()
    };
    let mut upgraded = socket(spent).await.unwrap().upgrade().await.unwrap();
    let own = opened(&yard, CALLER, "/sessions/a/events").await;
    let kept = opened(&yard, APPROVER, "/sessions/a/events").await;

    yard.server.set_tokens(others()).unwrap();
    assert!(rest(own).await.contains("event: end\ndata: {\"why\":\"token_removed\"}"));
    let mut told = Vec::new();
    let _ = tokio::io::AsyncReadExt::read_to_end(&mut upgraded, &mut told).await;
    assert!(String::from_utf8_lossy(&told).contains("token_removed"), "{told:?}");
    assert_eq!(yard.get(CALLER, "/sessions/a").await.problem(401), "unknown_token");
    assert_eq!(socket(unspent).await.unwrap().status(), 401);

    let back = [others(), vec![token("caller", NEW, &[Scope::Call])]].concat();
    yard.server.set_tokens(back).unwrap();
    assert_eq!(yard.get(NEW, "/sessions/a").await.with(200)["owner"], "caller");
    yard.post(NEW, "/sessions/a/calls", call("1", "echo", json!({}))).await.with(200);
    yard.delete(NEW, "/sessions/a").await.with(202);
    yard.stop.cancel();
    let kept = rest(kept).await;
    assert!(kept.contains("tool.completed") && kept.contains("shutting_down"), "{kept}");
}

/// HT-11: a turn whose sender is removed is broken: its stream ends, and whoever has his name sends it whole.
#[tokio::test]
async fn a_turn_of_a_removed_token_breaks_off() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let (pieces, written) = mpsc::unbounded::<String>();
    let body = Body::wrap_stream(written.map(Ok::<String, Infallible>));
    let request = yard.request(CALLER, Method::POST, "/sessions/a/turns?from=anthropic");
    let mut response = request.header("content-type", "text/event-stream").body(body).send().await.unwrap();
    let begun = response.chunk().await.unwrap().unwrap();
    assert!(begun.starts_with(b"event: turn"), "{begun:?}");

    let back = [others(), vec![token("caller", NEW, &[Scope::Call])]].concat();
    yard.server.set_tokens(back).unwrap();
    rest(response).await;
    drop(pieces);
    let broken = async || yard.get(NEW, "/sessions/a/turns/1").await.with(200)["state"] == "broken";
    while !broken().await {
        tokio::task::yield_now().await;
    }
    let whole = yard.request(NEW, Method::PUT, "/sessions/a/turns/1?wait=60");
    let whole = whole.json(&json!({"calls": [call("1", "echo", json!({}))]}));
    assert_eq!(yard.sent(whole).await.with(200)["state"], "ended");
    yard.close().await;
}

/// HT-11: an MCP client of a token that is removed, or may other things than before, begins anew.
#[tokio::test]
async fn an_mcp_client_of_a_changed_token_begins_anew() {
    let yard = Yard::open().await;
    let ask = |session: Option<String>, body: Value| {
        let request = yard.request(CALLER, Method::POST, "/mcp").json(&body);
        let request = request.header("accept", "application/json, text/event-stream");
        session.into_iter().fold(request, |request, id| request.header("mcp-session-id", id))
    };
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "demo", "version": "1"}});
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let session = async || {
        let opened = yard.sent(ask(None, open.clone())).await;
        let session = opened.headers["mcp-session-id"].to_str().unwrap().to_owned();
        yard.sent(ask(
            Some(session.clone()),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        ))
        .await;
        session
    };
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let first = session().await;
    assert_eq!(yard.sent(ask(Some(first.clone()), list.clone())).await.status, 200);
    // As it was, but for a role.
    let same = || token("caller", CALLER, &[Scope::Call]);
    yard.server.set_tokens([others(), vec![same()]].concat()).unwrap();
    assert_eq!(yard.sent(ask(Some(first), list.clone())).await.status, 404);
    let second = session().await;
    yard.server.set_tokens([others(), vec![same()]].concat()).unwrap();
    assert_eq!(yard.sent(ask(Some(second), list)).await.status, 200);
    yard.close().await;
}

/// HT-6, HT-11: with the last one who may answer goes the asking.
#[tokio::test]
async fn without_approvers_nothing_is_asked() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let kept = vec![token("caller", CALLER, &[Scope::Call]).roles(["builder"])];
    yard.server.set_tokens(kept).unwrap();
    let save = call("1", "save", json!({"path": "x"}));
    let refused = yard.post(CALLER, "/sessions/a/calls", save).await.with(200);
    assert!(refused.to_string().contains("user_denied"), "{refused}");
    yard.close().await;
}
