//! The parents of call spans.

use crate::seen::{Spans, check};
use serde_json::Value;
use toolyard::{EngineBuilder, ToolContext, ToolSpec, tool_fn};
use toolyard_tests::{Log, call, yard};
use tracing::{Instrument, info_span};

/// Adds a tool whose handler calls `read` from its own task, from a task it spawns, and from inside a span.
fn nests(builder: EngineBuilder, _: &Log) -> EngineBuilder {
    builder.tool(tool_fn(ToolSpec::pure("nests").recursive(), |_: Value, cx: ToolContext| async move {
        let own = format!("{}-own", cx.call_id());
        cx.dispatch(vec![call(&own, "read", 5, "ok")]).await;
        let foreign = format!("{}-foreign", cx.call_id());
        let there = cx.clone();
        let task = tokio::spawn(async move { there.dispatch(vec![call(&foreign, "read", 5, "ok")]).await });
        task.await.unwrap();
        let inner = format!("{}-inner", cx.call_id());
        cx.dispatch(vec![call(&inner, "read", 5, "ok")]).instrument(info_span!("step")).await;
        Ok("done")
    }))
}

/// OB-4: the parent of a call's span is the span in which its batch was dispatched.
#[tokio::test(start_paused = true)]
async fn calls_are_children_of_the_dispatching_span() {
    let (spans, _listening) = Spans::listen();
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let calls = vec![call("a", "read", 5, "ok"), call("b", "made_up", 0, "ok"), call("c", "serial", 5, "ok")];
    let turn = session.turn();
    turn.dispatch(calls).instrument(info_span!("invoke_agent")).await;
    session.call(call("d", "read", 0, "ok")).await;
    let stream = info_span!("stream").in_scope(|| session.open_batch());
    stream.push(call("e", "read", 0, "ok"));
    stream.finish().await;
    let parents = ["a", "b", "c", "d", "e"].map(|id| spans.of(id).parent);
    assert_eq!(
        parents.each_ref().map(Option::as_deref),
        [Some("invoke_agent"), Some("invoke_agent"), Some("invoke_agent"), None, Some("stream"),]
    );
    check(&spans);
}

/// OB-4: the parent of a nested call's span is the handler's call, from whatever task it was dispatched.
#[tokio::test(start_paused = true)]
async fn nested_calls_are_children_of_their_handlers_span() {
    let (spans, _listening) = Spans::listen();
    let yard = yard(nests).await;
    let session = yard.engine.session("s");
    let outcomes = session.dispatch(vec![call("x", "nests", 0, "ok"), call("y", "nests", 0, "ok")]).await;
    assert!(outcomes.iter().all(toolyard::Outcome::success), "{outcomes:?}");
    for outer in ["x", "y"] {
        assert_eq!(spans.of(outer).parent, None);
        let parent = |inner: &str| spans.of(&format!("{outer}-{inner}")).parent;
        assert_eq!(parent("own").as_deref(), Some(outer));
        assert_eq!(parent("foreign").as_deref(), Some(outer));
        assert_eq!(parent("inner").as_deref(), Some("step"));
    }
    check(&spans);
}

/// OB-4: keeping a turn or a session does not keep any span open.
#[tokio::test(start_paused = true)]
async fn parent_spans_are_closed() {
    let (spans, _listening) = Spans::listen();
    let yard = yard(nests).await;
    let turn = yard.engine.session("s").turn();
    turn.dispatch(vec![call("x", "nests", 0, "ok")]).instrument(info_span!("invoke_agent")).await;
    assert!(spans.open().is_empty(), "{:?}", spans.open());
    drop(turn);
}
