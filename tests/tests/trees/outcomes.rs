//! Outcomes of a batch as its calls end (KT-5).

use futures::{FutureExt as _, Stream as _, StreamExt as _, future::BoxFuture};
use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use toolyard::{Call, Engine, Outcome, Outcomes, Spawner, ToolContext, ToolSpec, tool_fn};
use toolyard_tests::{Recorder, call, shape, yard};

/// What is given, as `place id code ms`, to the end of the stream.
async fn given(mut outcomes: Outcomes) -> Vec<String> {
    let (from, mut given) = (Instant::now(), Vec::new());
    while let Some((at, outcome)) = outcomes.next().await {
        given.push(format!("{at} {} {}", shape(&[outcome]), from.elapsed().as_millis()));
        let (least, most) = outcomes.size_hint();
        assert_eq!(most, Some(least));
    }
    assert!(outcomes.next().await.is_none());
    given
}

/// KT-5: every call once, with its place, as soon as it has ended; the calls run in the order of the batch.
#[tokio::test(start_paused = true)]
async fn every_call_is_given_once_as_it_ends() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let batch = || {
        vec![
            call("slow", "read", 50, "ok"),
            call("fast", "read", 10, "fail"),
            call("none", "no_such_tool", 0, "ok"),
            call("late", "serial", 5, "ok"),
        ]
    };
    let expected = ["2 none not_found 0", "1 fast execution_error 10", "0 slow ok 50", "3 late ok 55"];
    assert_eq!(given(session.dispatch_stream(batch())).await, expected);
    assert_eq!(given(session.turn().dispatch_stream(batch())).await, expected);
    assert_eq!(given(session.turn().without_resend().dispatch_stream(batch())).await, expected);
    assert_eq!(given(session.dispatch_stream(Vec::new())).await, [""; 0]);
    yard.events.check();
}

/// KT-5, CL-5: the results are those of `dispatch`.
#[tokio::test(start_paused = true)]
async fn the_results_are_those_of_a_dispatch() {
    let yard = yard(|builder, _| builder).await;
    let batch: Vec<_> = (0..600)
        .map(|n| {
            call(
                &format!("c{}", n % 590),
                ["read", "serial", "concurrent"][n / 7 % 3],
                1,
                ["ok", "fail"][n % 2],
            )
        })
        .collect();
    let line = |one: &Outcome| format!("{} run {} {} {}", one.call_id, one.run, one.routing, one.to_text());
    let session = yard.engine.session("s");
    let at_once: Vec<_> = session.dispatch(batch.clone()).await.iter().map(line).collect();
    let mut streamed: Vec<_> = session.dispatch_stream(batch).collect().await;
    streamed.sort_unstable_by_key(|(at, _)| *at);
    assert_eq!(streamed.iter().map(|(_, outcome)| line(outcome)).collect::<Vec<_>>(), at_once);
    yard.events.check();
}

/// KT-5: the calls go on while nobody polls; dropping the stream cancels what has no result, as `dispatch` does.
#[tokio::test(start_paused = true)]
async fn dropping_it_cancels_the_batch() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let mut outcomes = session.dispatch_stream(vec![
        call("quick", "read", 5, "ok"),
        call("polite", "read", 0, "polite"),
        call("behind", "serial", 5, "ok"),
    ]);
    tokio::time::sleep(Duration::from_millis(20)).await;
    let (at, first) = outcomes.next().now_or_never().flatten().unwrap();
    assert_eq!((at, shape(&[first]).as_str()), (0, "quick ok"));
    drop(outcomes);
    assert_eq!(shape(&[session.call(call("after", "read", 0, "ok")).await]), "after ok");
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(yard.log.started(), ["quick", "polite", "after"]);
    yard.events.check();
}

