//! Streaming batches, whose calls arrive while the model still writes them (CL-5).

use crate::{
    nested::nesting,
    pieces::{of_every_kind, steady},
};
use std::{sync::Arc, time::Duration};
use tokio::time::Instant;
use toolyard::{
    Call, Confirmations, EventKind, ForkPolicy, Outcome, SubAgents as _, ToolContext, ToolSpec, tool_fn,
};
use toolyard_tests::{Yard, call, scripted, shape, yard};

async fn ms(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

async fn plain() -> Yard {
    yard(|builder, log| builder.tool(nesting(ToolSpec::write("nests"), log))).await
}

/// CL-5: a call starts as soon as no earlier call of another run is unfinished, whatever is still to come.
#[tokio::test(start_paused = true)]
async fn a_call_starts_before_the_last_is_decoded() {
    let yard = plain().await;
    let batch = yard.engine.session("s").open_batch();
    for (n, tool) in ["read", "read", "serial", "read", "read"].into_iter().enumerate() {
        batch.push(call(&format!("c{n}"), tool, 25, "ok"));
        ms(10).await;
    }
    assert_eq!(shape(&batch.finished().into_iter().flatten().collect::<Vec<_>>()), "c0 ok, c1 ok");
    assert_eq!(shape(&batch.finish().await), "c0 ok, c1 ok, c2 ok, c3 ok, c4 ok");
    assert_eq!(yard.log.spans(), ["c0 0..25", "c1 10..35", "c2 35..60", "c3 60..85", "c4 60..85"]);
    yard.events.check();
}

/// CL-5, CL-8, CC-4: the results are those of the same batch dispatched at once, including refusals, repeats and runs.
#[tokio::test(start_paused = true)]
async fn a_stream_has_the_results_of_the_whole_batch() {
    let calls = of_every_kind();
    for pause in [0, 3, 40] {
        let (whole, streamed) = (plain().await, plain().await);
        let expected = whole.engine.session("s").dispatch(calls.clone()).await;
        let batch = streamed.engine.session("s").open_batch();
        for call in calls.clone() {
            batch.push(call);
            if pause > 0 {
                ms(pause).await;
            }
        }
        assert_eq!(batch.len(), calls.len());
        assert_eq!(steady(&batch.finish().await), steady(&expected), "{pause} ms between calls");
        streamed.events.check();
        let runs = |yard: &Yard| {
            let events = yard.events.events();
            let ended = events.into_iter().filter(|event| event.kind.is_terminal() && event.batch == Some(1));
            let mut runs: Vec<_> = ended.map(|event| (event.index, event.run)).collect();
            runs.sort_unstable();
            runs
        };
        assert_eq!(runs(&streamed), runs(&whole));
    }
}

/// CL-3: calls of one run that arrive in pieces are one run, and the next run waits for all of them.
#[tokio::test(start_paused = true)]
async fn a_serial_call_waits_for_all_pieces_of_the_run_before() {
    let yard = plain().await;
    let batch = yard.engine.session("s").open_batch();
    batch.push(call("long", "read", 50, "ok"));
    ms(1).await;
    batch.push(call("short", "read", 5, "ok"));
    ms(1).await;
    batch.push(call("write", "serial", 5, "ok"));
    batch.finish().await;
    assert_eq!(yard.log.spans(), ["long 0..50", "short 1..6", "write 50..55"]);
    yard.events.check();
}

/// CC-6b: dropping an open batch cancels it; a cancelled batch still has results.
#[tokio::test(start_paused = true)]
async fn an_open_batch_can_be_dropped_and_cancelled() {
    let yard = plain().await;
    let session = yard.engine.session("s");
    let dropped = session.open_batch();
    dropped.push(call("a", "serial", 0, "polite"));
    dropped.push(call("b", "serial", 0, "ok"));
    ms(1).await;
    drop(dropped);
    let cancelled = session.open_batch();
    cancelled.push(call("c", "serial", 0, "polite"));
    cancelled.push(call("d", "serial", 0, "ok"));
    ms(1).await;
    cancelled.cancel();
    cancelled.push(call("e", "read", 0, "ok"));
    assert_eq!(shape(&cancelled.finish().await), "c cancelled, d cancelled, e cancelled");
    assert_eq!(yard.log.started(), ["a", "c"]);
    assert_eq!(yard.log.running(), 0);
    assert_eq!(yard.events.of_call("b"), ["tool.call.received", "tool.failed"]);
    yard.events.check();
}

/// CL-4: an empty stream has no results; after its session is cancelled, a stream still answers later calls.
#[tokio::test(start_paused = true)]
async fn empty_streams_end_and_streams_end_with_their_session() {
    let yard = plain().await;
    let session = yard.engine.session("s");
    assert!(session.open_batch().finish().await.is_empty());
    let batch = session.open_batch();
    batch.push(call("a", "read", 5, "ok"));
    ms(10).await;
    session.cancel();
    batch.push(call("b", "read", 5, "ok"));
    assert_eq!(shape(&batch.finish().await), "a ok, b cancelled");
    let names: Vec<_> = yard.events.events().into_iter().map(|event| event.kind).collect();
    assert!(names.contains(&EventKind::TurnEnded { ok: 1, failed: 1 }));
    yard.events.check();
}

/// CC-6: a handler may stream nested calls; it is parked until the batch is finished.
#[tokio::test(start_paused = true)]
async fn a_handler_may_stream_calls_of_its_own() {
    let yard = yard(|builder, log| {
        let narrow = ToolSpec::read("narrow").max_concurrency(1);
        let streams = tool_fn(ToolSpec::write("streams"), |(): (), cx: ToolContext| async move {
            use toolyard::SubAgents;
            let agent = cx.fork(toolyard::ForkPolicy::default())?;
            let batch = agent.open_batch();
            batch.push(call("x", "serial", 5, "ok"));
            ms(1).await;
            batch.push(call("y", "narrow", 5, "ok"));
            Ok(shape(&batch.finish().await))
        });
        builder.tool(scripted(narrow, log)).tool(streams)
    })
    .await;
    let outcomes = yard.engine.session("s").dispatch(vec![Call::new("a", "streams", "{}")]).await;
    assert_eq!(outcomes[0].to_text(), "x ok, y ok");
    yard.events.check();
}

/// CC-6b: after a handler drops a stream, its next dispatch waits for the stream's calls; after it drops a dispatch,
/// its next stream waits for the dispatch's calls.
#[tokio::test(start_paused = true)]
async fn a_stream_after_a_dropped_one_waits_for_its_calls() {
    let yard = yard(|builder, _| {
        let stream_first = tool_fn(ToolSpec::read("stream_first"), |(): (), cx: ToolContext| async move {
            let stream = cx.fork(ForkPolicy::default())?.open_batch();
            stream.push(call("a", "read", 0, "stops_late"));
            ms(10).await;
            drop(stream);
            Ok(shape(&cx.dispatch(vec![call("b", "read", 1, "ok")]).await))
        });
        let dispatch_first =
            tool_fn(ToolSpec::read("dispatch_first"), |(): (), cx: ToolContext| async move {
                let dropped = cx.dispatch(vec![call("c", "read", 0, "stops_late")]);
                let _ = tokio::time::timeout(Duration::from_millis(10), dropped).await;
                let stream = cx.fork(ForkPolicy::default())?.open_batch();
                stream.push(call("d", "read", 1, "ok"));
                Ok(shape(&stream.finish().await))
            });
        builder.tool(stream_first).tool(dispatch_first)
    })
    .await;
    let batch = vec![Call::new("1", "stream_first", "{}"), Call::new("2", "dispatch_first", "{}")];
    let outcomes = yard.engine.session("s").dispatch_sequential(batch).await;
    assert_eq!(outcomes.iter().map(Outcome::to_text).collect::<Vec<_>>(), ["b ok", "d ok"]);
    assert_eq!(yard.log.spans(), ["a 0..30", "b 30..31", "c 31..61", "d 61..62"]);
    yard.events.check();
}

/// CC-6b: a handler drops a stream before its call is taken in; its next dispatch, whose call is answered at once, does
/// not return before the stream's call has ended too, and a stream that is still open is waited for likewise.
#[tokio::test(start_paused = true)]
async fn a_call_counts_as_dispatched_from_its_push() {
    for drops in [true, false] {
        let yard = yard(|builder, _| {
            let pushes = tool_fn(ToolSpec::read("pushes"), move |(): (), cx: ToolContext| async move {
                let stream = cx.fork(ForkPolicy::default())?.open_batch();
                stream.push(call("a", "read", 5, "ok"));
                let stream = (!drops).then_some(stream);
                let refused = shape(&cx.dispatch(vec![call("b", "unknown", 0, "ok")]).await);
                let ended = stream.and_then(|stream| stream.finished().pop().flatten());
                Ok(format!("{refused}, {:?}", ended.map(|outcome| outcome.success())))
            });
            builder.tool(pushes)
        })
        .await;
        let outcomes = yard.engine.session("s").dispatch(vec![Call::new("1", "pushes", "{}")]).await;
        let seen = if drops { "b not_found, None" } else { "b not_found, Some(true)" };
        assert_eq!(outcomes[0].to_text(), seen);
        let ends = yard.events.ended();
        assert_eq!(ends.last().map(String::as_str), Some("1"), "{ends:?}");
        yard.events.check();
    }
}

/// Hooks that delay every call.
struct Slow;

#[toolyard::async_trait]
impl toolyard::Hooks for Slow {
    async fn on_tool_call(&self, _: &Call, _: &toolyard::Caller<'_>) -> Result<(), toolyard::Abort> {
        ms(5).await;
        Ok(())
    }
}

/// CC-6, I16: finishing a stream long after its calls are quiescent does not end another dispatch made meanwhile: the
/// handler stays parked, and the call it waits for gets the only permit of the tree.
#[tokio::test(start_paused = true)]
async fn a_quiescent_stream_does_not_end_another_dispatch() {
    let yard = yard(|builder, _| {
        let streams = tool_fn(ToolSpec::write("streams"), |(): (), cx: ToolContext| async move {
            use toolyard::SubAgents;
            let agent = cx.fork(toolyard::ForkPolicy::default())?;
            let batch = agent.open_batch();
            batch.push(call("x", "read", 5, "ok"));
            ms(50).await;
            let late = async {
                ms(1).await;
                batch.finish().await
            };
            let (first, second) = tokio::join!(agent.dispatch(vec![call("y", "read", 5, "ok")]), late);
            Ok(format!("{}, {}", shape(&first), shape(&second)))
        });
        builder.tool(streams).hooks(Slow)
    })
    .await;
    let options = toolyard::SessionOptions::default().tree_max_in_flight(1);
    let session = yard.engine.session_with("s", options);
    let outcomes = session.dispatch(vec![Call::new("a", "streams", "{}")]).await;
    assert_eq!(outcomes[0].to_text(), "y ok, x ok");
    yard.events.check();
}

/// A `Blocking` executor for paused time: a task that ignores drop and cancel.
struct Tasks;

impl toolyard::Blocking for Tasks {
    fn spawn(&self, job: futures::future::BoxFuture<'static, ()>) {
        tokio::spawn(job);
    }
}

/// CL-3, V2: a stream whose calls all have results ends, although a handler that was given up runs on; a call behind
/// it still waits for that handler, and the stream for the call.
#[tokio::test(start_paused = true)]
async fn a_stream_with_nothing_left_to_start_does_not_wait_for_a_zombie() {
    let yard = yard(|builder, log| {
        let spec = ToolSpec::write("blocks").blocking().timeout(Duration::from_secs(1));
        builder.tool(scripted(spec, log)).blocking(Arc::new(Tasks))
    })
    .await;
    let session = yard.engine.session("s");
    let zombie = || call("z", "blocks", 3_600_000, "ok");
    let (unknown, write) = (|| call("u", "unknown", 0, "ok"), || call("w", "serial", 0, "ok"));
    for (calls, cancelled_after, seconds, expected) in [
        (vec![zombie(), unknown()], None, 1, "z timeout, u not_found"),
        (vec![zombie(), unknown(), write()], None, 31, "z timeout, u not_found, w queue_timeout"),
        (vec![zombie(), unknown(), write()], Some(5_000), 5, "z timeout, u not_found, w cancelled"),
        (vec![zombie(), write(), unknown()], Some(5_000), 5, "z timeout, w cancelled, u not_found"),
    ] {
        let (from, batch) = (Instant::now(), session.open_batch());
        for call in calls {
            batch.push(call);
            tokio::task::yield_now().await;
        }
        let cancel = async {
            if let Some(after) = cancelled_after {
                ms(after).await;
                assert!(session.cancel_call("w"));
            }
        };
        let (outcomes, ()) = tokio::join!(batch.finish(), cancel);
        assert_eq!((shape(&outcomes).as_str(), from.elapsed().as_secs()), (expected, seconds));
        ms(7_200_000).await;
    }
    yard.events.check();
}

/// CL-3, CL-5: the first call of a run is refused while the run before it still runs; the rest of the run, which comes
/// in another piece, waits for that run all the same.
#[tokio::test(start_paused = true)]
async fn a_run_that_begins_with_a_denied_call_waits_for_the_run_before() {
    struct DeniesOne;
    #[toolyard::async_trait]
    impl toolyard::Approver for DeniesOne {
        async fn ask(&self, request: &toolyard::ApprovalRequest) -> toolyard::Answer {
            ms(20).await;
            match request.call_id().as_str() {
                "denied" => toolyard::Answer::deny("ada"),
                _ => toolyard::Answer::allow("ada"),
            }
        }
    }
    let yard = yard(|builder, _| builder.approver(DeniesOne).confirmations(Confirmations::default())).await;
    let batch = yard.engine.session("s").open_batch();
    for (id, tool, lasts) in [
        ("long", "serial", 100),
        ("denied", "concurrent", 5),
        ("later", "concurrent", 5),
        ("last", "read", 5),
    ] {
        batch.push(call(id, tool, lasts, "ok"));
        ms(1).await;
    }
    assert_eq!(shape(&batch.finish().await), "long ok, denied user_denied, later ok, last ok");
    assert_eq!(yard.log.spans(), ["long 20..120", "later 120..125", "last 125..130"]);
    yard.events.check();
}

/// CL-4, CL-5: who follows an open batch is told of each call once, when it has ended: also of one that was refused, and of
/// those that are pushed later.
#[tokio::test(start_paused = true)]
async fn each_end_is_told_when_it_comes() {
    let yard = plain().await;
    let batch = yard.engine.session("s").open_batch();
    let (mut ends, from) = (batch.ends(), Instant::now());
    batch.push(call("slow", "read", 50, "ok"));
    batch.push(call("fast", "read", 10, "fail"));
    batch.push(call("none", "no_such_tool", 0, "ok"));
    let mut told = Vec::new();
    let mut next = async |told: &mut Vec<String>| {
        let (at, outcome) = ends.next().await;
        told.push(format!("{at} {} {}", shape(&[outcome]), from.elapsed().as_millis()));
    };
    for _ in 0..2 {
        next(&mut told).await;
    }
    batch.push(call("late", "serial", 5, "ok"));
    assert!(tokio::time::timeout(Duration::from_millis(20), next(&mut told)).await.is_err());
    for _ in 0..2 {
        next(&mut told).await;
    }
    assert_eq!(told, ["2 none not_found 0", "1 fast execution_error 10", "0 slow ok 50", "3 late ok 55"]);
    assert_eq!(batch.finish().await.len(), 4);
    yard.events.check();
}

/// CC-4, CL-5: outputs that are given away one by one hold nothing afterwards, however long the batch stays open; the rest of
/// the batch goes on as it would.
#[tokio::test(start_paused = true)]
async fn outputs_that_are_given_away_hold_nothing() {
    let mut limits = toolyard::Limits::default();
    limits.results_batch_bytes_max = 64 << 10;
    for takes in [true, false] {
        let large =
            tool_fn(ToolSpec::read("large"), |(): (), _: ToolContext| async { Ok("x".repeat(20 << 10)) });
        let yard = yard(|builder, _| builder.limits(limits).tool(large)).await;
        let batch = yard.engine.session("s").open_batch();
        let mut ends = if takes { batch.take_ends() } else { batch.ends() };
        batch.push(call("long", "read", 1_000, "ok"));
        let mut failed = 0;
        for n in 0..20 {
            batch.push(Call::new(format!("{n}").as_str(), "large", "{}"));
            failed += usize::from(!ends.next().await.1.success());
        }
        assert_eq!(failed > 0, !takes, "{failed} failed");
        assert_eq!(shape(&[ends.next().await.1]), "long ok");
        assert_eq!(batch.finish().await.len(), if takes { 0 } else { 21 });
        yard.events.check();
    }
}
