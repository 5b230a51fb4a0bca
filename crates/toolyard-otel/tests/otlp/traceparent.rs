//! The trace of a call as its handler sees it.

use crate::{receiver::Receiver, scene::PLENTY};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use toolyard::{Call, Drain, Engine, ToolContext, ToolSpec, tool_fn};
use toolyard_otel::{Settings, Telemetry, traceparent};
use tracing_subscriber::layer::SubscriberExt;

/// OB-4: in a handler the current trace is that of the call's span; outside of spans there is none.
#[tokio::test(start_paused = true)]
async fn a_handler_knows_the_trace_of_its_call() {
    let receiver = Receiver::start();
    let telemetry = Telemetry::start(Settings::to(receiver.address())).unwrap();
    let _another = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::default());
    let _listening = tracing::subscriber::set_default(tracing_subscriber::registry().with(telemetry.layer()));
    let seen = Arc::new(Mutex::new(None));
    let sees = seen.clone();
    let tool = tool_fn(ToolSpec::read("asks"), move |_: Value, _: ToolContext| {
        let sees = sees.clone();
        async move {
            tokio::task::yield_now().await;
            *sees.lock().unwrap() = traceparent();
            Ok("done")
        }
    });
    let engine = Engine::builder().tool(tool).build().await.unwrap();
    assert!(engine.session("demo").call(Call::new("a", "asks", "{}")).await.error().is_none());
    engine.shutdown(Drain::default()).await;
    assert_eq!(traceparent(), None);
    assert!(telemetry.shutdown(PLENTY));
    let [span] = receiver.spans().try_into().unwrap();
    let hex = |id: &[u8]| id.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let expected = format!("00-{}-{}-01", hex(&span.trace_id), hex(&span.span_id));
    assert_eq!(*seen.lock().unwrap(), Some(expected));
}
