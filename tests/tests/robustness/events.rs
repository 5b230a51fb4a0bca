//! The event stream when calls, sessions and threads interfere (OB-1, OB-2).

use crate::{SECOND, Tasks, no_hang, soon};
use serde_json::Value;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    thread,
};
use toolyard::{
    Batch, Caller, Event, EventKind, EventWriter, Hooks, Outcome, Received, Tool, ToolClass, ToolContext,
    ToolError, ToolOutput, ToolSpec, async_trait, from_fn,
};
use toolyard_tests::{Yard, call, scripted, shape, yard};

fn names(yard: &Yard) -> Vec<&'static str> {
    yard.events.events().iter().map(|event| event.kind.name()).collect()
}

/// OB-1: output that a given-up handler still streams is not emitted after its call's end.
#[tokio::test(start_paused = true)]
async fn nothing_is_streamed_after_the_end() {
    struct Late;
    #[async_trait]
    impl Tool for Late {
        async fn execute(&self, _: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
            cx.emit("in time");
            tokio::time::sleep(5 * SECOND).await;
            cx.emit("too late");
            Ok("x".into())
        }
    }
    let yard = yard(|builder, _| {
        let spec = ToolSpec::write("late").blocking().timeout(SECOND);
        builder.tool(from_fn(spec, || Late)).blocking(Arc::new(Tasks))
    })
    .await;
    let turn = yard.engine.session("s").turn();
    assert_eq!(shape(&turn.dispatch(vec![call("z", "late", 0, "ok")]).await), "z timeout");
    tokio::time::sleep(10 * SECOND).await;
    assert_eq!(
        yard.events.of_call("z"),
        [
            "tool.call.received",
            "tool.called",
            "dispatch.attempt",
            "tool.output_delta",
            "tool.failed",
            "dispatch.late_result"
        ]
    );
    yard.events.check();
}

/// OB-1: a thread that streams while its call ends does not break the grammar of any call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streaming_races_with_the_end() {
    type Threads = Arc<Mutex<Vec<thread::JoinHandle<()>>>>;
    struct Leaky(Threads);
    #[async_trait]
    impl Tool for Leaky {
        async fn execute(&self, _: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
            let cx = cx.clone();
            let stream = move || (0..100).for_each(|_| cx.emit("x"));
            self.0.lock().unwrap().push(thread::spawn(stream));
            for _ in 0..20 {
                tokio::task::yield_now().await;
            }
            Ok("x".into())
        }
    }
    let threads = Threads::default();
    let keep = threads.clone();
    let make = move || Leaky(keep.clone());
    let yard = yard(|builder, _| builder.tool(from_fn(ToolSpec::read("leaky"), make))).await;
    let session = yard.engine.session("s");
    for _ in 0..100 {
        assert!(session.call(call("z", "leaky", 0, "ok")).await.success());
    }
    let threads = std::mem::take(&mut *threads.lock().unwrap());
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    yard.events.check();
}

/// OB-1: a handler that stops while its call's `on_tool_end` hook runs emits its late result after the terminal event.
#[tokio::test(start_paused = true)]
async fn a_late_result_comes_after_the_end() {
    struct Slow;
    #[async_trait]
    impl Hooks for Slow {
        async fn on_tool_end(&self, _: &Outcome, _: &Caller<'_>) {
            tokio::time::sleep(2 * SECOND).await;
        }
    }
    let yard = yard(|builder, log| {
        let spec = ToolSpec::write("blocks").blocking().timeout(SECOND);
        builder.hooks(Slow).tool(scripted(spec, log)).blocking(Arc::new(Tasks))
    })
    .await;
    yard.engine.session("s").call(call("z", "blocks", 1500, "ok")).await;
    tokio::time::sleep(10 * SECOND).await;
    let events = yard.events.of_call("z");
    assert_eq!(events[events.len() - 2..], ["tool.failed", "dispatch.late_result"]);
    yard.events.check();
}

/// OB-1, CL-4: the turn of an empty batch starts and ends.
#[tokio::test(start_paused = true)]
async fn an_empty_batch_is_a_turn() {
    let yard = yard(|builder, _| builder).await;
    assert!(no_hang(yard.engine.session("s").dispatch(Batch::default())).await.is_empty());
    assert_eq!(names(&yard), ["session.opened", "turn.started", "turn.ended", "session.closed"]);
    yard.events.check();
}

/// OB-1, CC-2: a resize is reported with the old and the new width; a refused resize is not.
#[tokio::test(start_paused = true)]
async fn a_resize_is_reported() {
    let yard = yard(|builder, _| builder).await;
    yard.engine.resize(ToolClass::Read, 3).await.unwrap();
    yard.engine.resize(ToolClass::Concurrent, 4).await.unwrap();
    yard.engine.resize(ToolClass::Read, 0).await.unwrap_err();
    let told: Vec<_> = yard.events.events().into_iter().map(|event| event.kind).collect();
    assert_eq!(
        told,
        [
            EventKind::PoolResized { class: ToolClass::Read, from: 20, to: 3 },
            EventKind::PoolResized { class: ToolClass::Concurrent, from: 10, to: 4 },
        ]
    );
    yard.events.check();
}

