//! Event writers that are slow, stuck or broken (OB-3, PO-6).

use crate::{SECOND, Tasks, no_hang, soon};
use futures::future::BoxFuture;
use std::{
    io,
    sync::{Arc, Mutex},
};
use tokio::sync::watch;
use toolyard::{
    Call, Caller, Drain, EngineBuilder, ErrorKind, Event, EventKind, EventWriter, Hooks, Limits, Outcome,
    PoolWidths, Reason, Received, Tool, ToolContext, ToolError, ToolOutput, ToolSettings, ToolSpec,
    async_trait, from_fn,
};
use toolyard_tests::{Yard, call, event_faults, shape, tries, yard};

/// A writer that keeps the events.
#[derive(Clone, Default)]
struct Written {
    events: Arc<Mutex<Vec<Event>>>,
    flushed: Arc<Mutex<usize>>,
}

impl EventWriter for Written {
    fn write(&mut self, event: &Event) -> io::Result<()> {
        self.events.lock().unwrap().push(event.clone());
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        *self.flushed.lock().unwrap() = self.events.lock().unwrap().len();
        Ok(())
    }
}

impl Written {
    /// The events after the first one, which says that a new life of the log begins and is for writers only (OB-1).
    fn of_engine(&self) -> Vec<Event> {
        let mut events = self.events.lock().unwrap().clone();
        let begin = events.remove(0);
        assert!(matches!(begin.kind, EventKind::EngineStarted { .. }) && begin.seq == 0, "{begin:?}");
        events
    }

    fn names(&self) -> Vec<&'static str> {
        self.events.lock().unwrap().iter().map(|event| event.kind.name()).collect()
    }

    /// Checks that every event is written and flushed, in order, and none is missing (I1, I2).
    fn check(&self) {
        let events = self.events.lock().unwrap();
        let faults = event_faults(events.iter(), true);
        assert!(faults.is_empty(), "{}", faults.join("\n"));
        assert_eq!(*self.flushed.lock().unwrap(), events.len());
    }
}

/// A writer that fails at its n-th event with an error or a panic.
struct Fails {
    at: usize,
    panics: bool,
}