/// KT-5: who has read the last result may drop the stream: nothing is left that it would cancel.
#[tokio::test(start_paused = true)]
async fn after_the_last_result_nothing_is_cancelled() {
    let yard = yard(|builder, _| builder).await;
    let mut outcomes = yard.engine.session("s").dispatch_stream(vec![call("only", "read", 5, "ok")]);
    outcomes.next().await.unwrap();
    drop(outcomes);
    tokio::task::yield_now().await;
    let names: Vec<_> = yard.events.events().iter().map(|event| event.kind.name()).collect();
    assert!(names.contains(&"turn.ended") && !names.contains(&"turn.cancelled"), "{names:?}");
    yard.events.check();
}

/// KT-5, CL-8: a turn that keeps results can be resent after its stream.
#[tokio::test(start_paused = true)]
async fn a_turn_keeps_what_it_has_given() {
    let yard = yard(|builder, _| builder).await;
    let turn = yard.engine.session("s").turn();
    let batch = vec![call("a", "read", 5, "ok"), call("b", "serial", 5, "ok")];
    assert_eq!(given(turn.dispatch_stream(batch.clone())).await, ["0 a ok 5", "1 b ok 10"]);
    assert_eq!(shape(&turn.resend(batch).await), "a ok, b ok");
    assert_eq!(yard.log.started(), ["a", "b"]);
}

/// KT-5, CC-4: a result that has been read holds nothing; one that has not counts.
#[tokio::test(start_paused = true)]
async fn what_has_been_read_holds_nothing() {
    let mut limits = toolyard::Limits::default();
    limits.results_batch_bytes_max = 64 << 10;
    let large = tool_fn(ToolSpec::write("large"), |(): (), _: ToolContext| async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok("x".repeat(20 << 10))
    });
    let yard = yard(|builder, _| builder.limits(limits).tool(large)).await;
    let session = yard.engine.session("s");
    let batch: Vec<_> = (0..20).map(|n| Call::new(format!("{n}").as_str(), "large", "{}")).collect();
    let read: Vec<_> = session.dispatch_stream(batch.clone()).collect().await;
    assert!(read.iter().all(|(_, outcome)| outcome.success()));
    assert!(session.dispatch(batch).await.iter().any(|outcome| !outcome.success()));
}

/// KT-5, CC-6: a handler can stream through a session that it holds.
#[tokio::test(start_paused = true)]
async fn a_handler_can_stream() {
    let streams = |session: toolyard::Session| {
        tool_fn(ToolSpec::write("streams"), move |(): (), _: ToolContext| {
            let session = session.clone();
            async move {
                let outcomes = session.dispatch_stream(vec![call("inner", "serial", 5, "ok")]);
                Ok(outcomes.map(|(_, outcome)| shape(&[outcome])).collect::<Vec<_>>().await.join(", "))
            }
        })
    };
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    yard.engine.registry().register(streams(session.clone())).unwrap();
    let outcome = session.call(Call::new("outer", "streams", "{}")).await;
    assert_eq!(outcome.to_text(), "inner ok");
    yard.events.check();
}

/// Drops the first task that it is given.
#[derive(Default)]
struct Losing(AtomicBool);

impl Spawner for Losing {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        if self.0.swap(true, Ordering::SeqCst) {
            tokio::spawn(task);
        }
    }
}

/// KT-5, SC-3: if the task of the batch is lost, every call is given all the same.
#[tokio::test(start_paused = true)]
async fn a_lost_task_loses_no_result() {
    let now = tool_fn(ToolSpec::read("now"), |(): (), _: ToolContext| async { Ok("now") });
    let events = Recorder::default();
    let builder = Engine::builder().tool(now).events(events).spawner(Arc::new(Losing::default()));
    let engine = builder.build().await.unwrap();
    let outcomes =
        engine.session("s").dispatch_stream(["a", "b"].map(|id| Call::new(id, "now", "{}")).to_vec());
    assert_eq!(given(outcomes).await, ["0 a internal 0", "1 b internal 0"]);
}
