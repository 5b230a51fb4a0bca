//! Calls that start together, on tasks that wake one another (SC-2).

use crate::no_hang;
use futures::future::{BoxFuture, join_all};
use serde_json::{Value, json};
use std::{
    future::poll_fn,
    sync::{
        Arc, Condvar, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Poll, Waker},
    time::Duration,
};
use tokio::sync::{Barrier, Notify};
use toolyard::{Batch, Call, Engine, Outcome, PoolWidths, Spawner, ToolContext, ToolSpec, tool_fn};

/// The number of calls that run at once.
const WIDTH: usize = 16;

/// How long a blocked worker waits in real time before the test fails; a passing test never waits that long.
const STUCK: Duration = Duration::from_secs(20);

async fn engine(tool: impl toolyard::ToolFactory + 'static) -> Engine {
    let mut widths = PoolWidths::default();
    widths.read = WIDTH;
    Engine::builder().pools(widths).tool(tool).build().await.unwrap()
}

fn batch(calls: usize, arguments: impl Fn(usize) -> Value) -> Batch {
    (0..calls).map(|n| Call::new(format!("call_{n}"), "meets", arguments(n))).collect()
}

fn all_ok(outcomes: &[Outcome]) -> bool {
    outcomes.iter().all(Outcome::success)
}

/// SC-2: handlers that wait for one another all run, on reused and on new tasks, in one batch and in several: no call
/// waits for a task that another call occupies.
#[tokio::test(start_paused = true)]
async fn calls_that_wait_for_each_other_all_start() {
    let everybody = Arc::new(Barrier::new(WIDTH));
    let meets = tool_fn(ToolSpec::read("meets"), move |args: Value, _: ToolContext| {
        let everybody = everybody.clone();
        async move {
            if args["waits"] == true {
                everybody.wait().await;
            }
            Ok("ok")
        }
    });
    let engine = engine(meets).await;
    for at_rest in 0..=WIDTH {
        let (one, other) = (engine.session("one"), engine.session("other"));
        // Leaves about this many idle tasks for the next batches.
        assert!(all_ok(&no_hang(one.dispatch(batch(at_rest, |_| json!({"waits": false})))).await));
        let waits = |calls| batch(calls, |_| json!({"waits": true}));
        let outcomes =
            no_hang(join_all([one.dispatch(waits(WIDTH / 2)), other.dispatch(waits(WIDTH / 2))])).await;
        assert!(outcomes.iter().all(|outcomes| all_ok(outcomes)), "{at_rest}");
    }
}

/// The condition that handlers wait for when they block their worker, against all advice.
#[derive(Default)]
struct Met {
    is_so: Mutex<bool>,
    changed: Condvar,
    /// Notified when a handler starts to block.
    is_awaited: Notify,
}

impl Met {
    fn notify(&self) {
        *self.is_so.lock().unwrap() = true;
        self.changed.notify_all();
    }

    /// Blocks the thread until the others have met.
    fn wait(&self) {
        self.is_awaited.notify_one();
        let is_so = self.is_so.lock().unwrap();
        let (is_so, _) = self.changed.wait_timeout_while(is_so, STUCK, |is_so| !*is_so).unwrap();
        assert!(*is_so, "calls that do not block are not delayed");
    }
}

/// Some handlers that meet, and others that block their workers until that has happened.
struct Meeting {
    engine: Engine,
    now: Arc<Mutex<(Arc<Met>, Arc<Barrier>)>>,
}

impl Meeting {
    async fn new() -> Self {
        let now: Arc<Mutex<(Arc<Met>, Arc<Barrier>)>> =
            Arc::new(Mutex::new((Arc::default(), Arc::new(Barrier::new(1)))));
        let meets = tool_fn(ToolSpec::read("meets"), {
            let now = now.clone();
            move |args: Value, _: ToolContext| {
                let (met, others) = now.lock().unwrap().clone();
                async move {
                    match args["blocks"].as_bool() {
                        Some(true) => met.wait(),
                        Some(false) if others.wait().await.is_leader() => met.notify(),
                        _ => {}
                    }
                    Ok("ok")
                }
            }
        });
        Self { engine: engine(meets).await, now }
    }

    /// Prepares a meeting of this many handlers, with idle tasks for all calls.
    async fn begin(&self, others: usize) {
        *self.now.lock().unwrap() = (Arc::default(), Arc::new(Barrier::new(others)));
        assert!(all_ok(&self.engine.session("s").dispatch(batch(WIDTH, |_| json!({}))).await));
    }