impl EventWriter for Fails {
    fn write(&mut self, _: &Event) -> io::Result<()> {
        self.at -= 1;
        match self.at {
            0 if self.panics => panic!("scripted panic"),
            0 => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

/// Blocking threads that start no job before they are released.
#[derive(Clone)]
struct Stuck(watch::Sender<bool>);

impl Stuck {
    fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    fn release(&self) {
        self.0.send_replace(true);
    }
}

impl toolyard::Blocking for Stuck {
    fn spawn(&self, job: BoxFuture<'static, ()>) {
        let mut free = self.0.subscribe();
        tokio::spawn(async move {
            free.wait_for(|free| *free).await.unwrap();
            job.await;
        });
    }
}

fn limits(events: usize) -> Limits {
    let mut limits = Limits::default();
    limits.events_queue_max = events;
    limits
}

/// Streams as many times as its argument says, once a second.
struct Streams;

#[async_trait]
impl Tool for Streams {
    async fn execute(&self, args: &serde_json::Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        for _ in 0..args["times"].as_u64().unwrap_or_default() {
            cx.emit("x");
            tokio::time::sleep(SECOND).await;
        }
        Ok("done".into())
    }
}

/// An engine with a stuck writer and a queue that one running call fills: opened, started, received, called, attempt.
async fn stuck(change: impl FnOnce(EngineBuilder) -> EngineBuilder) -> (Yard, Stuck, Written) {
    let (stuck, written) = (Stuck::new(), Written::default());
    let yard = {
        let (stuck, written) = (stuck.clone(), written.clone());
        yard(|builder, _| {
            let streams = from_fn(ToolSpec::read("streams"), || Streams);
            let builder = builder.blocking(Arc::new(stuck)).event_writer(written).tool(streams);
            change(builder.limits(limits(5)))
        })
        .await
    };
    (yard, stuck, written)
}

fn ending(outcome: &Outcome) -> (ErrorKind, Option<Reason>, u32) {
    let error = outcome.error().unwrap();
    (error.kind, error.reason, outcome.attempts)
}

/// OB-3: a full queue holds back new calls, which hold no permit, but not running ones, whose events are not lost.
/// The new calls start when there is room.
#[tokio::test(start_paused = true)]
async fn a_full_queue_holds_new_calls_back() {
    let one = 1;
    let (yard, stuck, written) = stuck(|builder| builder.pools(PoolWidths::new(one, one))).await;
    let session = yard.engine.session("s");
    let running = tokio::spawn({
        let (session, call) = (session.clone(), Call::new("a", "streams", serde_json::json!({"times": 8})));
        async move { session.call(call).await }
    });
    tokio::time::sleep(SECOND / 2).await;
    let waiting = tokio::spawn({
        let session = session.clone();
        async move { session.dispatch(vec![call("b", "read", 0, "ok"), call("c", "serial", 0, "ok")]).await }
    });
    tokio::time::sleep(10 * SECOND).await;
    assert!(running.is_finished() && !waiting.is_finished());
    assert!(yard.log.started().is_empty());
    let pools = yard.engine.status().await.unwrap();
    assert!(pools.pools.iter().all(|pool| pool.running == 0 && pool.queued == 0), "{pools:?}");
    stuck.release();
    let outcomes = no_hang(waiting).await.unwrap();
    assert_eq!(shape(&outcomes), "b ok, c ok");
    assert_eq!(outcomes[0].queued(), 10 * SECOND);
    assert!(running.await.unwrap().success());
    drop(session);
    yard.engine.shutdown(Drain::default()).await;
    let deltas = written.names().into_iter().filter(|name| *name == "tool.output_delta").count();
    assert_eq!(deltas, 8);
    assert_eq!(written.of_engine(), yard.events.events());
    written.check();
}

/// OB-3: a call ends after 30 s without room; its deadline, a cancel or a shutdown may end it earlier.
#[tokio::test(start_paused = true)]
async fn a_call_waits_30_s_for_queue_room() {
    let (yard, stuck, written) = stuck(|builder| builder).await;
    let session = yard.engine.session("s");
    session.call(call("first", "read", 0, "ok")).await;
    let began = tokio::time::Instant::now();
    let hurried = call("hurried", "read", 0, "ok").deadline(5 * SECOND);
    assert_eq!(ending(&session.call(hurried).await).0, ErrorKind::DeadlineExceeded);
    assert_eq!(began.elapsed(), 5 * SECOND);
    let outcomes = session.dispatch(vec![call("a", "read", 0, "ok"), call("b", "read", 0, "ok")]).await;
    assert_eq!(began.elapsed(), 35 * SECOND);
    for outcome in &outcomes {
        assert_eq!(ending(outcome), (ErrorKind::Internal, Some(Reason::Sink), 0));
        assert_eq!(outcome.error().unwrap().effect, toolyard::Effect::NotStarted);
    }
    let turn = session.turn();
    let mut cancelled = Box::pin(turn.dispatch(vec![call("c", "read", 0, "ok")]));
    assert!(futures::poll!(&mut cancelled).is_pending());
    turn.cancel();
    assert_eq!(shape(&cancelled.as_mut().await), "c cancelled");
    drop(cancelled);
    assert_eq!(began.elapsed(), 35 * SECOND);
    stuck.release();
    assert!(session.call(call("last", "read", 0, "ok")).await.success());
    assert_eq!(yard.log.started(), ["first", "last"]);
    drop((turn, session));
    yard.engine.shutdown(Drain::default()).await;
    written.check();
}

/// OB-3, SC-8: a drain ends calls that wait for room; it waits 10 s for a writer that never writes.
#[tokio::test(start_paused = true)]
async fn a_drain_ends_calls_waiting_for_queue_room() {
    let (yard, _stuck, written) = stuck(|builder| builder).await;
    let session = yard.engine.session("s");
    session.call(call("first", "read", 0, "ok")).await;
    let waiting = tokio::spawn(async move { session.call(call("a", "read", 0, "ok")).await });
    tokio::time::sleep(SECOND).await;
    let began = tokio::time::Instant::now();
    yard.engine.shutdown(Drain::default()).await;
    assert_eq!(began.elapsed(), 10 * SECOND);
    assert_eq!(ending(&waiting.await.unwrap()).0, ErrorKind::ShuttingDown);
    assert!(!yard.engine.events_written().await && written.names().is_empty());
}

/// PO-6: with a broken writer, no call with side effects runs, not even one that waits for its permits; reads do.
#[tokio::test(start_paused = true)]
async fn a_broken_writer_stops_calls_with_side_effects() {
    for panics in [false, true] {
        // Opened, started, received, called, attempt; started, received; the writer fails as the third turn starts.
        let writer = Fails { at: 8, panics };
        let yard = yard(|builder, _| builder.blocking(Arc::new(Tasks)).event_writer(writer)).await;
        let session = yard.engine.session("s");
        let running = session.dispatch(vec![call("a", "serial", 1000, "ok")]);
        let in_line = session.dispatch(vec![call("b", "serial", 0, "ok")]);
        let breaks = async {
            tokio::time::sleep(SECOND / 2).await;
            session.dispatch(vec![call("c", "read", 0, "ok"), call("d", "serial", 0, "ok")]).await
        };
        let (running, in_line, rest) = tokio::join!(running, in_line, breaks);
        assert_eq!(
            [&running, &in_line, &rest].map(|it| shape(it)),
            ["a ok", "b internal", "c ok, d internal"]
        );
        let refused = (ErrorKind::Internal, Some(Reason::Sink), 0);
        assert_eq!((ending(&in_line[0]), ending(&rest[1])), (refused, refused));
        assert_eq!(yard.log.started(), ["a", "c"]);
        drop(session);
        yard.engine.shutdown(Drain::default()).await;
        yard.events.check();
    }
}

/// Delays the start of serial calls.
struct SlowStart;

#[async_trait]
impl Hooks for SlowStart {
    async fn on_tool_start(&self, call: &Call, _: &Caller<'_>) {
        if &*call.name == "serial" {
            tokio::time::sleep(SECOND).await;
        }
    }
}

/// PO-6: if the writer breaks while a call waits for a rate token, for the hook before its permits, or for a flight
/// that it takes over, the call does not start.
#[tokio::test(start_paused = true)]
async fn a_writer_that_breaks_stops_waiting_calls() {
    let rate = |builder: EngineBuilder| {
        let rate = Some("1/3s".parse().unwrap());
        builder.tool_config("serial", ToolSettings { rate, ..ToolSettings::default() })
    };
    let hook = |builder: EngineBuilder| builder.hooks(SlowStart);
    let waits: [&dyn Fn(EngineBuilder) -> EngineBuilder; 2] = [&rate, &hook];
    for change in waits {
        // Opened; started, received, called, attempt, completed, ended; twice started and received; the writer fails
        // at the next.
        let writer = Fails { at: 12, panics: false };
        let yard = yard(|builder, _| change(builder.blocking(Arc::new(Tasks)).event_writer(writer))).await;
        let session = yard.engine.session("s");
        session.call(call("first", "serial", 0, "ok")).await;
        let keyed = |id: &str| {
            let mut call = call(id, "serial", 0, "ok");
            call.idempotency_key = Some("k".into());
            call
        };
        let (one, two) = (session.turn(), session.turn());
        let leads = one.dispatch(vec![keyed("leads")]);
        let follows = two.dispatch(vec![keyed("follows")]);
        let breaks = async {
            tokio::time::sleep(SECOND / 2).await;
            session.call(call("breaks", "read", 0, "ok")).await;
        };
        let (leads, follows, ()) = no_hang(async { tokio::join!(leads, follows, breaks) }).await;
        for outcome in leads.iter().chain(&follows) {
            assert_eq!(ending(outcome), (ErrorKind::Internal, Some(Reason::Sink), 0));
        }
        assert_eq!(yard.log.started(), ["first", "breaks"]);
        yard.events.check();
    }
}

/// PO-6: a call with side effects is not retried if its writer broke meanwhile; its result has the attempt's error.
#[tokio::test(start_paused = true)]
async fn a_writer_that_breaks_between_attempts_stops_the_next() {
    // Opened; started, received, called, attempt, retry; the writer fails at the first event of the other read.
    let writer = Fails { at: 7, panics: false };
    let yard = yard(|builder, _| builder.blocking(Arc::new(Tasks)).event_writer(writer)).await;
    let (session, beside) = (yard.engine.session("s"), yard.engine.session("s"));
    let breaks = async {
        tokio::time::sleep(SECOND / 20).await;
        beside.call(call("breaks", "read", 0, "ok")).await;
    };
    let twice = session.dispatch(vec![tries("w", "serial", 0, &["harmless", "ok"])]);
    let (outcomes, ()) = no_hang(async { tokio::join!(twice, breaks) }).await;
    assert_eq!(ending(&outcomes[0]), (ErrorKind::Internal, Some(Reason::Sink), 1));
    let before = outcomes[0].error().unwrap().last_error.as_ref().map(|error| error.kind);
    assert_eq!(before, Some(ErrorKind::Transient));
    assert_eq!(yard.log.started(), ["w", "breaks"]);
    yard.events.check();
}

/// PO-6, OB-3: a full queue no longer holds calls back once its writer is broken.
#[tokio::test(start_paused = true)]
async fn a_full_queue_releases_calls_if_its_writer_breaks() {
    let stuck = Stuck::new();
    let yard = yard(|builder, _| {
        let builder = builder.blocking(Arc::new(stuck.clone())).limits(limits(5));
        builder.event_writer(Fails { at: 3, panics: false })
    })
    .await;
    let session = yard.engine.session("s");
    session.call(call("first", "read", 0, "ok")).await;
    let mut waiting =
        std::pin::pin!(session.dispatch(vec![call("a", "read", 0, "ok"), call("b", "serial", 0, "ok")]));
    assert!(futures::poll!(&mut waiting).is_pending());
    tokio::time::sleep(SECOND).await;
    stuck.release();
    assert_eq!(shape(&no_hang(waiting).await), "a ok, b internal");
}

/// SC-8: a shutdown writes and flushes every event before it returns, including its own last one; later events are
/// written at once.
#[tokio::test(start_paused = true)]
async fn a_shutdown_writes_everything() {
    let (stuck, written) = (Stuck::new(), Written::default());
    let yard =
        yard(|builder, _| builder.blocking(Arc::new(stuck.clone())).event_writer(written.clone())).await;
    let session = yard.engine.session("s");
    session.call(call("a", "read", 0, "ok")).await;
    assert!(written.names().is_empty());
    let later = async {
        tokio::time::sleep(3 * SECOND).await;
        stuck.release();
    };
    tokio::join!(yard.engine.shutdown(Drain::default()), later);
    assert_eq!(written.of_engine(), yard.events.events());
    let is_stopped = |event: &Event| matches!(event.kind, EventKind::EngineDrain { step } if step == toolyard::event::DrainStep::Stopped);
    assert!(written.events.lock().unwrap().last().is_some_and(is_stopped));
    drop(session);
    assert_eq!(written.names().last(), Some(&"session.closed"));
    written.check();
}

/// OB-3: a dropped engine writes the remaining events, even if its blocking threads are lost.
#[tokio::test(start_paused = true)]
async fn a_dropped_engine_writes_what_is_left() {
    struct Lost;
    impl toolyard::Blocking for Lost {
        fn spawn(&self, _: BoxFuture<'static, ()>) {}
    }
    let written = Written::default();
    let yard = yard(|builder, _| builder.blocking(Arc::new(Lost)).event_writer(written.clone())).await;
    yard.engine.session("s").call(call("a", "read", 0, "ok")).await;
    assert!(written.names().is_empty());
    let Yard { engine, events, .. } = yard;
    drop(engine);
    // The tasks of the pools release the engine one after another.
    tokio::time::sleep(SECOND).await;
    assert_eq!(written.of_engine(), events.events());
    written.check();
}

/// OB-3: with real threads, a writer gets every event of many sessions, in order within each.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_misses_nothing_under_load() {
    let written = Written::default();
    let yard = yard(|builder, _| builder.event_writer(written.clone()).limits(limits(100))).await;
    let callers: Vec<_> = (0..8)
        .map(|at| {
            let session = yard.engine.session(format!("s{at}"));
            let batch: Vec<Call> = (0..100).map(|at| call(&at.to_string(), "read", 0, "delta")).collect();
            tokio::spawn(async move { session.dispatch(batch).await })
        })
        .collect();
    for caller in callers {
        assert!(soon(caller).await.unwrap().iter().all(Outcome::success));
    }
    soon(yard.engine.shutdown(Drain::default())).await;
    assert_eq!(written.of_engine().len(), yard.events.events().len());
    written.check();
}

/// OB-3: a slow subscriber learns how many events it missed and continues; the engine does not wait for it.
#[tokio::test(start_paused = true)]
async fn a_slow_subscriber_learns_what_it_missed() {
    let spec = ToolSpec::read("streams").timeout(10_000 * SECOND);
    let yard = yard(|builder, _| builder.tool(from_fn(spec, || Streams))).await;
    let mut slow = yard.engine.subscribe();
    let session = yard.engine.session("s");
    assert!(session.call(Call::new("a", "streams", serde_json::json!({"times": 5000}))).await.success());
    let emitted = yard.events.events().len() as u64;
    let Some(Received::Missed(missed)) = slow.try_next() else { panic!("it was too slow") };
    let mut seen = 0;
    while let Some(Received::Event(event)) = slow.try_next() {
        seen += 1;
        assert_eq!(event.seq, missed + seen);
    }
    assert_eq!(missed + seen, emitted);
}
