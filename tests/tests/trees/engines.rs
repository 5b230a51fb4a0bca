//! Handlers that dispatch into another engine: each engine has its own leases (CC-7, CC-7b).

use serde_json::json;
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use tokio::time::{sleep, timeout};
use toolyard::{Call, Session, ToolContext, ToolFactory, ToolSpec, tool_fn};
use toolyard_tests::{call, shape, yard};

/// A serial tool that dispatches one call in the given session, which is set after the tool is built.
fn reaches(name: &str, there: &Arc<OnceLock<Session>>, inner: Call) -> impl ToolFactory + use<> {
    let there = there.clone();
    tool_fn(ToolSpec::write(name), move |(): (), _: ToolContext| {
        let (there, inner) = (there.clone(), inner.clone());
        async move { Ok(shape(&there.get().unwrap().dispatch(vec![inner]).await)) }
    })
}

/// CC-7: a serial call of one engine is not mistaken for one of another engine; from there, calls are ordinary waiters.
#[tokio::test(start_paused = true)]
async fn a_call_from_another_engine_is_an_ordinary_waiter() {
    let there = Arc::new(OnceLock::new());
    let outer = tool_fn(ToolSpec::write("outer"), |(): (), cx: ToolContext| async move {
        Ok(shape(&cx.dispatch(vec![call("inner", "read", 1000, "ok")]).await))
    });
    let (one, other) = (
        yard(|builder, _| builder.tool(outer)).await,
        yard(|builder, _| builder.tool(reaches("reach", &there, call("late", "serial", 10, "ok")))).await,
    );
    let session = there.get_or_init(|| one.engine.session("one"));
    let from_there = other.engine.session("other");
    let (outer, reached) = tokio::join!(session.call(Call::new("outer", "outer", json!({}))), async {
        sleep(Duration::from_millis(10)).await;
        from_there.call(Call::new("reach", "reach", json!({}))).await
    });
    assert_eq!((outer.to_text().as_str(), reached.to_text().as_str()), ("inner ok", "late ok"));
    assert_eq!(one.log.spans(), ["inner 0..1000", "late 1000..1010"]);
    one.events.check();
    other.events.check();
}

/// CC-7, CC-7b: a call that returns through another engine is a descendant of the handler it comes from, which lends
/// it its lease; otherwise the two would wait for each other.
#[tokio::test(start_paused = true)]
async fn a_call_back_into_the_engine_uses_the_lease_above() {
    let (here, there) = (Arc::new(OnceLock::new()), Arc::new(OnceLock::new()));
    let (one, other) = (
        yard(|builder, _| builder.tool(reaches("go", &there, Call::new("back", "back", json!({}))))).await,
        yard(|builder, _| builder.tool(reaches("back", &here, call("home", "serial", 10, "ok")))).await,
    );
    let session = here.get_or_init(|| one.engine.session("one"));
    there.get_or_init(|| other.engine.session("other"));
    // Shifts the ids of lease entries, so that they differ between the two engines.
    session.call(call("before", "serial", 10, "ok")).await;
    let outcome = timeout(Duration::from_secs(60), session.call(Call::new("go", "go", json!({})))).await;
    assert_eq!(outcome.expect("no call waits for itself").to_text(), "back ok");
    assert_eq!(one.log.spans(), ["before 0..10", "home 10..20"]);
    one.events.check();
    other.events.check();
}
