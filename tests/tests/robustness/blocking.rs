//! Blocking handlers whose threads are late, lost or never released (SC-6, V2).

use crate::{SECOND, Tasks, no_hang, soon};
use futures::future::BoxFuture;
use serde_json::Value;
use std::{
    future::Future,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;
use toolyard::{
    Blocking, Call, Effect, Engine, ErrorKind, Event, EventWriter, Limits, PoolWidths, Reason, Tool,
    ToolClass, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait, from_fn, tool_fn,
};
use toolyard_tests::{Number, Yard, call, scripted, shape, yard};

async fn yard_on(blocking: impl Blocking + 'static) -> Yard {
    yard(|builder, log| {
        let spec = ToolSpec::write("blocks").blocking().timeout(SECOND);
        builder.tool(scripted(spec, log)).blocking(Arc::new(blocking))
    })
    .await
}

/// SC-3: a job dropped by its executor ends its call as `internal` at once and releases its lease.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_dropped_is_internal() {
    struct Drops;
    impl Blocking for Drops {
        fn spawn(&self, _: BoxFuture<'static, ()>) {}
    }
    let yard = yard_on(Drops).await;
    let session = yard.engine.session("s");
    let from = Instant::now();
    let outcomes =
        no_hang(session.dispatch(vec![call("b", "blocks", 0, "ok"), call("s", "serial", 0, "ok")])).await;
    assert_eq!(shape(&outcomes), "b internal, s ok");
    assert_eq!(from.elapsed(), Duration::ZERO, "nothing is left to wait for");
    assert_eq!(outcomes[0].error().unwrap().effect, Effect::Unknown);
    yard.events.check();
}

/// An executor that takes jobs up five seconds late.
struct Busy;

impl Blocking for Busy {
    fn spawn(&self, job: BoxFuture<'static, ()>) {
        tokio::spawn(async {
            tokio::time::sleep(5 * SECOND).await;
            job.await;
        });
    }
}

/// V4, SC-3, SC-6: a call that no thread took up within its timeout has not started: it holds nothing any more, it is
/// no zombie, its key may be used again, and its job does nothing when a thread is free.
#[tokio::test(start_paused = true)]
async fn a_job_that_no_thread_takes_up_is_not_started() {
    let yard = yard_on(Busy).await;
    let session = yard.engine.session("s");
    let from = Instant::now();
    for attempt in 0..6 {
        let mut made = call("b", "blocks", 0, "ok");
        made.idempotency_key = Some("k".into());
        let late = no_hang(session.call(made)).await;
        let error = late.error().unwrap();
        assert_eq!((error.kind, error.effect), (ErrorKind::QueueTimeout, Effect::NotStarted), "{attempt}");
        assert_eq!(late.attempts, 0);
    }
    assert_eq!(
        from.elapsed(),
        6 * SECOND,
        "no breaker opened, no tombstone is kept, and no zombie is waited for"
    );
    assert!(no_hang(session.call(call("s", "serial", 0, "ok"))).await.success());
    assert_eq!(from.elapsed(), 6 * SECOND, "the lease came back at once");
    tokio::time::sleep(3600 * SECOND).await;
    assert_eq!(yard.log.started(), ["s"]);
    yard.events.check();
}

/// SC-4: a call whose handler no thread has taken up ends at once when it is cancelled, and its deadline ends it too.
#[tokio::test(start_paused = true)]
async fn a_job_that_no_thread_has_taken_up_is_withdrawn() {
    let yard = yard_on(Busy).await;
    let session = yard.engine.session("s");
    let from = Instant::now();
    let cancel = async {
        tokio::time::sleep(SECOND / 2).await;
        session.cancel_calls();
    };
    let (outcomes, _) = tokio::join!(session.dispatch(vec![call("c", "blocks", 0, "ok")]), cancel);
    assert_eq!(shape(&outcomes), "c cancelled");
    assert_eq!(outcomes[0].error().unwrap().effect, Effect::NotStarted);
    assert_eq!(from.elapsed(), SECOND / 2, "it has no grace to wait for");
    let late = session.call(call("d", "blocks", 0, "ok").deadline(SECOND / 2)).await;
    let error = late.error().unwrap();
    assert_eq!((error.kind, error.effect), (ErrorKind::DeadlineExceeded, Effect::NotStarted));
    tokio::time::sleep(3600 * SECOND).await;
    assert!(yard.log.started().is_empty());
    yard.events.check();
}

/// CC-1, V3: a blocking call waits in line for a thread, where its attempt's clock does not run, and takes nothing
/// while it waits.
#[tokio::test(start_paused = true)]
async fn a_blocking_call_waits_in_line_for_a_thread() {
    let yard = yard(|builder, log| {
        let spec = ToolSpec::read("blocks").blocking().timeout(SECOND);
        let mut limits = Limits::default();
        limits.blocking_threads_max = 1;
        let widths = PoolWidths::new(4, 1);
        builder.limits(limits).pools(widths).tool(scripted(spec, log)).blocking(Arc::new(Tasks))
    })
    .await;
    let session = yard.engine.session("s");
    let blocks: Vec<_> = (0..5).map(|n| call(&format!("b{n}"), "blocks", 900, "ok")).collect();
    let reads = async {
        tokio::time::sleep(SECOND / 2).await;
        let from = Instant::now();
        let reads = (0..3).map(|n| call(&format!("r{n}"), "read", 10, "ok")).collect::<Vec<_>>();
        assert!(session.dispatch(reads).await.iter().all(toolyard::Outcome::success));
        from.elapsed()
    };
    let from = Instant::now();
    let (outcomes, reads) = tokio::join!(session.dispatch(blocks), reads);
    assert!(outcomes.iter().all(toolyard::Outcome::success), "{}", shape(&outcomes));
    assert_eq!(from.elapsed(), SECOND * 9 / 2, "one after the other");
    assert_eq!(reads, SECOND / 100, "those that wait for the thread hold no place among the reads");
    yard.events.check();
}

/// SC-6: a handler that was given up keeps its thread, so the calls behind it wait for that.
#[tokio::test(start_paused = true)]
async fn a_zombie_keeps_its_thread() {
    let yard = yard(|builder, log| {
        let spec = ToolSpec::read("blocks").blocking().timeout(SECOND);
        let mut limits = Limits::default();
        limits.blocking_threads_max = 1;
        builder.limits(limits).tool(scripted(spec, log)).blocking(Arc::new(Tasks))
    })
    .await;
    let session = yard.engine.session("s");
    let from = Instant::now();
    assert_eq!(shape(&[session.call(call("z", "blocks", 10_000, "ok")).await]), "z timeout");
    assert!(session.call(call("b", "blocks", 0, "ok")).await.success());
    assert_eq!(from.elapsed(), 10 * SECOND);
    yard.events.check();
}

/// A blocking tool that calls itself as many times as its argument says.
fn chain() -> impl ToolFactory {
    tool_fn(ToolSpec::read("chain").blocking(), |Number { n: more }, cx: ToolContext| async move {
        if more == 0 {
            return Ok("the innermost".to_owned());
        }
        let outcomes = cx.dispatch(vec![Call::new("in", "chain", Number { n: more - 1 })]).await;
        Ok(outcomes[0].to_text())
    })
}

/// An engine with so many threads on a runtime that has one of its own to lend.
async fn on_threads(threads: usize, parked: usize) -> Engine {
    let mut limits = Limits::default();
    (limits.blocking_threads_max, limits.parked_blocking_max) = (threads, parked);
    limits.nested_depth_max = 10_000;
    Engine::builder().limits(limits).tool(chain()).build().await.unwrap()
}

/// Runs a test on real threads and real time.
fn on_real_threads(test: impl Future<Output = ()>) {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder.worker_threads(2).max_blocking_threads(1).enable_all().build().unwrap();
    runtime.block_on(soon(test));
    runtime.shutdown_background();
}

/// CC-6: a parked blocking handler gives its place among the threads back: a chain much deeper than there are threads
/// comes to its end, and so do many agents side by side.
#[test]
fn parked_blocking_handlers_starve_nobody() {
    on_real_threads(async {
        let engine = on_threads(2, 1_000).await;
        let deep = engine.session("s").call(Call::new("out", "chain", Number { n: 600 })).await;
        assert_eq!(deep.to_text(), "the innermost");
        let agents = (0..52).map(|agent| {
            let session = engine.session(format!("agent {agent}"));
            let batch: Vec<_> =
                (0..10).map(|n| Call::new(format!("c{n}"), "chain", Number { n: 1 })).collect();
            async move { session.dispatch(batch).await }
        });
        for outcomes in futures::future::join_all(agents).await {
            assert!(outcomes.iter().all(|outcome| outcome.to_text() == "the innermost"));
        }
    });
}

/// CC-4: parked blocking handlers keep their threads, so they are bounded: beyond that, what a handler dispatches and
/// has to wait is `overloaded`.
#[tokio::test(start_paused = true)]
async fn too_many_parked_blocking_handlers_are_overloaded() {
    let mut limits = Limits::default();
    (limits.blocking_threads_max, limits.parked_blocking_max) = (1, 3);
    let engine = Engine::builder().limits(limits).tool(chain()).blocking(Arc::new(Tasks));
    let engine = engine.build().await.unwrap();
    let session = engine.session("s");
    for _ in 0..2 {
        let fits = session.call(Call::new("out", "chain", Number { n: 3 })).await;
        assert_eq!(fits.to_text(), "the innermost");
        let deeper = session.call(Call::new("out", "chain", Number { n: 4 })).await;
        assert!(deeper.to_text().contains("too many handlers are waiting"), "{}", deeper.to_text());
    }
}

/// OB-3: a writer of events has a thread of its own. It does not wait until a handler's is free: here one handler is
/// parked and one waits for the writer, which is as many as there are.
#[test]
fn a_writer_of_events_does_not_wait_for_handlers() {
    struct Tells(std::sync::mpsc::Sender<()>);
    impl EventWriter for Tells {
        fn write(&mut self, event: &Event) -> std::io::Result<()> {
            if event.kind.name() == "tool.output_delta" {
                let _ = self.0.send(());
            }
            Ok(())
        }
    }
    on_real_threads(async {
        let (tell, told) = std::sync::mpsc::channel();
        let told = Arc::new(Mutex::new(told));
        let parks = tool_fn(ToolSpec::read("parks").blocking(), |_: Value, cx: ToolContext| async move {
            Ok(cx.dispatch(vec![Call::new("in", "waits", "{}")]).await[0].to_text())
        });
        let waits = tool_fn(ToolSpec::read("waits").blocking(), move |_: Value, cx: ToolContext| {
            let told = told.clone();
            async move {
                cx.emit("here");
                told.lock().unwrap().recv().unwrap();
                Ok("its event is written")
            }
        });
        let mut limits = Limits::default();
        (limits.blocking_threads_max, limits.parked_blocking_max) = (1, 1);
        let builder = Engine::builder().limits(limits).tool(parks).tool(waits).event_writer(Tells(tell));
        let engine = builder.build().await.unwrap();
        let outcome = engine.session("s").call(Call::new("out", "parks", "{}")).await;
        assert_eq!(outcome.to_text(), "its event is written");
    });
}

/// V2, CL-3: a batch with nothing left to start does not wait for a zombie.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_batch_does_not_wait_for_zombies() {
    let yard = yard_on(Tasks).await;
    let from = Instant::now();
    let batch = vec![call("z", "blocks", 3_600_000, "ok"), call("u", "unknown", 0, "ok")];
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert_eq!(shape(&outcomes), "z timeout, u not_found");
    assert_eq!(from.elapsed(), SECOND);
    tokio::time::sleep(7200 * SECOND).await;
    yard.events.check();
}

