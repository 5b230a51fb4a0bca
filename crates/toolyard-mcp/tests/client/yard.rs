//! An engine with servers.

use serde_json::Value;
use std::sync::{Arc, Mutex};
use toolyard::{Answer, Batch, Call, Engine, Event, Outcome};
use toolyard_mcp::{ServerConfig, Servers};

/// An engine with servers.
pub(crate) struct Yard {
    pub(crate) engine: Engine,
    pub(crate) servers: Servers,
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
}

impl Yard {
    pub(crate) async fn open(configs: Vec<ServerConfig>) -> Self {
        let servers = Servers::start(configs).await.unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let sink = events.clone();
        let engine = Engine::builder()
            .tools(servers.tools())
            .approver(Answer::Allow)
            .events(move |event: &Event| sink.lock().unwrap().push(event.clone()))
            .build()
            .await
            .unwrap();
        servers.attach(&engine);
        Self { engine, servers, events }
    }

    /// The results of calls that are made together.
    pub(crate) async fn all(&self, calls: Vec<Call>) -> Vec<Outcome> {
        self.engine.session("s").dispatch(Batch::new(calls)).await
    }

    /// The result of one call.
    pub(crate) async fn call(&self, tool: &str, args: Value) -> Outcome {
        self.all(vec![Call::new("c", tool, args)]).await.remove(0)
    }

    /// The text of the result of one call that has to succeed.
    pub(crate) async fn text(&self, tool: &str, args: Value) -> String {
        let outcome = self.call(tool, args).await;
        outcome.status.unwrap().to_text()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.engine.registry().list().iter().map(|entry| entry.name().to_owned()).collect()
    }
}
