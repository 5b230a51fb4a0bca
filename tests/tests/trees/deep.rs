//! Handlers that nest much deeper than a stack could.

use std::sync::{Arc, Mutex};
use toolyard::{
    Call, Engine, ErrorKind, ForkPolicy, Limits, Outcome, SubAgents, ToolContext, ToolFactory, ToolSpec,
    tool_fn,
};
use toolyard_tests::{Number, Recorder, call, kinds};

/// How deep the calls nest.
const DEPTH: u64 = 30_000;

/// The context of the innermost call.
type Kept = Arc<Mutex<Option<ToolContext>>>;

/// A tool that calls itself as many times as its argument says; the innermost call keeps its context.
fn chain(spec: ToolSpec, kept: &Kept) -> impl ToolFactory + use<> {
    let kept = kept.clone();
    tool_fn(spec, move |Number { n: more }, cx: ToolContext| {
        let kept = kept.clone();
        async move {
            if more == 0 {
                *kept.lock().unwrap() = Some(cx);
                return Ok("the innermost".to_owned());
            }
            let outcomes = cx.dispatch(vec![Call::new("in", "chain", Number { n: more - 1 })]).await;
            Ok(outcomes[0].to_text())
        }
    })
}

async fn go(spec: ToolSpec) {
    let kept = Kept::default();
    let mut limits = Limits::default();
    (limits.nested_depth_max, limits.parked_max) = (u32::MAX, 1_000_000);
    let engine = Engine::builder().limits(limits).tool(chain(spec, &kept)).build().await.unwrap();
    let session = engine.session("s");
    let outcome =
        tokio::spawn(async move { session.call(Call::new("out", "chain", Number { n: DEPTH })).await });
    assert_eq!(outcome.await.unwrap().to_text(), "the innermost");
    let last = kept.lock().unwrap().take();
    drop(last); // drops every batch above too: nothing else holds them
}

/// CC-6: calls nest as deep as the limit allows, and dropping the last owner of a long chain of batches does not overflow the stack.
#[tokio::test]
async fn a_long_chain_of_batches_is_dropped_without_overflow() {
    go(ToolSpec::read("chain")).await;
}

/// CC-6, SC-2: the same for inline calls.
#[tokio::test]
async fn calls_that_run_in_place_nest_to_any_depth() {
    go(ToolSpec::read("chain").inline()).await;
}

/// CL-7: calls nest 64 deep, unless the limit is set otherwise; deeper ones are `depth_exceeded`, whatever way they are
/// dispatched, and their siblings higher up go on.
#[tokio::test(start_paused = true)]
async fn calls_nest_sixty_four_deep() {
    for (max, way) in [(None, 0), (Some(3), 0), (Some(3), 1), (Some(3), 2)] {
        let started = Arc::new(Mutex::new(0));
        let count = started.clone();
        let deeper = tool_fn(ToolSpec::read("deeper"), move |(): (), cx: ToolContext| {
            let count = count.clone();
            async move {
                *count.lock().unwrap() += 1;
                let batch = vec![Call::new("in", "deeper", "{}"), Call::new("gone", "unknown", "{}")];
                let outcomes: Vec<Outcome> = match way {
                    0 => cx.dispatch(batch).await,
                    1 => cx.fork(ForkPolicy::default())?.turn().dispatch(batch).await,
                    _ => {
                        let stream = cx.fork(ForkPolicy::default())?.open_batch();
                        batch.into_iter().for_each(|call| stream.push(call));
                        stream.finish().await
                    }
                };
                match kinds(&outcomes)[0] {
                    Some(kind) => Ok(format!("{kind}: {}", outcomes[0].error().unwrap().message)),
                    None => Ok(outcomes[0].to_text()),
                }
            }
        });
        let events = Recorder::default();
        let mut limits = Limits::default();
        limits.nested_depth_max = max.unwrap_or(limits.nested_depth_max);
        let builder = Engine::builder().limits(limits).tool(deeper).events(events.clone());
        let engine = builder.build().await.unwrap();
        let max = max.unwrap_or(64);
        let text = engine.session("s").call(call("out", "deeper", 0, "ok")).await.to_text();
        let kind = ErrorKind::DepthExceeded;
        assert_eq!(
            text,
            format!("{kind}: calls may nest {max} deep, and this one is deeper: make it from a higher level")
        );
        assert_eq!(*started.lock().unwrap(), max + 1, "the outermost call is not nested");
        events.check();
    }
}
