//! What the engine tells of calls through `tracing`. Alone in its process: what listens there is shared by its threads.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use std::sync::{Arc, Mutex};
use toolyard_tests::{call, tries, yard};

/// Notes the spans of calls, and what is recorded in them.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Spans {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_span() && metadata.name() == "execute_tool"
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        self.0.lock().unwrap().push("span".to_owned());
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, values: &tracing::span::Record<'_>) {
        self.0.lock().unwrap().push(format!("{values:?}"));
    }

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// RT-9, OB-4: all attempts of a call share one span, which has the error that it ended with.
#[tokio::test(start_paused = true)]
async fn attempts_share_a_span() {
    let spans = Spans::default();
    let _seen = tracing::subscriber::set_default(spans.clone());
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    assert!(session.call(tries("a", "read", 0, &["transient", "transient", "ok"])).await.success());
    assert_eq!(*spans.0.lock().unwrap(), ["span"]);
    session.call(call("a", "read", 0, "transient")).await;
    let seen = spans.0.lock().unwrap().clone();
    assert_eq!((seen.len(), seen[1].as_str()), (3, "span"));
    assert!(seen[2].contains("error.type") && seen[2].contains("transient"), "{seen:?}");
}
