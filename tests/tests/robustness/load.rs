//! Many calls, sessions and threads at once (CC-3, I1, I3).

use crate::{SECOND, no_hang, soon};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use toolyard::{
    Answer, ApprovalRequest, Approver, Call, Caller, Confirmations, Drain, Hooks, Outcome, PoolWidths,
    ToolClass, ToolSpec, async_trait,
};
use toolyard_tests::{Yard, call, scripted, shape, yard};

/// SC-2, V1: hooks of inline calls run concurrently, and so do inline calls that wait.
#[tokio::test(start_paused = true)]
async fn inline_calls_and_their_hooks_run_concurrently() {
    struct Slow;
    #[async_trait]
    impl Hooks for Slow {
        async fn on_tool_start(&self, _: &Call, _: &Caller<'_>) {
            tokio::time::sleep(SECOND).await;
        }
        async fn on_tool_end(&self, _: &Outcome, _: &Caller<'_>) {
            tokio::time::sleep(SECOND).await;
        }
    }
    let yard =
        yard(|builder, log| builder.hooks(Slow).tool(scripted(ToolSpec::read("inline").inline(), log))).await;
    let from = Instant::now();
    let batch: Vec<_> = (0..20).map(|n| call(&format!("c{n}"), "inline", 1000, "ok")).collect();
    let outcomes = no_hang(yard.engine.session("s").dispatch(batch)).await;
    assert!(outcomes.iter().all(Outcome::success));
    assert_eq!(from.elapsed(), 3 * SECOND, "one after the other: start, handler, end");
    assert_eq!(yard.log.most_at_once(), 20);
    yard.events.check();
}

/// SC-2: an inline call that waits does not delay its siblings.
#[tokio::test(start_paused = true)]
async fn a_waiting_inline_call_delays_no_other() {
    let yard = yard(|builder, log| builder.tool(scripted(ToolSpec::read("inline").inline(), log))).await;
    let batch = vec![
        call("a", "inline", 1000, "ok"),
        call("b", "inline", 0, "panic"),
        call("c", "read", 1000, "ok"),
        call("d", "inline", 1000, "ok"),
    ];
    let outcomes = no_hang(yard.engine.session("s").dispatch(batch)).await;
    assert_eq!(shape(&outcomes), "a ok, b panic, c ok, d ok");
    let mut spans = yard.log.spans();
    spans.sort_unstable();
    assert_eq!(spans, ["a 0..1000", "b 0..0", "c 0..1000", "d 0..1000"]);
    yard.events.check();
}

/// CC-3: sessions that make one call at a time do not starve a session whose calls wait in line.
#[tokio::test(start_paused = true)]
async fn short_queues_do_not_starve_a_long_one() {
    let yard = yard(|builder, _| builder.pools(PoolWidths::new(1, 1))).await;
    let one_by_one = |name: &'static str| {
        let session = yard.engine.session(name);
        async move {
            for n in 0..100 {
                session.call(call(&format!("{name}{n}"), "read", 10, "ok")).await;
            }
        }
    };
    let waits = async {
        tokio::time::sleep(Duration::from_millis(55)).await;
        let batch = (0..3).map(|n| call(&format!("w{n}"), "read", 10, "ok")).collect::<Vec<_>>();
        yard.engine.session("w").dispatch(batch).await
    };
    let ((), (), waited) = tokio::join!(one_by_one("x"), one_by_one("y"), waits);
    assert!(waited.iter().all(Outcome::success));
    let started = yard.log.started();
    let last = started.iter().position(|id| id == "w2").unwrap();
    assert!(last < 6 + 3 * 3, "three sessions take turns: {:?}", &started[..20]);
    yard.events.check();
}

/// CC-3, CL-6: eight thousand sessions with one call each all get their results, and all units are released.
#[tokio::test(start_paused = true)]
async fn eight_thousand_sessions_with_a_call_each() {
    let yard = yard(|builder, _| builder).await;
    let one = |n: usize| {
        let session = yard.engine.session(format!("s{n}"));
        async move { session.call(call("c", "read", 1, "ok")).await }
    };
    let outcomes = no_hang(futures::future::join_all((0..8000).map(one))).await;
    assert_eq!(outcomes.len(), 8000);
    assert!(outcomes.iter().all(Outcome::success));
    assert_eq!(yard.log.most_at_once(), 20);
    quiet(&yard).await;
    yard.events.check();
}