/// V2, CL-3: a batch whose waiting calls are all answered meanwhile does not go on waiting for a zombie.
#[tokio::test(start_paused = true)]
async fn a_batch_that_is_answered_stops_waiting_for_a_zombie() {
    let yard = yard_on(Tasks).await;
    let session = yard.engine.session("s");
    let cancel = async {
        for id in ["w", "r"] {
            tokio::time::sleep(5 * SECOND).await;
            assert!(session.cancel_call(id));
        }
    };
    let from = Instant::now();
    let batch =
        vec![call("z", "blocks", 3_600_000, "ok"), call("w", "serial", 0, "ok"), call("r", "read", 0, "ok")];
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), cancel) }).await;
    assert_eq!(shape(&outcomes), "z timeout, w cancelled, r cancelled");
    assert_eq!(from.elapsed(), 10 * SECOND);
    tokio::time::sleep(7200 * SECOND).await;
    yard.events.check();
}

/// SC-5, SC-6: a cancelled batch waits for the grace of its handlers, but not for zombies.
#[tokio::test(start_paused = true)]
async fn a_cancelled_batch_does_not_wait_for_zombies() {
    let yard = yard(|builder, log| {
        let spec = ToolSpec::write("blocks").blocking().timeout(600 * SECOND);
        builder.tool(scripted(spec, log)).blocking(Arc::new(Tasks))
    })
    .await;
    let session = yard.engine.session("s");
    let cancel = async {
        tokio::time::sleep(SECOND).await;
        session.cancel();
    };
    let from = Instant::now();
    let batch = vec![call("z", "blocks", 3_600_000, "ok"), call("w", "serial", 0, "ok")];
    let (outcomes, ()) = tokio::join!(session.dispatch(batch), cancel);
    assert_eq!(shape(&outcomes), "z cancelled, w cancelled");
    assert_eq!(from.elapsed(), 31 * SECOND);
    let effects = outcomes.iter().map(|outcome| outcome.error().unwrap().effect).collect::<Vec<_>>();
    assert_eq!(effects, [Effect::Unknown, Effect::NotStarted]);
    tokio::time::sleep(7200 * SECOND).await;
    yard.events.check();
}

