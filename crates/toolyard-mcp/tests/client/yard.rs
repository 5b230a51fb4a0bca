//! An engine with servers.

use serde_json::Value;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::timeout;
use toolyard::{Answer, Batch, Call, Engine, EngineBuilder, Event, EventKind, Outcome};
use toolyard_mcp::{ServerConfig, Servers};

/// An engine with servers.
pub(crate) struct Yard {
    pub(crate) engine: Engine,
    pub(crate) servers: Servers,
    pub(crate) events: Arc<Mutex<Vec<Event>>>,
}

impl Yard {
    pub(crate) async fn open(configs: Vec<ServerConfig>) -> Self {
        Self::built(configs, |builder| builder).await
    }

    /// The same, with more options for the engine.
    pub(crate) async fn built(
        configs: Vec<ServerConfig>,
        more: impl FnOnce(EngineBuilder) -> EngineBuilder,
    ) -> Self {
        let servers = Servers::start(configs).await.unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let sink = events.clone();
        let builder = Engine::builder()
            .tools(servers.tools())
            .approver(Answer::allow("ada"))
            .events(move |event: &Event| sink.lock().unwrap().push(event.clone()));
        let engine = more(builder).build().await.unwrap();
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

    /// Waits until a condition holds. Fails with its description if that takes too long.
    pub(crate) async fn until(&self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let waited = timeout(Duration::from_secs(30), async {
            while !is_so(self) {
                tokio::task::yield_now().await;
            }
        });
        assert!(waited.await.is_ok(), "{what}: not within 30 s");
    }

    /// How many events of a kind there were.
    pub(crate) fn count_events(&self, is_it: impl Fn(&EventKind) -> bool) -> usize {
        self.events.lock().unwrap().iter().filter(|event| is_it(&event.kind)).count()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.engine.registry().list().iter().map(|entry| entry.name().to_owned()).collect()
    }
}
