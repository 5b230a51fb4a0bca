//! Tasks of attempts that are reused or lost (SC-2, SC-3).

use crate::{no_hang, soon};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};
use tokio::{
    sync::{Semaphore, oneshot},
    task::yield_now,
};
use toolyard::{
    Answer, Call, Confirmations, Durable, EndRecord, Engine, Recorder, Session, Spawner, ToolContext,
    ToolError, ToolFactory, ToolSpec, tool_fn,
};
use toolyard_tests::shape;

/// Counts tasks and runs them, except for the first few, which are dropped when they are woken.
#[derive(Default)]
struct Tasks {
    lost: AtomicUsize,
    spawned: AtomicUsize,
}

impl Spawner for Tasks {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.spawned.fetch_add(1, Ordering::SeqCst);
        let is_lost =
            self.lost.try_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        let (mut task, mut polls) = (Some(task), 0);
        tokio::spawn(poll_fn(move |cx| {
            polls += 1;
            if is_lost && polls > 1 {
                task = None;
            }
            task.as_mut().map_or(Poll::Ready(()), |task| task.as_mut().poll(cx))
        }));
    }
}

/// Counts how often each task is polled.
#[derive(Default)]
struct Polls(Mutex<Vec<Arc<AtomicUsize>>>);

impl Polls {
    fn counts(&self) -> Vec<usize> {
        self.0.lock().unwrap().iter().map(|polls| polls.load(Ordering::SeqCst)).collect()
    }
}

impl Spawner for Polls {
    fn spawn(&self, mut task: BoxFuture<'static, ()>) {
        let polls = Arc::new(AtomicUsize::new(0));
        self.0.lock().unwrap().push(polls.clone());
        tokio::spawn(poll_fn(move |cx| {
            polls.fetch_add(1, Ordering::SeqCst);
            task.as_mut().poll(cx)
        }));
    }
}

/// A tool that returns at once, or panics if its arguments say so.
fn now_tool() -> impl ToolFactory {
    let spec = ToolSpec::read("now").max_concurrency(1);
    tool_fn(spec, |args: Value, _: ToolContext| async move {
        assert_ne!(args["panics"], true);
        Ok("ok")
    })
}

/// An engine with that tool.
async fn engine(tasks: Arc<Tasks>) -> Engine {
    Engine::builder().tool(now_tool()).spawner(tasks).build().await.unwrap()
}

fn now(id: &str, panics: bool) -> Call {
    Call::new(id, "now", json!({ "panics": panics }))
}

/// SC-3: if a task is lost after it was woken for a call, another task runs the call.
#[tokio::test(start_paused = true)]
async fn a_lost_task_leaves_its_call_to_another() {
    for lost in 1..4 {
        let session = engine(Arc::new(Tasks { lost: lost.into(), ..Tasks::default() })).await.session("s");
        for id in ["a", "b", "c", "d"] {
            let outcomes = no_hang(session.dispatch(vec![now(id, false)])).await;
            assert_eq!(shape(&outcomes), format!("{id} ok"));
        }
    }
}

/// SC-2: a call unblocked by the end of another runs on that call's task, but its result is its own.
#[tokio::test(start_paused = true)]
async fn consecutive_calls_share_only_a_task() {
    let tasks = Arc::new(Tasks::default());
    let session = engine(tasks.clone()).await.session("s");
    let calls = ["a", "b", "c", "d"].map(|id| now(id, id == "b"));
    let outcomes = no_hang(session.dispatch(calls.to_vec())).await;
    assert_eq!(shape(&outcomes), "a ok, b panic, c ok, d ok");
    assert_eq!(tasks.spawned.load(Ordering::SeqCst), 1);
}

/// Records nothing that has to be waited for, and no attempts of reads.
struct Quick;

impl Recorder for Quick {
    fn needs_attempts_of_reads(&self) -> bool {
        false
    }
}

/// SC-2, SM-4: so do reads with a recorder that does not need their attempts.
#[tokio::test(start_paused = true)]
async fn consecutive_reads_share_a_task_beside_a_recorder() {
    let tasks = Arc::new(Tasks::default());
    let builder = Engine::builder().tool(now_tool()).spawner(tasks.clone());
    let session = builder.recorder(Quick).build().await.unwrap().session("s");
    let calls = ["a", "b", "c", "d"].map(|id| now(id, id == "b"));
    let outcomes = no_hang(session.dispatch(calls.to_vec())).await;
    assert_eq!(shape(&outcomes), "a ok, b panic, c ok, d ok");
    assert_eq!(tasks.spawned.load(Ordering::SeqCst), 1);
}

/// Runs no task but the first one.
#[derive(Default)]
struct OneTask(AtomicUsize);

impl Spawner for OneTask {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        assert_eq!(self.0.fetch_add(1, Ordering::SeqCst), 0, "no task is left");
        tokio::spawn(task);
    }
}

/// Lets all ends wait, and counts them.
struct Ends(Arc<Mutex<Vec<String>>>);

impl Recorder for Ends {
    fn needs_attempts_of_reads(&self) -> bool {
        false
    }

    fn ended(&self, record: &EndRecord<'_>) -> Durable {
        let end = if record.status.is_ok() { "ok" } else { "failed" };
        self.0.lock().unwrap().push(format!("{} {end}", record.call.call_id));
        Durable::when(std::future::ready(Ok(())))
    }
}