/// SC-1: the timeout of one call does not affect its siblings.
#[tokio::test(start_paused = true)]
async fn a_timeout_reaches_no_sibling() {
    let yard = yard(|builder, log| {
        let blocks = ToolSpec::read("blocks").blocking().timeout(SECOND);
        builder.tool(scripted(blocks, log)).blocking(Arc::new(Tasks))
    })
    .await;
    let batch = vec![
        call("hangs", "read", 0, "hang").timeout(SECOND),
        call("blocks", "blocks", 0, "polite"),
        call("goes on", "read", 5000, "ok"),
    ];
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert_eq!(shape(&outcomes), "hangs timeout, blocks timeout, goes on ok");
    assert!(!outcomes[2].cancel_requested);
    assert_eq!(yard.log.running(), 0, "the blocking handler saw its own timeout");
    yard.events.check();
}

/// A handler that blocks its thread until the test releases it.
struct Blocks(Arc<Mutex<std::sync::mpsc::Receiver<()>>>);

#[async_trait]
impl Tool for Blocks {
    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let _ = self.0.lock().unwrap().recv();
        Ok("late".into())
    }
}

/// T4, SC-6, CL-3: a blocking handler cannot dodge its timeout; as a zombie it keeps its class permit until it ends,
/// so the next serial call waits for it.
#[tokio::test]
async fn a_blocking_handler_does_not_dodge_its_timeout() {
    let (release, wait) = std::sync::mpsc::channel();
    let wait = Arc::new(Mutex::new(wait));
    let spec = ToolSpec::write("blocks").blocking().timeout(Duration::from_millis(20));
    let yard = yard(|builder, _| builder.tool(from_fn(spec, move || Blocks(wait.clone())))).await;
    let session = yard.engine.session("s");
    // On a busy machine no thread may be free within the timeout; then nothing has run.
    let kind = loop {
        let outcome = session.call(call("b", "blocks", 0, "ok")).await;
        match outcome.error().unwrap().kind {
            ErrorKind::QueueTimeout => assert_eq!(outcome.attempts, 0),
            kind => break kind,
        }
    };
    assert_eq!(kind, ErrorKind::Timeout);
    let serial = || async { yard.engine.status().await.unwrap()[ToolClass::Serial].running };
    assert_eq!(serial().await, 1, "the zombie keeps the serial lease");
    assert!(session.call(call("r", "read", 0, "ok")).await.success(), "reads of the session go on");
    release.send(()).unwrap();
    let mut events = yard.engine.subscribe();
    assert!(session.call(call("s", "serial", 0, "ok")).await.success(), "the lease came back");
    drop(release);
    while yard.events.of_call("b").last() != Some(&"dispatch.late_result") {
        events.next().await;
    }
    yard.events.check();
}

