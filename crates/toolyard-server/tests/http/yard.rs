//! A server over a few tools, and a client of it.

use futures::future::BoxFuture;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::sync::CancellationToken;
use toolyard::{Drain, Engine, EngineBuilder, ToolContext, ToolError, ToolSpec, tool_fn};
use toolyard_server::{Bounds, Front, Scope, SecretHash, Server, ServerOptions, Token};

/// The secrets of the tokens that every yard has.
pub(crate) const CALLER: &str = "a caller's secret";
pub(crate) const OTHER: &str = "another caller's secret";
pub(crate) const APPROVER: &str = "an approver's secret";
pub(crate) const SECOND: &str = "a second approver's secret";
pub(crate) const OPERATOR: &str = "an operator's secret";

/// A running server.
pub(crate) struct Yard {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Engine,
    pub(crate) server: Server,
    /// How many calls of `gate` may end.
    pub(crate) gate: Arc<Semaphore>,
    /// How often `save` has run.
    pub(crate) saved: Arc<AtomicUsize>,
    pub(crate) stop: CancellationToken,
    pub(crate) client: Client,
}

/// What came of a request.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Value,
}

impl Answer {
    pub(crate) fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_else(|| panic!("no code: {self:?}"))
    }

    /// The body of an answer with this status.
    #[track_caller]
    pub(crate) fn with(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        self.body
    }

    /// The code of a problem with this status.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16) -> &str {
        assert_eq!(self.status.as_u16(), status, "{self:?}");
        assert_eq!(self.headers["content-type"], "application/problem+json", "{self:?}");
        self.code()
    }
}

impl Yard {
    pub(crate) async fn open() -> Self {
        Self::with(|options| options).await
    }

    pub(crate) async fn bounded(bounds: impl FnOnce(&mut Bounds)) -> Self {
        let mut given = Bounds::default();
        bounds(&mut given);
        Self::with(|options| options.bounds(given)).await
    }

    pub(crate) async fn with(options: impl FnOnce(ServerOptions) -> ServerOptions) -> Self {
        Self::over(|builder| builder, options).await
    }

    /// Over an engine that is built like this.
    pub(crate) async fn over(
        built: impl FnOnce(EngineBuilder) -> EngineBuilder,
        options: impl FnOnce(ServerOptions) -> ServerOptions,
    ) -> Self {
        let (gate, saved) = (Arc::new(Semaphore::new(0)), Arc::<AtomicUsize>::default());
        let front = Front::default();
        let engine = tools(Engine::builder(), &gate, &saved).approver(front.clone()).events(front.clone());
        let engine = built(engine).build().await.unwrap();
        let token = |name: &str, secret: &str, scopes: &[Scope]| {
            Token::new(name, SecretHash::of(secret), scopes.iter().copied())
        };
        let given = ServerOptions::default()
            .token(token("caller", CALLER, &[Scope::Call]).roles(["builder"]))
            .token(token("other", OTHER, &[Scope::Call]))
            .token(token("ada", APPROVER, &[Scope::Approve, Scope::Observe]))
            .token(token("bob", SECOND, &[Scope::Approve]))
            .token(token("op", OPERATOR, &[Scope::Operate, Scope::Observe]));
        let server = Server::new(engine.clone(), front, options(given)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, stop) = (listener.local_addr().unwrap(), CancellationToken::new());
        let (serving, until) = (server.clone(), stop.clone());
        tokio::spawn(async move { serving.serve(listener, until).await });
        let client = client();
        Self { address, engine, server, gate, saved, stop, client }
    }

    pub(crate) fn request(&self, secret: &str, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("http://{}{path}", self.address)).bearer_auth(secret)
    }

    pub(crate) async fn sent(&self, request: RequestBuilder) -> Answer {
        let response = request.send().await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        assert!(headers.contains_key("x-request-id"), "{headers:?}");
        let text = response.text().await.unwrap();
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Answer { status, headers, body }
    }

    pub(crate) async fn get(&self, secret: &str, path: &str) -> Answer {
        self.sent(self.request(secret, Method::GET, path)).await
    }

    pub(crate) async fn post(&self, secret: &str, path: &str, body: Value) -> Answer {
        self.sent(self.request(secret, Method::POST, path).json(&body)).await
    }

    pub(crate) async fn delete(&self, secret: &str, path: &str) -> Answer {
        self.sent(self.request(secret, Method::DELETE, path)).await
    }

    /// Opens a session of the caller.
    pub(crate) async fn session(&self, id: &str) {
        self.post(CALLER, "/sessions", json!({ "id": id })).await.with(201);
    }

    /// Starts a turn of these calls in a session of the caller, and returns its number.
    pub(crate) async fn turn(&self, session: &str, calls: Value) -> u64 {
        let path = format!("/sessions/{session}/turns");
        self.post(CALLER, &path, json!({ "calls": calls })).await.with(202)["turn"].as_u64().unwrap()
    }

    /// Waits for a turn of the caller.
    pub(crate) async fn ended(&self, session: &str, turn: u64) -> Value {
        self.get(CALLER, &format!("/sessions/{session}/turns/{turn}?wait=60&to=neutral")).await.with(200)
    }

    /// Waits for the only open question.
    pub(crate) fn question<'a>(&'a self, session: &'a str) -> BoxFuture<'a, Value> {
        Box::pin(async move {
            loop {
                let all = self.get(APPROVER, &format!("/sessions/{session}/confirmations")).await.with(200);
                match all["confirmations"].as_array().unwrap().as_slice() {
                    [] => tokio::task::yield_now().await,
                    [question] => return question.clone(),
                    several => panic!("{several:?}"),
                }
            }
        })
    }

    /// The path at which a question is answered.
    pub(crate) fn answers(question: &Value) -> String {
        let text = |name: &str| question[name].as_str().unwrap();
        format!(
            "/sessions/{}/turns/{}/confirmations/{}",
            text("session"),
            question["turn"],
            text("request_id")
        )
    }

    pub(crate) async fn close(self) {
        self.server.drain();
        self.engine.shutdown(Drain::default()).await;
        self.stop.cancel();
    }
}

/// A client, which may be built with a TLS that has no cryptography of its own.
fn client() -> Client {
    #[cfg(feature = "https")]
    {
        let provider = (*toolyard_egress::tls_provider().unwrap()).clone();
        // Another test may have been first.
        let _ = provider.install_default();
    }
    Client::builder().no_proxy().build().unwrap()
}

/// One call.
pub(crate) fn call(id: &str, name: &str, arguments: Value) -> Value {
    json!({"call_id": id, "name": name, "arguments": arguments})
}

fn tools(builder: EngineBuilder, gate: &Arc<Semaphore>, saved: &Arc<AtomicUsize>) -> EngineBuilder {
    let (gate, saved) = (gate.clone(), saved.clone());
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    builder
        .tool(tool_fn(ToolSpec::pure("echo"), |args: Value, _: ToolContext| async { Ok(args) }))
        .tool(tool_fn(ToolSpec::read("gate"), move |_: Value, cx: ToolContext| {
            let gate = gate.clone();
            async move {
                tokio::select! {
                    permit = gate.acquire() => permit.expect("it is never closed").forget(),
                    () = cx.cancelled() => return Err(ToolError::cancelled("the gate was closed")),
                }
                Ok("passed")
            }
        }))
        .tool(tool_fn(ToolSpec::write("save").input_schema(schema), move |args: Value, _: ToolContext| {
            let saved = saved.clone();
            async move {
                saved.fetch_add(1, Ordering::Relaxed);
                Ok(format!("saved {}", args["path"].as_str().unwrap_or_default()))
            }
        }))
}
