//! An engine with tools that end in every way, and a batch that calls them all.

use serde_json::Value;
use std::time::Duration;
use toolyard::{
    BreakerOf, Call, Confirmations, Drain, Engine, EngineBuilder, Outcome, ToolContext, ToolError,
    ToolOutput, ToolSpec, tool_fn,
};
use toolyard_otel::Telemetry;
use tracing_subscriber::layer::SubscriberExt;

/// How long the final export may take; a receiver beside the test takes less.
pub(crate) const PLENTY: Duration = Duration::from_secs(30);

pub(crate) fn builder() -> EngineBuilder {
    let (waits, fails) = (ToolSpec::read("waits"), ToolSpec::read("fails"));
    let flaky = ToolSpec::read("flaky").describe("Works the third time.");
    Engine::builder()
        .confirmations(Confirmations::auto())
        .tool(tool_fn(waits, |_: Value, _: ToolContext| async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            Ok("done")
        }))
        .tool(tool_fn(fails, |_: Value, _: ToolContext| async {
            Err::<ToolOutput, _>(ToolError::execution("HTTP 404: no such thing, token=hush"))
        }))
        .tool(tool_fn(flaky, |_: Value, cx: ToolContext| async move {
            match cx.attempt() {
                3 => Ok("at last"),
                _ => Err(ToolError::transient("HTTP 503")),
            }
        }))
        .tool(tool_fn(ToolSpec::pure("outer").recursive(), |_: Value, cx: ToolContext| async move {
            cx.dispatch(vec![Call::new("inner", "waits", "{}")]).await;
            Ok("done")
        }))
        .tool(tool_fn(ToolSpec::write("once"), |_: Value, _: ToolContext| async { Ok("written") }))
}

fn keyed(id: &str) -> Call {
    let mut call = Call::new(id, "once", r#"{"note": "hush"}"#);
    call.idempotency_key = Some("key".into());
    call
}

/// Runs the whole scene, from building the engine to shutting down its telemetry.
pub(crate) async fn play(telemetry: Telemetry, builder: EngineBuilder) -> (Vec<Outcome>, bool) {
    // With only one subscriber, tracing lets the thread that first reaches a callsite decide for all threads whether it
    // is enabled, and that thread may belong to a test that does not listen.
    let _another = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let _listening = tracing::subscriber::set_default(tracing_subscriber::registry().with(telemetry.layer()));
    let engine = builder.events(telemetry.sink()).build().await.unwrap();
    telemetry.observe(&engine);
    let session = engine.session("demo");
    let call = |id: &str, tool: &str| Call::new(id, tool, "{}");
    let mut outcomes = session
        .dispatch(vec![
            call("ok", "waits"),
            call("failing", "fails"),
            call("retried", "flaky"),
            call("nesting", "outer"),
            call("unknown", "made_up"),
            keyed("first"),
        ])
        .await;
    outcomes.push(session.call(keyed("replayed")).await);
    engine.force_open(&BreakerOf::tool("fails"));
    outcomes.push(session.call(call("shut", "fails")).await);
    drop(session);
    engine.shutdown(Drain::default()).await;
    drop(engine);
    (outcomes, telemetry.shutdown(PLENTY))
}

/// The codes of all ends in the scene.
pub(crate) const ENDS: [&str; 8] =
    ["ok", "execution_error", "ok", "ok", "not_found", "ok", "ok", "circuit_open"];

pub(crate) fn codes(outcomes: &[Outcome]) -> Vec<&'static str> {
    outcomes.iter().map(|outcome| outcome.error().map_or("ok", |error| error.kind.code())).collect()
}