/// CL-3: a run whose handlers do not stop within 30 s ends the batch: the rest is `queue_timeout`, not started.
#[tokio::test(start_paused = true)]
async fn a_zombie_ends_the_batch_after_thirty_seconds() {
    let yard = yard_on(Tasks).await;
    let session = yard.engine.session("s");
    let from = Instant::now();
    let batch =
        vec![call("z", "blocks", 3_600_000, "ok"), call("w", "serial", 0, "ok"), call("r", "read", 0, "ok")];
    let outcomes = session.dispatch(batch).await;
    assert_eq!(from.elapsed(), 31 * SECOND);
    assert_eq!(shape(&outcomes), "z timeout, w queue_timeout, r queue_timeout");
    assert_eq!(outcomes[1].error().unwrap().reason, Some(Reason::Zombie));
    let short = vec![call("z", "blocks", 11_000, "ok"), call("r", "read", 0, "ok")];
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let from = Instant::now();
    assert_eq!(shape(&session.dispatch(short).await), "z timeout, r ok");
    assert_eq!(from.elapsed(), 11 * SECOND, "the next run begins when the handler has stopped");
    yard.events.check();
}

/// V3: a call that waits only for permits held by a zombie waits 30 s, whether it came before or after the timeout; a
/// call whose permits become free in time runs.
#[tokio::test(start_paused = true)]
async fn no_call_waits_forever_behind_a_zombie() {
    let yard = yard_on(Tasks).await;
    let session = yard.engine.session("s");
    let from = Instant::now();
    let at = |seconds: u64, id: &'static str| {
        let session = session.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            let outcome = session.call(call(id, "serial", 0, "ok")).await;
            (shape(&[outcome]), from.elapsed().as_secs())
        }
    };
    let zombie = session.call(call("z", "blocks", 50_000, "ok"));
    let (_, before, after, late) = tokio::join!(zombie, at(0, "before"), at(5, "after"), at(45, "late"));
    assert_eq!(before, ("before queue_timeout".to_owned(), 31));
    assert_eq!(after, ("after queue_timeout".to_owned(), 35));
    assert_eq!(late, ("late ok".to_owned(), 50));
    yard.events.check();
}