/// OB-2: a session that reuses a closed session's name is a new one: it is opened first and counts from 1.
#[tokio::test(start_paused = true)]
async fn a_reused_session_name_starts_afresh() {
    let yard = yard(|builder, _| builder).await;
    for _ in 0..3 {
        yard.engine.session("x").call(call("c", "read", 1, "ok")).await;
    }
    let opened = |kind: &EventKind| *kind == EventKind::SessionOpened;
    let events = yard.events.events();
    let firsts: Vec<_> = events.iter().filter(|event| opened(&event.kind)).map(|event| event.seq).collect();
    assert_eq!(firsts, [1, 1, 1]);
    assert!(events.iter().all(|event| opened(&event.kind) == (event.seq == 1)), "{events:?}");
    yard.events.check();
}

/// OB-1, OB-2: whichever caller opens a session and whichever calls in it first, `session.opened` comes first.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_session_is_opened_before_anything_happens_in_it() {
    let yard = yard(|builder, _| builder).await;
    for round in 0..300 {
        let callers: Vec<_> = (0..3)
            .map(|_| {
                let engine = yard.engine.clone();
                let one = async move {
                    engine.session(format!("x{round}")).call(call("a", "nothing", 0, "ok")).await
                };
                tokio::spawn(one)
            })
            .collect();
        for caller in callers {
            assert_eq!(shape(&[soon(caller).await.unwrap()]), "a not_found");
        }
    }
    let mut first = BTreeMap::new();
    for event in yard.events.events() {
        first.entry(event.session).or_insert(event.kind);
    }
    assert_eq!(first.len(), 300);
    assert!(first.values().all(|kind| *kind == EventKind::SessionOpened), "{first:?}");
    yard.events.check();
}

/// OB-2: threads that open and close one name over and over leave no gap and number nothing twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_opened_and_closed_from_many_threads() {
    let yard = yard(|builder, _| builder).await;
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let engine = yard.engine.clone();
            thread::spawn(move || (0..3000).for_each(|_| drop(engine.session("x"))))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert!(names(&yard).iter().all(|name| ["session.opened", "session.closed"].contains(name)));
    yard.events.check();
}

/// SM-9: every event of an engine has a position of its own, without gaps, which grows within each session, however
/// many threads publish; sinks, writers and subscribers see the same ones. Another engine has another epoch.
#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn every_event_has_its_position() {
    let written = Written::default();
    let yard = yard(|builder, _| builder.event_writer(written.clone())).await;
    let mut subscription = yard.engine.subscribe();
    let callers: Vec<_> = (0..8)
        .map(|n| {
            let session = yard.engine.session(format!("s{n}"));
            let calls: Batch = (0..20).map(|n| call(&format!("c{n}"), "read", 0, "ok")).collect();
            tokio::spawn(async move { session.dispatch(calls).await })
        })
        .collect();
    for caller in callers {
        soon(caller).await.unwrap();
    }
    assert!(yard.engine.events_written().await);
    let key = |event: &Event| (event.position, event.session.to_string(), event.seq);
    let mut sunk: Vec<_> = yard.events.events().iter().map(key).collect();
    let mut last = BTreeMap::new();
    for (position, session, _) in &sunk {
        assert!(last.insert(session.clone(), *position).is_none_or(|before| before < *position), "{sunk:?}");
    }
    sunk.sort_unstable();
    assert!((1..).zip(&sunk).all(|(position, event)| event.0 == position), "{sunk:?}");
    assert!(sunk.len() > 8 * 20 * 4, "{}", sunk.len());
    let mut seen = Vec::new();
    while let Some(Received::Event(event)) = subscription.try_next() {
        seen.push(key(&event));
    }
    seen.sort_unstable();
    let mut written = written.0.lock().unwrap().clone();
    let started = written.remove(0);
    let EventKind::EngineStarted { epoch, .. } = started.kind else { panic!("{started:?}") };
    assert_eq!((started.position, epoch), (0, yard.engine.epoch()));
    let mut written: Vec<_> = written.iter().map(key).collect();
    written.sort_unstable();
    assert_eq!((&seen, &written), (&sunk, &sunk));
    yard.events.check();
    let other = toolyard_tests::yard(|builder, _| builder).await;
    assert_ne!(other.engine.epoch(), epoch);
}

/// Keeps what was written.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<Event>>>);

impl EventWriter for Written {
    fn write(&mut self, event: &Event) -> std::io::Result<()> {
        self.0.lock().unwrap().push(event.clone());
        Ok(())
    }
}

/// KT-5: a subscription is a stream of the same events; what one way of reading has read, the other does not read again.
#[tokio::test(start_paused = true)]
async fn a_subscription_is_a_stream() {
    use futures::StreamExt;
    let yard = toolyard_tests::yard(|builder, _| builder).await;
    let mut events = yard.engine.subscribe();
    yard.engine.session("s").call(toolyard_tests::call("a", "read", 5, "ok")).await;
    yard.engine.shutdown(toolyard::Drain::default()).await;
    let mut read: Vec<_> = events.next().await.into_iter().collect();
    read.extend(events.try_next());
    read.extend(StreamExt::collect::<Vec<_>>(events).await);
    let position = |received: toolyard::Received| match received {
        toolyard::Received::Event(event) => event.position,
        toolyard::Received::Missed(count) => panic!("{count} missed"),
    };
    let positions: Vec<_> = read.into_iter().map(position).collect();
    assert_eq!(positions, (1..=positions.len() as u64).collect::<Vec<_>>());
    assert!(positions.len() > 5);
}
