//! Blocking handlers whose threads are late, lost or never released (SC-6, V2).

use crate::{SECOND, Tasks, no_hang};
use futures::future::BoxFuture;
use serde_json::Value;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::Instant;
use toolyard::{
    Blocking, Effect, ErrorKind, Reason, Tool, ToolClass, ToolContext, ToolError, ToolOutput, ToolSpec,
    async_trait, from_fn,
};
use toolyard_tests::{Yard, call, scripted, shape, yard};

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

/// SC-3, SC-6: a job whose thread becomes free after its call has ended does not run, and its lease comes back.
#[tokio::test(start_paused = true)]
async fn a_job_started_too_late_does_not_run() {
    struct Busy;
    impl Blocking for Busy {
        fn spawn(&self, job: BoxFuture<'static, ()>) {
            tokio::spawn(async {
                tokio::time::sleep(5 * SECOND).await;
                job.await;
            });
        }
    }
    let yard = yard_on(Busy).await;
    let session = yard.engine.session("s");
    let late = no_hang(session.call(call("b", "blocks", 0, "ok"))).await;
    assert_eq!(shape(&[late]), "b timeout");
    let from = Instant::now();
    assert!(no_hang(session.call(call("s", "serial", 0, "ok"))).await.success());
    assert_eq!(from.elapsed(), 4 * SECOND, "the lease is free once the job is dropped");
    assert_eq!(yard.log.started(), ["s"]);
    yard.events.check();
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
    let outcome = session.call(call("b", "blocks", 0, "ok")).await;
    assert_eq!(outcome.error().unwrap().kind, ErrorKind::Timeout);
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
