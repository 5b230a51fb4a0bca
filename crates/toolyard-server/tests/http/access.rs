//! Who may do what.

use crate::yard::{APPROVER, CALLER, OPERATOR, Yard};
use reqwest::{Method, StatusCode, header};
use serde_json::json;
use toolyard::Engine;
use toolyard_server::{Front, Scope, SecretHash, ServeError, Server, ServerOptions, Token};

/// HT-6: without a token, with an unknown one, and with one of other scopes, nothing is done.
#[tokio::test]
async fn every_request_needs_its_scope() {
    let yard = Yard::open().await;
    yard.session("a").await;
    let nobody = yard.client.get(format!("http://{}/sessions", yard.address));
    let refused = yard.sent(nobody).await;
    assert_eq!(refused.problem(401), "no_token");
    assert_eq!(refused.headers["www-authenticate"], "Bearer");
    assert_eq!(yard.get("nonsense", "/sessions").await.problem(401), "unknown_token");
    for (secret, method, path) in [
        (CALLER, Method::GET, "/events"),
        (CALLER, Method::GET, "/status"),
        (CALLER, Method::GET, "/metrics"),
        (APPROVER, Method::DELETE, "/sessions/a"),
    ] {
        let refused = yard.sent(yard.request(secret, method, path)).await;
        assert_eq!(refused.problem(403), "scope_missing", "{path}");
    }
    for (secret, path, body) in [
        (APPROVER, "/sessions", json!({})),
        (OPERATOR, "/sessions/a/calls", json!({"name": "echo"})),
        (CALLER, "/breakers/echo/open", json!({})),
        (CALLER, "/sessions/a/turns/1/confirmations/x", json!({"decision": "allow", "digest": ""})),
    ] {
        assert_eq!(yard.post(secret, path, body).await.problem(403), "scope_missing", "{path}");
    }
    yard.close().await;
}

/// HT-8: requests from pages elsewhere, to other hosts, and as a form sends them, are refused.
#[tokio::test]
async fn requests_from_elsewhere_are_refused() {
    let yard = Yard::open().await;
    let get = || yard.request(APPROVER, Method::GET, "/sessions");
    let foreign = yard.sent(get().header(header::ORIGIN, "http://evil.example")).await;
    assert_eq!(foreign.problem(403), "origin");
    let other_port = yard.sent(get().header(header::ORIGIN, "http://127.0.0.1:1")).await;
    assert_eq!(other_port.problem(403), "origin");
    assert_eq!(yard.sent(get().header(header::HOST, "evil.example")).await.problem(403), "host");
    let own = format!("http://{}", yard.address);
    assert_eq!(yard.sent(get().header(header::ORIGIN, own)).await.status, StatusCode::OK);
    for form in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"] {
        let request =
            yard.request(CALLER, Method::POST, "/sessions").header(header::CONTENT_TYPE, form).body("{}");
        assert_eq!(yard.sent(request).await.problem(415), "content_type", "{form}");
    }
    yard.close().await;
}

/// HT-9: the code of the link is good once; its key approves, observes and operates, and makes no calls.
#[tokio::test]
async fn a_link_is_good_once() {
    let yard = Yard::with(ServerOptions::page).await;
    let link = yard.server.link(yard.address).unwrap();
    let page = yard.client.get(format!("http://{}/", yard.address)).send().await.unwrap();
    assert!(page.headers()["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'"));
    assert!(page.text().await.unwrap().contains("/page/js/live.js"));
    let missing = yard.client.get(format!("http://{}/page/nonsense.js", yard.address));
    assert_eq!(yard.sent(missing).await.problem(404), "not_found");
    let (_, code) = link.split_once("/#code=").unwrap();
    let exchange = |code: String| {
        let request =
            yard.client.post(format!("http://{}/page/key", yard.address)).json(&json!({ "code": code }));
        yard.sent(request)
    };
    assert_eq!(exchange("another".into()).await.problem(401), "link_used");
    let key = exchange(code.to_owned()).await.with(200);
    assert_eq!(key["scopes"], json!(["approve", "observe", "operate"]));
    assert_eq!(exchange(code.to_owned()).await.problem(401), "link_used");
    let key = key["key"].as_str().unwrap();
    yard.get(key, "/status").await.with(200);
    assert_eq!(yard.post(key, "/sessions", json!({})).await.problem(403), "scope_missing");
    yard.close().await;
}

