//! Calls that start together, on tasks that wake each other (SC-2).

use crate::ends;
use futures::future::join_all;
use serde_json::{Value, json};
use std::{
    sync::{Arc, Condvar, Mutex},
    time::Duration,
};
use tokio::sync::Barrier;
use toolyard::{Batch, Call, Engine, Outcome, PoolWidths, ToolContext, ToolSpec, tool_fn};

/// Calls that run at once.
const WIDTH: usize = 16;

/// How long a blocked worker is left so, by a clock that nobody pauses: a test that comes to its end never sees it.
const STUCK: Duration = Duration::from_secs(60);

async fn engine(tool: impl toolyard::ToolFactory + 'static) -> Engine {
    let mut widths = PoolWidths::default();
    widths.read = WIDTH.try_into().unwrap();
    Engine::builder().pools(widths).tool(tool).build().await.unwrap()
}

fn batch(calls: usize, arguments: impl Fn(usize) -> Value) -> Batch {
    (0..calls).map(|n| Call::new(format!("call_{n}"), "meets", arguments(n))).collect()
}

fn all_ok(outcomes: &[Outcome]) -> bool {
    outcomes.iter().all(Outcome::success)
}

/// SC-2: handlers that wait for each other all run, on tasks that were used before and on new ones, in one batch and in
/// several: no call waits for a task that another keeps.
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
        // Leaves about so many tasks behind, and what comes next finds them.
        assert!(all_ok(&ends(one.dispatch(batch(at_rest, |_| json!({"waits": false})))).await));
        let waits = |calls| batch(calls, |_| json!({"waits": true}));
        let outcomes =
            ends(join_all([one.dispatch(waits(WIDTH / 2)), other.dispatch(waits(WIDTH / 2))])).await;
        assert!(outcomes.iter().all(|outcomes| all_ok(outcomes)), "{at_rest}");
    }
}

/// A handler that blocks its worker, against all advice, until the others have met.
#[derive(Default)]
struct Met {
    is_so: Mutex<bool>,
    changed: Condvar,
}

impl Met {
    fn tell(&self) {
        *self.is_so.lock().unwrap() = true;
        self.changed.notify_all();
    }

    /// Blocks the thread; whether they have met.
    fn wait(&self) -> bool {
        let is_so = self.is_so.lock().unwrap();
        let (is_so, _) = self.changed.wait_timeout_while(is_so, STUCK, |is_so| !*is_so).unwrap();
        *is_so
    }
}

/// SC-2: a handler that blocks its worker keeps the others neither from starting nor from ending, whichever of a batch it
/// is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_its_worker_keeps_no_other() {
    let met: Arc<Mutex<Arc<Met>>> = Arc::default();
    let others = Arc::new(Barrier::new(WIDTH / 2 - 1));
    let meets = tool_fn(ToolSpec::read("meets"), {
        let met = met.clone();
        move |args: Value, _: ToolContext| {
            let (met, others) = (met.lock().unwrap().clone(), others.clone());
            async move {
                match args["blocks"].as_bool() {
                    Some(true) => assert!(met.wait(), "the others never met"),
                    Some(false) if others.wait().await.is_leader() => met.tell(),
                    _ => {}
                }
                Ok("ok")
            }
        }
    });
    let engine = engine(meets).await;
    let session = engine.session("s");
    for round in 0..64 {
        *met.lock().unwrap() = Arc::default();
        assert!(all_ok(&session.dispatch(batch(WIDTH, |_| json!({}))).await));
        let blocks = |n| json!({"blocks": n == round % (WIDTH / 2)});
        assert!(all_ok(&session.dispatch(batch(WIDTH / 2, blocks)).await), "{round}");
    }
}
