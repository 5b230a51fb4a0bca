//! Handlers that use up their task's cooperative budget at every poll, and tasks that have no budget left.

use crate::{SECOND, no_hang};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::{
    future::{Future, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio::{
    task::{consume_budget, coop::has_budget_remaining, yield_now},
    time::{Instant, sleep},
};
use toolyard::{
    Abort, Answer, ApprovalRequest, Approver, Call, Caller, Confirmations, Drain, Engine, ErrorKind, Hooks,
    Outcome, RetryPolicy, Session, Spawner, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, async_trait,
    from_fn, tool_fn,
};

/// How long a cancelled handler may keep running (SC-5).
const GRACE: Duration = Duration::from_secs(30);

/// Always has more to do and ignores cancels.
async fn goes_on(_: Value, _: ToolContext) -> Result<&'static str, ToolError> {
    loop {
        consume_budget().await;
    }
}

async fn engine() -> Engine {
    let spec = |name: &'static str| ToolSpec::read(name).timeout(60 * SECOND);
    let graced = spec("graced").timeout_grace(5 * SECOND);
    let builder = Engine::builder().retry(RetryPolicy::NONE).tool(tool_fn(spec("busy"), goes_on));
    let builder = builder.tool(tool_fn(spec("inline").inline(), goes_on));
    builder.tool(tool_fn(graced, goes_on)).build().await.unwrap()
}

fn busy(tool: &str) -> Call {
    Call::new("c", tool, json!({}))
}

/// Runs a call while advancing the clock second by second, because paused time does not advance while a handler is
/// busy. Returns the outcome and the time it took.
async fn runs(session: &Session, call: Call, then: impl Fn(u32)) -> (Outcome, Duration) {
    let (from, run) = (Instant::now(), session.clone());
    let run = tokio::spawn(async move { run.call(call).await });
    for second in 0..100 {
        then(second);
        for _ in 0..50 {
            yield_now().await;
        }
        if run.is_finished() {
            return (run.await.unwrap(), from.elapsed());
        }
        tokio::time::advance(SECOND).await;
    }
    panic!("nobody stopped {}", session.id());
}

/// SC-4, SC-6: a handler that uses up its task's budget at every poll is cancelled and given up after the grace.
#[tokio::test(start_paused = true)]
async fn a_busy_handler_is_cancelled() {
    let engine = engine().await;
    for tool in ["busy", "inline", "graced"] {
        let session = engine.session(tool);
        let cancel = |second| {
            if second == 3 {
                session.cancel();
            }
        };
        let (outcome, after) = runs(&session, busy(tool), cancel).await;
        assert_eq!(outcome.error().unwrap().kind, ErrorKind::Cancelled, "{tool}");
        assert_eq!(after, 3 * SECOND + GRACE, "{tool}");
    }
}

/// V3, SC-5: a busy handler times out on time, with and without a grace.
#[tokio::test(start_paused = true)]
async fn a_busy_handler_times_out() {
    let engine = engine().await;
    for (tool, seconds) in [("busy", 60), ("inline", 60), ("graced", 65)] {
        let (outcome, after) = runs(&engine.session(tool), busy(tool), |_| {}).await;
        assert_eq!(outcome.error().unwrap().kind, ErrorKind::Timeout, "{tool}");
        assert_eq!(after, seconds * SECOND, "{tool}");
    }
}

/// V3: a busy handler also ends at its call's deadline, even in the middle of the grace of a cancel.
#[tokio::test(start_paused = true)]
async fn a_busy_handler_ends_by_its_deadline() {
    let engine = engine().await;
    let session = engine.session("s");
    let (outcome, after) = runs(&session, busy("busy").deadline(7 * SECOND), |_| {}).await;
    assert_eq!(outcome.error().unwrap().kind, ErrorKind::DeadlineExceeded);
    assert_eq!(after, 7 * SECOND);
    let cancel = |second| {
        if second == 3 {
            assert!(session.cancel_call("c"));
        }
    };
    let (outcome, after) = runs(&session, busy("busy").deadline(7 * SECOND), cancel).await;
    assert_eq!(outcome.error().unwrap().kind, ErrorKind::Cancelled);
    assert_eq!(after, 7 * SECOND);
}

/// Always has more to do until it is cancelled.
#[derive(Default)]
struct Pumps {
    is_told: AtomicBool,
    heard: tokio::sync::Mutex<()>,
}

#[async_trait]
impl Tool for Pumps {
    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        while !self.is_told.load(Ordering::SeqCst) {
            consume_budget().await;
        }
        Ok("pumped".into())
    }

    async fn cancel(&self) -> bool {
        let _heard = self.heard.lock().await;
        self.is_told.store(true, Ordering::SeqCst);
        true
    }
}

