//! Tasks of attempts that are used again, and that are lost (SC-2, SC-3).

use crate::ends;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::{
    future::poll_fn,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::Poll,
    time::Duration,
};
use tokio::sync::{Semaphore, oneshot};
use toolyard::{Call, Engine, Spawner, ToolContext, ToolSpec, tool_fn};
use toolyard_tests::shape;

/// Counts tasks, and runs them but for the first few: those are lost when they are woken.
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

/// A tool that is done at once; it panics where it is told to.
async fn engine(tasks: Arc<Tasks>) -> Engine {
    let spec = ToolSpec::read("now").max_concurrency(1.try_into().unwrap());
    let now = tool_fn(spec, |args: Value, _: ToolContext| async move {
        assert_ne!(args["panics"], true);
        Ok("ok")
    });
    Engine::builder().tool(now).spawner(tasks).build().await.unwrap()
}

fn now(id: &str, panics: bool) -> Call {
    Call::new(id, "now", json!({ "panics": panics }))
}

/// SC-3: a task that is lost on its way to a call leaves the call to another.
#[tokio::test(start_paused = true)]
async fn a_task_that_is_lost_on_its_way_leaves_its_call_to_another() {
    for lost in 1..4 {
        let session = engine(Arc::new(Tasks { lost: lost.into(), ..Tasks::default() })).await.session("s");
        for id in ["a", "b", "c", "d"] {
            let outcomes = ends(session.dispatch(vec![now(id, false)])).await;
            assert_eq!(shape(&outcomes), format!("{id} ok"));
        }
    }
}

/// SC-2: a call that is let go where another ends runs on its task, and has its end for itself.
#[tokio::test(start_paused = true)]
async fn calls_that_follow_each_other_share_a_task_and_nothing_else() {
    let tasks = Arc::new(Tasks::default());
    let session = engine(tasks.clone()).await.session("s");
    let calls = ["a", "b", "c", "d"].map(|id| now(id, id == "b"));
    let outcomes = ends(session.dispatch(calls.to_vec())).await;
    assert_eq!(shape(&outcomes), "a ok, b panic, c ok, d ok");
    assert_eq!(tasks.spawned.load(Ordering::SeqCst), 1);
}

/// SC-2: a call whose task has no budget left when its handler comes to wait is woken as any other.
#[tokio::test(start_paused = true)]
async fn a_handler_that_comes_to_wait_without_budget_is_woken() {
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
        let outcomes = ends(engine.session("s").dispatch(vec![call])).await;
        assert_eq!(shape(&outcomes), "a ok", "{units}");
    }
}

/// SC-4: a call that is told to stop wakes the task it runs on, and leaves those of its neighbours alone.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_told_to_stop_wakes_its_own_task_alone() {
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
    let outcomes = ends(dispatch).await.unwrap();
    assert_eq!(shape(&outcomes), "a ok, b ok, c ok");
    assert!(outcomes.iter().all(|outcome| outcome.cancel_requested));
}
