//! A parent program, as a test plays it, and a server that it speaks with over two pipes in memory.

use serde_json::{Value, json};
use std::collections::VecDeque;
use tokio::{
    io::{
        AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
        duplex, split,
    },
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;
use toolyard::{Engine, EngineBuilder};
use toolyard_server::{Front, Scope, SecretHash, Server, ServerOptions, TalkEnd, TalkError, Token};

/// The secret of whoever operates the server.
const OPERATOR: &str = "a secret of an operator";

/// How many bytes a pipe holds, as those of Linux.
const PIPE_BYTES: usize = 64 << 10;

/// A parent program.
pub(crate) struct Parent {
    to: WriteHalf<DuplexStream>,
    from: Lines<BufReader<ReadHalf<DuplexStream>>>,
    /// What has come and was not waited for.
    come: VecDeque<Value>,
    talking: JoinHandle<Result<TalkEnd, TalkError>>,
    pub(crate) stop: CancellationToken,
    pub(crate) server: Server,
    pub(crate) engine: Engine,
}

impl Parent {
    /// One of an engine that is built like this.
    pub(crate) async fn of(builder: EngineBuilder, options: ServerOptions) -> Self {
        let front = Front::default();
        let engine = builder.approver(front.clone()).events(front.clone()).build().await.unwrap();
        let server = Server::new(engine.clone(), front, options).unwrap();
        let (own, theirs) = duplex(PIPE_BYTES);
        let ((own_from, own_to), (their_from, their_to)) = (split(own), split(theirs));
        let (stop, talker) = (CancellationToken::new(), server.clone());
        let told = stop.clone();
        let talking = tokio::spawn(async move { talker.talk(their_from, their_to, told).await });
        Self {
            to: own_to,
            from: BufReader::new(own_from).lines(),
            come: VecDeque::new(),
            talking,
            stop,
            server,
            engine,
        }
    }

    pub(crate) async fn new() -> Self {
        Self::of(Engine::builder(), ServerOptions::default()).await
    }

    /// One beside somebody who operates the server.
    pub(crate) async fn with_operator() -> Self {
        let token = Token::new("olga", SecretHash::of(OPERATOR), [Scope::Operate]);
        Self::of(Engine::builder(), ServerOptions::default().token(token)).await
    }

    pub(crate) async fn send(&mut self, line: Value) {
        self.send_bytes(format!("{line}\n").as_bytes()).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.to.write_all(bytes).await.unwrap();
    }

    /// The next line, whatever it is; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        match self.come.pop_front() {
            Some(line) => Some(line),
            None => self.read().await,
        }
    }

    async fn read(&mut self) -> Option<Value> {
        let line = self.from.next_line().await.unwrap()?;
        Some(serde_json::from_str(&line).unwrap())
    }

    /// The first line for which `wanted` holds; the others are kept for later.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.come.iter().position(&wanted) {
            return self.come.remove(at).unwrap();
        }
        loop {
            match self.read().await {
                Some(line) if wanted(&line) => return line,
                Some(line) => self.come.push_back(line),
                None => panic!("the end came instead, after {:?}", self.come),
            }
        }
    }

    /// The next line of this operation.
    pub(crate) async fn line(&mut self, op: &str) -> Value {
        self.until(|line| line["op"] == op).await
    }

    /// What has come of this operation so far and was not waited for.
    pub(crate) fn count(&self, op: &str) -> usize {
        self.come.iter().filter(|line| line["op"] == op).count()
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask(&mut self, mut line: Value) -> Value {
        let id = line["op"].clone();
        line["id"] = id.clone();
        self.send(line).await;
        self.until(|line| line["id"] == id).await
    }

    /// Says hello, to be asked, and with `meta`.
    pub(crate) async fn hello(&mut self) -> Value {
        self.ask(json!({"op": "hello", "protocol": 1, "confirm": true, "meta": true, "deltas": true})).await
    }

    /// Registers a function.
    pub(crate) async fn register(&mut self, definition: Value) {
        let answer = self.ask(json!({"op": "register", "definition": definition})).await;
        assert_eq!(answer["op"], "registered", "{answer}");
    }

    /// Registers functions that do nothing known to the engine but their side effects.
    pub(crate) async fn functions(&mut self, functions: &[(&str, &str)]) {
        for (name, side_effects) in functions {
            self.register(json!({"name": name, "side_effects": side_effects})).await;
        }
    }

    /// Begins a turn of these calls: an id and a tool each.
    pub(crate) async fn calls(&mut self, turn: &str, calls: &[(&str, &str)]) {
        let call = |(id, tool): &(&str, &str)| json!({"tool_call_id": id, "tool": tool, "args": {}});
        let calls: Vec<Value> = calls.iter().map(call).collect();
        self.send(json!({"op": "tool_calls", "turn": turn, "calls": calls})).await;
    }

    /// Waits for an invocation of this function, and returns its id.
    pub(crate) async fn invoked(&mut self, tool: &str) -> String {
        let invoke = self.until(|line| line["op"] == "tool_invoke" && line["tool"] == tool).await;
        invoke["call_id"].as_str().unwrap().to_owned()
    }

    /// Answers an invocation.
    pub(crate) async fn result(&mut self, call_id: &str, result: Value) {
        self.send(json!({"op": "tool_result", "call_id": call_id, "result": result})).await;
    }

    /// The answer to a call.
    pub(crate) async fn response(&mut self, call: &str) -> Value {
        self.until(|line| line["op"] == "tool_response" && line["tool_call_id"] == call).await
    }

    pub(crate) async fn ended(&mut self, turn: &str) -> Value {
        self.until(|line| line["op"] == "turn_ended" && line["turn"] == turn).await
    }

    /// Closes its end, reads on, and says how the conversation ended.
    pub(crate) async fn close(mut self) -> Result<TalkEnd, TalkError> {
        self.to.shutdown().await.unwrap();
        drop(self.to);
        while self.from.next_line().await.unwrap().is_some() {}
        self.talking.await.unwrap()
    }

    /// Closes its end, and reads on to the end.
    pub(crate) async fn closed(mut self) -> (Result<TalkEnd, TalkError>, Vec<Value>) {
        self.to.shutdown().await.unwrap();
        self.over().await
    }

    /// Closes its end without reading anything, and says how the conversation ended.
    pub(crate) async fn leave(mut self) -> Result<TalkEnd, TalkError> {
        self.to.shutdown().await.unwrap();
        self.talking.await.unwrap()
    }

    /// Closes one of its sessions as somebody else does, over HTTP.
    pub(crate) async fn close_from_elsewhere(&self, session: &str) {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = self.server.clone();
        let serving = tokio::spawn(async move { server.serve(listener, CancellationToken::new()).await });
        let url = format!("http://{address}/sessions/{session}");
        let closed = reqwest::Client::new().delete(url).bearer_auth(OPERATOR).send().await.unwrap();
        assert_eq!(closed.status(), 202);
        serving.abort(); // the server goes on with its parent
    }

    /// Reads on to the end, and says how the conversation ended.
    pub(crate) async fn over(mut self) -> (Result<TalkEnd, TalkError>, Vec<Value>) {
        while let Some(line) = self.read().await {
            self.come.push_back(line);
        }
        (self.talking.await.unwrap(), self.come.into())
    }
}
