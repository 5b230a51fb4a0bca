//! Handlers that nest much deeper than a stack could.

use serde_json::json;
use std::sync::{Arc, Mutex};
use toolyard::{Call, Engine, ToolContext, ToolFactory, ToolSpec, tool_fn};

/// How deep the calls nest.
const DEPTH: u64 = 30_000;

/// The context of the innermost call.
type Kept = Arc<Mutex<Option<ToolContext>>>;

/// A tool that calls itself as many times as its argument says; the innermost call keeps its context.
fn chain(spec: ToolSpec, kept: &Kept) -> impl ToolFactory + use<> {
    let kept = kept.clone();
    tool_fn(spec, move |more: u64, cx: ToolContext| {
        let kept = kept.clone();
        async move {
            if more == 0 {
                *kept.lock().unwrap() = Some(cx);
                return Ok("the innermost".to_owned());
            }
            let outcomes = cx.dispatch(vec![Call::new("in", "chain", json!(more - 1))]).await;
            Ok(outcomes[0].to_text())
        }
    })
}

async fn go(spec: ToolSpec) {
    let kept = Kept::default();
    let engine = Engine::builder().tool(chain(spec, &kept)).build().await.unwrap();
    let session = engine.session("s");
    let outcome = tokio::spawn(async move { session.call(Call::new("out", "chain", json!(DEPTH))).await });
    assert_eq!(outcome.await.unwrap().to_text(), "the innermost");
    let last = kept.lock().unwrap().take();
    drop(last); // drops every batch above too: nothing else holds them
}

/// CC-6: calls nest to any depth, and dropping the last owner of a long chain of batches does not overflow the stack.
#[tokio::test]
async fn a_long_chain_of_batches_is_dropped_without_overflow() {
    go(ToolSpec::read("chain")).await;
}

/// CC-6, SC-2: the same for inline calls.
#[tokio::test]
async fn calls_that_run_in_place_nest_to_any_depth() {
    go(ToolSpec::read("chain").inline()).await;
}
