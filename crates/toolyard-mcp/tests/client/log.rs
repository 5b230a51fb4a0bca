//! What is logged about servers through `tracing`.

use crate::client::{server::odd, yard::Yard};
use serde_json::json;
use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex, OnceLock},
};
use tracing::{
    Dispatch, Event, Level, Subscriber,
    field::{Field, Visit},
    subscriber::{DefaultGuard, NoSubscriber},
};
use tracing_subscriber::{
    Registry,
    layer::{Context, Layer, SubscriberExt},
};

/// A line of the log.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    pub(crate) level: Level,
    fields: BTreeMap<&'static str, String>,
}

impl Line {
    /// A field's value; empty if there is none.
    pub(crate) fn get(&self, field: &str) -> &str {
        self.fields.get(field).map_or("", String::as_str)
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.fields.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.fields.insert(field.name(), format!("{value:?}"));
    }
}

/// What was logged on this thread, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Line>>>);

impl Log {
    /// Listens until the guard is dropped.
    pub(crate) fn listen() -> (Self, DefaultGuard) {
        // While there is only one dispatcher, tracing caches for all threads whether a call site is of interest, based
        // on the first thread that reaches it: which may be a test that does not listen.
        static ANOTHER: OnceLock<Dispatch> = OnceLock::new();
        ANOTHER.get_or_init(|| Dispatch::new(NoSubscriber::default()));
        let log = Self::default();
        let guard = tracing::subscriber::set_default(Registry::default().with(log.clone()));
        (log, guard)
    }

    /// The lines about a server with this message.
    pub(crate) fn of(&self, server: &str, message: &str) -> Vec<Line> {
        let all = self.0.lock().unwrap();
        let is_it = |line: &&Line| line.get("server") == server && line.get("message") == message;
        all.iter().filter(is_it).cloned().collect()
    }
}

impl<S: Subscriber> Layer<S> for Log {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line { level: *event.metadata().level(), fields: BTreeMap::new() };
        event.record(&mut line);
        self.0.lock().unwrap().push(line);
    }
}

/// A server's standard error is logged by line, in order, under its name, without characters that act on a terminal.
#[tokio::test]
async fn what_a_server_says_beside_its_messages_is_logged() {
    let (log, _listening) = Log::listen();
    let yard = Yard::open(vec![odd("a", "plain"), odd("b", "plain")]).await;
    for (server, said) in [("a", "disk is full"), ("b", "all \u{1b}[2Jis \u{202e}well"), ("a", "twice\nnow")]
    {
        yard.text(&format!("{server}__mutter"), json!({"text": said})).await;
    }
    let said = |server: &str| -> Vec<(Level, String)> {
        let lines = log.of(server, "an MCP server wrote to stderr");
        lines.iter().map(|line| (line.level, line.get("line").to_owned())).collect()
    };
    yard.until("all is logged", |_| said("a").len() + said("b").len() == 4).await;
    assert_eq!(said("a"), ["disk is full", "twice", "now"].map(|line| (Level::INFO, line.to_owned())));
    assert_eq!(said("b"), [(Level::INFO, "all [2Jis well".to_owned())]);
    yard.servers.shutdown().await;
}