/// SM-4, SC-3: a call whose end was recorded has that end, also if what it has let start cannot be spawned.
#[tokio::test(start_paused = true)]
async fn an_end_that_was_recorded_stays() {
    let ends = Arc::<Mutex<Vec<String>>>::default();
    let builder = Engine::builder().tool(now_tool()).spawner(Arc::<OneTask>::default());
    let session = builder.recorder(Ends(Arc::clone(&ends))).build().await.unwrap().session("s");
    let outcomes = no_hang(session.dispatch(vec![now("a", false), now("b", false)])).await;
    assert!(outcomes[0].success() && !outcomes[0].recorded && !outcomes[1].success());
    let mut ends = ends.lock().unwrap().clone();
    ends.sort();
    assert_eq!(ends, ["a ok", "b failed"]);
}

/// SC-2: a handler that starts to wait when its task has no budget left is woken like any other.
#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_without_coop_budget_is_woken() {
    let waits = tool_fn(ToolSpec::read("waits"), |units: Value, _: ToolContext| async move {
        let permits = Semaphore::new(1);
        for _ in 0..units["units"].as_u64().unwrap() {
            drop(permits.acquire().await);
        }
        let (tell, told) = oneshot::channel();
        tokio::spawn(async move { tell.send(()) });
        told.await.unwrap();
        Ok("ok")
    });
    let engine = Engine::builder().tool(waits).build().await.unwrap();
    for units in 100..140 {
        let call = Call::new("a", "waits", json!({ "units": units }));
        let outcomes = no_hang(engine.session("s").dispatch(vec![call])).await;
        assert_eq!(shape(&outcomes), "a ok", "{units}");
    }
}

/// SC-4: cancelling a call wakes only the task it runs on.
#[tokio::test(start_paused = true)]
async fn cancelling_a_call_wakes_only_its_task() {
    let waits = tool_fn(ToolSpec::read("waits"), |_: Value, cx: ToolContext| async move {
        cx.cancelled().await;
        Ok("stopped")
    });
    let polls = Arc::new(Polls::default());
    let engine = Engine::builder().tool(waits).spawner(polls.clone()).build().await.unwrap();
    let session = engine.session("s");
    let calls = ["a", "b", "c"].map(|id| Call::new(id, "waits", json!({})));
    let dispatch = tokio::spawn({
        let session = session.clone();
        async move { session.dispatch(calls.to_vec()).await }
    });
    tokio::time::sleep(Duration::from_millis(1)).await;
    let before = polls.counts();
    assert!(session.cancel_call("b"));
    tokio::time::sleep(Duration::from_millis(1)).await;
    let woken = before.iter().zip(polls.counts()).filter(|(before, after)| *before < after).count();
    assert_eq!((before.len(), woken), (3, 1));
    assert_eq!(session.cancel_calls(), 2);
    let outcomes = no_hang(dispatch).await.unwrap();
    assert_eq!(shape(&outcomes), "a ok, b ok, c ok");
    assert!(outcomes.iter().all(|outcome| outcome.cancel_requested));
}

/// A waker that cancels a call when it is dropped; a spawner may poll tasks with such wakers.
struct Cancels {
    task: Waker,
    session: Arc<OnceLock<Session>>,
}

impl Wake for Cancels {
    fn wake(self: Arc<Self>) {
        self.task.wake_by_ref();
    }
}

impl Drop for Cancels {
    fn drop(&mut self) {
        if let Some(session) = self.session.get() {
            session.cancel_call("c");
        }
    }
}

/// A spawner that uses a new waker for every poll.
#[derive(Default)]
struct Cancelling(Arc<OnceLock<Session>>);

impl Spawner for Cancelling {
    fn spawn(&self, mut task: BoxFuture<'static, ()>) {
        let session = self.0.clone();
        tokio::spawn(poll_fn(move |cx| {
            let waker = Waker::from(Arc::new(Cancels { task: cx.waker().clone(), session: session.clone() }));
            task.as_mut().poll(&mut Context::from_waker(&waker))
        }));
    }
}

/// SC-3: no lock of a call is held while a waker of its task is dropped: at its end, before its next attempt, or
/// while it goes on for other callers.
#[tokio::test]
async fn a_waker_may_use_its_call_on_drop() {
    let waits = |spec: ToolSpec| {
        tool_fn(spec.concurrent().idempotent(), |_: Value, cx: ToolContext| async move {
            yield_now().await;
            if cx.attempt() == 1 { Err(ToolError::transient("again")) } else { Ok("ok") }
        })
    };
    // On a separate thread, which is left behind if it deadlocks.
    let (tell, told) = oneshot::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            for key in [None, Some("k")] {
                let spawner = Arc::new(Cancelling::default());
                let builder =
                    Engine::builder().confirmations(Confirmations::auto()).approver(Answer::allow("ada"));
                let builder = builder.tool(waits(ToolSpec::write("waits"))).spawner(spawner.clone());
                let session = builder.build().await.unwrap().session("s");
                spawner.0.set(session.clone()).unwrap();
                let calls = ["c", "d"].map(|id| {
                    let mut call = Call::new(id, "waits", json!({}));
                    call.idempotency_key = key.map(Into::into);
                    call
                });
                assert_eq!(session.dispatch(calls.to_vec()).await.len(), 2);
            }
        });
        tell.send(()).unwrap();
    });
    soon(told).await.unwrap();
}