    /// Runs calls, some of which block, either in one batch or each in its own session.
    async fn hold(&self, calls: usize, blocks: impl Fn(usize) -> bool, one_batch: bool) -> bool {
        let arguments = |n| json!({"blocks": blocks(n)});
        if one_batch {
            return all_ok(&self.engine.session("s").dispatch(batch(calls, arguments)).await);
        }
        let one = |n: usize| {
            let session = self.engine.session(format!("s{n}"));
            let call = Call::new("c", "meets", arguments(n));
            tokio::spawn(async move { session.call(call).await.success() })
        };
        join_all((0..calls).map(one).collect::<Vec<_>>()).await.into_iter().all(Result::unwrap)
    }
}

async fn blocked_workers_keep_no_other(workers: usize) {
    let meeting = Meeting::new().await;
    for round in 0..48 {
        let (blocking, others) = (workers - 1, 1 + round % 5);
        let calls = blocking + others;
        meeting.begin(others).await;
        // The blocking calls are at varying positions in the batch.
        let blocks = |n: usize| (n + round) % calls < blocking;
        assert!(meeting.hold(calls, blocks, round % 2 == 0).await, "{round}");
    }
}

/// SC-2: handlers that block all workers but one prevent no other handler from starting or ending, whether in the
/// same batch or in others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_its_worker_delays_no_other() {
    blocked_workers_keep_no_other(2).await;
}

/// SC-2: the same with more workers.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handlers_that_block_their_workers_delay_no_other() {
    blocked_workers_keep_no_other(4).await;
}

/// SC-2: a call that arrives while another's handler blocks its worker does not wait for a task woken for that one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_call_is_not_delayed_by_a_blocking_one() {
    let meeting = Meeting::new().await;
    for round in 0..48 {
        meeting.begin(2).await;
        let met = meeting.now.lock().unwrap().0.clone();
        let held = meeting.hold(2, |n| n == 0, true);
        let later = async {
            met.is_awaited.notified().await;
            meeting.engine.session("later").call(Call::new("later", "meets", json!({"blocks": false}))).await
        };
        let (held, later) = tokio::join!(held, later);
        assert!(held && later.success(), "{round}");
    }
}

/// Counts tasks. With `leaves` it sets the fourth task aside when it is woken again, neither polled nor dropped.
#[derive(Default)]
struct Leaving {
    spawned: AtomicUsize,
    leaves: bool,
    left: Arc<Mutex<Vec<BoxFuture<'static, ()>>>>,
}

impl Spawner for Leaving {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let is_left = self.spawned.fetch_add(1, Ordering::SeqCst) == 3 && self.leaves;
        let (mut task, mut polls, left) = (Some(task), 0, self.left.clone());
        tokio::spawn(poll_fn(move |cx| {
            polls += 1;
            if is_left && polls > 2 {
                left.lock().unwrap().extend(task.take());
            }
            task.as_mut().map_or(Poll::Pending, |task| task.as_mut().poll(cx))
        }));
    }
}

/// SC-3: a task that is never polled again, even when woken, holds up at most one call, and only until another arrives.
#[tokio::test(start_paused = true)]
async fn a_task_never_polled_again_delays_at_most_one_call() {
    let waits = tool_fn(ToolSpec::read("meets"), |_: Value, _: ToolContext| async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Ok("ok")
    });
    let tasks = Arc::new(Leaving { leaves: true, ..Leaving::default() });
    let engine = Engine::builder().tool(waits).spawner(tasks.clone()).build().await.unwrap();
    let mut kept = 0;
    for calls in [4, 1, 1, 8, 1, 3, 8, 1] {
        let session = engine.session("s");
        let run = tokio::spawn(async move { all_ok(&session.dispatch(batch(calls, |_| json!({}))).await) });
        match tokio::time::timeout(Duration::from_secs(3600), run).await {
            Ok(done) => assert!(done.unwrap()),
            Err(_) => kept += 1,
        }
    }
    // The call for which it was woken waits until another arrives.
    assert!(kept <= 1, "{kept}");
    assert_eq!(tasks.left.lock().unwrap().len(), 1);
}

/// SC-2: tasks are reused even if wakers of a finished handler are called later.
#[tokio::test(start_paused = true)]
async fn tasks_are_reused_after_late_wakers() {
    let late: Arc<Mutex<Vec<Waker>>> = Arc::default();
    let keeps = tool_fn(ToolSpec::read("meets"), {
        let late = late.clone();
        move |_: Value, _: ToolContext| {
            let late = late.clone();
            poll_fn(move |cx| {
                late.lock().unwrap().push(cx.waker().clone());
                Poll::Ready(Ok("ok"))
            })
        }
    });
    let tasks = Arc::new(Leaving::default());
    let engine = Engine::builder().tool(keeps).spawner(tasks.clone()).build().await.unwrap();
    for _ in 0..600 {
        assert!(all_ok(&no_hang(engine.session("s").dispatch(batch(2, |_| json!({})))).await));
        late.lock().unwrap().drain(..).for_each(Waker::wake);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(tasks.spawned.load(Ordering::SeqCst) <= 4);
}