/// HT-6: a token that would approve its own calls is refused, unless that is meant; and names are not shared.
#[tokio::test]
async fn nobody_approves_his_own_calls() {
    let both = || Token::new("a", SecretHash::of("a"), [Scope::Call, Scope::Approve]);
    let server = async |options: ServerOptions| {
        let front = Front::default();
        Server::new(Engine::builder().approver(front.clone()).build().await.unwrap(), front, options)
    };
    let options = ServerOptions::default;
    assert!(matches!(server(options().token(both())).await, Err(ServeError::SelfApproval(_))));
    assert!(server(options().token(both().self_approve())).await.is_ok());
    let twice = options().token(both().self_approve()).token(Token::new("a", SecretHash::of("b"), []));
    assert!(matches!(server(twice).await, Err(ServeError::Twice(_))));
}

/// HT-6: what anybody may do without a token is for this machine alone.
#[tokio::test]
async fn calls_without_a_token_are_for_this_machine() {
    let anybody =
        || ServerOptions::default().anybody(Token::new("anybody", SecretHash::of("-"), [Scope::Call]));
    let yard =
        Yard::with(|options| options.anybody(Token::new("anybody", SecretHash::of("-"), [Scope::Call])))
            .await;
    let opened = yard.client.post(format!("http://{}/sessions", yard.address)).json(&json!({}));
    assert_eq!(yard.sent(opened).await.with(201)["owner"], "anybody");
    let status = yard.client.get(format!("http://{}/status", yard.address));
    assert_eq!(yard.sent(status).await.problem(403), "scope_missing");
    yard.close().await;
    let front = Front::default();
    let engine = Engine::builder().approver(front.clone()).build().await.unwrap();
    let server = Server::new(engine, front, anybody()).unwrap();
    let public = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    assert!(matches!(server.serve(public, Default::default()).await, Err(ServeError::Public(_))));
}

/// Every path, known or not, and every method answers with a problem that says what to do.
#[tokio::test]
async fn what_is_not_there_says_so() {
    let yard = Yard::open().await;
    assert_eq!(yard.get(CALLER, "/nonsense").await.problem(404), "not_found");
    let patched = yard.sent(yard.request(CALLER, Method::PATCH, "/sessions")).await;
    assert_eq!(patched.problem(405), "method");
    assert_eq!(yard.get(CALLER, "/sessions/a/turns/x").await.problem(404), "not_found");
    assert_eq!(yard.get(CALLER, "/turns?limit=x").await.problem(400), "malformed");
    let document = yard.get(CALLER, "/openapi.json").await.with(200);
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["paths"]["/sessions/{id}/turns"]["post"].is_object());
    yard.close().await;
}

/// AG-14: nobody is admitted under the name of the program that has started this one, to which its sessions belong.
#[tokio::test]
async fn the_parents_name_is_nobody_elses() {
    let engine = async || {
        let front = Front::default();
        (Engine::builder().approver(front.clone()).events(front.clone()).build().await.unwrap(), front)
    };
    let token = || Token::new("@parent", SecretHash::of("a"), [Scope::Call]);
    for options in [ServerOptions::default().token(token()), ServerOptions::default().anybody(token())] {
        let (engine, front) = engine().await;
        assert!(matches!(Server::new(engine, front, options), Err(ServeError::Reserved)));
    }
    let (engine, front) = engine().await;
    let server = Server::new(engine, front, ServerOptions::default()).unwrap();
    assert!(matches!(server.set_tokens(vec![token()]), Err(ServeError::Reserved)));
}