/// Waits until no call runs or is queued: the remains of an abandoned dispatch end without help.
async fn quiet(yard: &Yard) {
    soon(async {
        loop {
            let status = yard.engine.status().await.unwrap();
            if status.pools.iter().all(|pool| pool.running == 0 && pool.queued == 0) {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// I1, I2, I3, SC-4: turns are cancelled and dropped at any moment on four threads while pools are resized and
/// paused: every call ends once and follows the grammar, and every permit comes back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn turns_may_be_dropped_at_any_moment() {
    let yard = yard(|builder, log| {
        builder
            .tool(scripted(ToolSpec::read("inline").inline(), log))
            .tool(scripted(ToolSpec::read("narrow").max_concurrency(2), log))
            .confirmations(Confirmations::default())
            .max_in_flight(7)
    })
    .await;
    let tools = ["read", "read", "inline", "concurrent", "narrow", "serial", "nothing", "read"];
    for round in 0..300_usize {
        let turn = Arc::new(yard.engine.session(format!("s{}", round % 3)).turn());
        let batch: Vec<_> = (0..60)
            .map(|n| {
                let end = if n % 5 == 0 { "polite" } else { "ok" };
                call(&format!("c{n}"), tools[(n / 3 + round) % 8], 0, end)
            })
            .collect();
        let dispatch = tokio::spawn({
            let turn = turn.clone();
            async move { turn.dispatch(batch).await }
        });
        let operator = tokio::spawn({
            let engine = yard.engine.clone();
            async move {
                if round % 10 == 0 {
                    engine.resize(ToolClass::Read, 1 + round / 10 % 7).await.unwrap();
                    engine.pause(ToolClass::Concurrent).await.unwrap();
                    engine.resume(ToolClass::Concurrent).await.unwrap();
                }
            }
        });
        for _ in 0..round * 37 % 400 {
            tokio::task::yield_now().await;
        }
        if round % 4 == 3 {
            dispatch.abort();
            let _ = soon(dispatch).await; // aborted, or finished before
        } else {
            turn.cancel();
            assert_eq!(soon(dispatch).await.unwrap().len(), 60);
        }
        soon(operator).await.unwrap();
    }
    quiet(&yard).await;
    let report = soon(yard.engine.shutdown(Drain::default())).await;
    assert_eq!(report.abandoned, 0);
    assert_eq!(yard.log.running(), 0);
    yard.events.check();
}

/// An approver that never answers; counts the questions asked and those still open.
#[derive(Clone, Default)]
struct Never {
    asked: Arc<AtomicUsize>,
    open: Arc<AtomicUsize>,
}

/// The guard of an open question.
struct Open(Never);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl Approver for Never {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        self.open.fetch_add(1, Ordering::SeqCst);
        let _open = Open(self.clone());
        self.asked.fetch_add(1, Ordering::SeqCst);
        std::future::pending().await
    }
}

/// SC-4, PO-4: a cancel while questions are being asked leaves no question behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_question_outlives_its_call() {
    let never = Never::default();
    let yard =
        yard(|builder, _| builder.approver(never.clone()).confirmations(Confirmations::default())).await;
    for round in 0..200 {
        let asked = never.asked.load(Ordering::SeqCst);
        let turn = Arc::new(yard.engine.session("s").turn());
        let batch: Vec<_> = (0..50).map(|n| call(&format!("c{n}"), "concurrent", 0, "ok")).collect();
        let dispatch = tokio::spawn({
            let turn = turn.clone();
            async move { turn.dispatch(batch).await }
        });
        until(|| never.asked.load(Ordering::SeqCst) >= asked + round % 25).await;
        turn.cancel();
        let outcomes = soon(dispatch).await.unwrap();
        assert!(outcomes.iter().all(|outcome| !outcome.success()));
    }
    until(|| never.open.load(Ordering::SeqCst) == 0).await;
    assert!(yard.log.started().is_empty());
    yard.events.check();
}

async fn until(done: impl Fn() -> bool) {
    let wait = async {
        while !done() {
            tokio::task::yield_now().await;
        }
    };
    soon(wait).await;
}