/// SC-4, SC-5: `Tool::cancel` of a busy handler is called and gets its share of the task.
#[tokio::test(start_paused = true)]
async fn a_busy_tool_gets_its_cancel() {
    let spec = |name: &'static str| ToolSpec::read(name).timeout(9 * SECOND);
    let builder = Engine::builder().retry(RetryPolicy::NONE).tool(from_fn(spec("pumps"), Pumps::default));
    let graced = spec("graced").timeout_grace(5 * SECOND);
    let engine = builder.tool(from_fn(graced, Pumps::default)).build().await.unwrap();
    let session = engine.session("s");
    let cancel = |second| {
        if second == 3 {
            assert!(session.cancel_call("c"));
        }
    };
    let (outcome, after) = runs(&session, busy("pumps"), cancel).await;
    assert_eq!((outcome.to_text().as_str(), outcome.cancel_requested, after), ("pumped", true, 3 * SECOND));
    let (outcome, after) = runs(&session, busy("graced"), |_| {}).await;
    assert_eq!((outcome.error().unwrap().kind, after), (ErrorKind::Timeout, 9 * SECOND));
}

/// SC-8: a drain gives up a busy handler.
#[tokio::test(start_paused = true)]
async fn a_busy_handler_is_given_up_by_a_drain() {
    let engine = engine().await;
    let draining = engine.clone();
    let drain = move |second| {
        if second == 3 {
            let engine = draining.clone();
            tokio::spawn(async move { engine.shutdown(Drain::default()).await });
        }
    };
    let (outcome, after) = runs(&engine.session("s"), busy("busy").timeout(90 * SECOND), drain).await;
    assert_eq!(outcome.error().unwrap().kind, ErrorKind::Cancelled);
    assert!(after > 3 * SECOND, "{after:?}");
}

/// A spawner that uses up a task's budget before its first poll of each instant.
struct Spent;

impl Spawner for Spent {
    fn spawn(&self, mut task: BoxFuture<'static, ()>) {
        let mut last = None;
        tokio::spawn(poll_fn(move |cx| {
            if last.replace(Instant::now()) != Some(Instant::now()) {
                while has_budget_remaining() {
                    let _ = pin!(consume_budget()).poll(cx);
                }
            }
            task.as_mut().poll(cx)
        }));
    }
}

/// SC-7: work that completes at the instant of its timeout counts, even if its task has no budget left to notice it.
#[tokio::test(start_paused = true)]
async fn a_finished_handler_counts_without_coop_budget() {
    let sleeps = |_: Value, _: ToolContext| async {
        sleep(SECOND).await;
        Ok("done")
    };
    let (read, write) = (ToolSpec::read("read"), ToolSpec::write("graced").timeout_grace(SECOND));
    let builder = Engine::builder().spawner(Arc::new(Spent)).confirmations(Confirmations::auto());
    let builder = builder.approver(Answer::allow("ada"));
    let engine = builder.tool(tool_fn(read, sleeps)).tool(tool_fn(write, sleeps)).build().await.unwrap();
    for tool in ["read", "graced"] {
        let timed = busy(tool).timeout(SECOND);
        for call in [timed.clone(), busy(tool).deadline(SECOND), timed.deadline(SECOND)] {
            let from = Instant::now();
            let outcome = no_hang(engine.session("s").call(call)).await;
            assert_eq!((outcome.to_text().as_str(), from.elapsed()), ("done", SECOND), "{tool}");
        }
    }
}

/// Always has more to do and never answers.
struct Ponders;

#[async_trait]
impl Approver for Ponders {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        loop {
            consume_budget().await;
        }
    }
}

/// PO-4: an approver that uses up its task's budget at every poll still has only its time to answer.
#[tokio::test(start_paused = true)]
async fn a_busy_approver_is_not_waited_for() {
    let confirmations = Confirmations::default().timeout(5 * SECOND);
    let builder = Engine::builder().approver(Ponders).confirmations(confirmations);
    let engine = builder.tool(tool_fn(ToolSpec::write("write"), goes_on)).build().await.unwrap();
    let (outcome, after) = runs(&engine.session("s"), busy("write"), |_| {}).await;
    let error = outcome.error().unwrap();
    assert_eq!((error.kind, after), (ErrorKind::ConfirmationTimeout, 5 * SECOND), "{error:?}");
}

/// Always has more to do before a call may proceed.
struct Dawdles;

#[async_trait]
impl Hooks for Dawdles {
    async fn on_tool_call(&self, _: &Call, _: &Caller<'_>) -> Result<(), Abort> {
        loop {
            consume_budget().await;
        }
    }
}

/// V1: a hook that uses up its task's budget at every poll still has only its 5 s.
#[tokio::test(start_paused = true)]
async fn a_busy_hook_is_not_waited_for() {
    let builder = Engine::builder().hooks(Dawdles);
    let engine = builder.tool(tool_fn(ToolSpec::read("read"), goes_on)).build().await.unwrap();
    let (outcome, after) = runs(&engine.session("s"), busy("read"), |_| {}).await;
    let error = outcome.error().unwrap();
    assert_eq!((error.kind, after), (ErrorKind::Aborted, 5 * SECOND), "{error:?}");
}