/// The level and message of every log line of the engine.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl tracing::Subscriber for Lines {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_event() && *metadata.level() <= tracing::Level::WARN
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, event: &tracing::Event<'_>) {
        struct Message(String);
        impl tracing::field::Visit for Message {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                match field.name() {
                    "message" => self.0 += &format!("{value:?}"),
                    name => self.0 += &format!("{name}={value:?} "),
                }
            }
        }
        let mut message = Message(format!("{} ", event.metadata().level()));
        event.record(&mut message);
        self.0.lock().unwrap().push(message.0);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

/// SC-5, SC-6: a handler that is abandoned after its grace is logged as a warning that names its tool, and so is one
/// that cannot be dropped and runs on; a handler that stops in time is not.
#[tokio::test(start_paused = true)]
async fn an_abandoned_handler_is_a_warning() {
    let lines = Lines::default();
    let _listening = toolyard_tests::listen(lines.clone());
    let yard = yard_on(Tasks).await;
    let session = yard.engine.session("s");
    for (tool, end, warnings) in [
        ("read", "polite", vec![]),
        ("read", "deaf", vec!["a cancelled handler did not stop and was abandoned"]),
        ("blocks", "deaf", vec!["an abandoned handler is still running"]),
    ] {
        let cancel = async {
            tokio::time::sleep(Duration::from_millis(500)).await;
            assert!(session.cancel_call("a"));
        };
        let (outcome, ()) =
            no_hang(async { tokio::join!(session.call(call("a", tool, 0, end)), cancel) }).await;
        assert!(!outcome.success());
        tokio::task::yield_now().await;
        let logged = std::mem::take(&mut *lines.0.lock().unwrap());
        let (said, of): (Vec<_>, Vec<_>) = logged.iter().map(|line| (line, line.contains(tool))).unzip();
        assert!(of.into_iter().all(|names_it| names_it), "{said:?}");
        for warning in &warnings {
            assert!(
                said.iter().any(|line| line.starts_with("WARN") && line.contains(warning)),
                "{end}: {said:?}"
            );
        }
        assert!(
            said.iter().all(|line| line.starts_with("WARN")) && said.is_empty() == warnings.is_empty(),
            "{said:?}"
        );
    }
}
