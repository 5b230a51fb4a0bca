//! The life of a call: timeouts, panics, cancels, drain, and tools that are replaced or removed.

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use serde_json::{Value, json};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tokio::time::Instant;
use toolyard::{
    BuildError, Call, Drain, Effect, Engine, ErrorKind, Outcome, RegisterError, RetryPolicy, Tool, ToolClass,
    ToolContext, ToolError, ToolOutput, ToolSettings, ToolSpec, async_trait, from_fn, tool_fn,
};
use toolyard_tests::{call, kinds, scripted, shape, yard};

const SECOND: Duration = Duration::from_secs(1);

/// T4, first half: a call times out at 30 s ⇒ its result comes at exactly 30 s, the permit is back, the future dropped.
#[tokio::test(start_paused = true)]
async fn t4_a_call_times_out_exactly() {
    let settings = ToolSettings { timeout: Some(30 * SECOND), ..ToolSettings::default() };
    let yard = yard(|builder, _| builder.tool_config("serial", settings)).await;
    let from = Instant::now();
    let outcome = yard.engine.session("t4").call(call("x", "serial", 0, "deaf")).await;
    assert_eq!(from.elapsed(), 30 * SECOND);
    let error = outcome.error().unwrap();
    assert_eq!(
        (error.kind, error.message.as_str()),
        (ErrorKind::Timeout, "Tool exceeded 30s wall time limit")
    );
    assert_eq!((error.effect, error.retryable), (Effect::Unknown, false));
    assert_eq!(yard.log.spans(), ["x 0..30000"], "the handler's future was dropped");
    let status = yard.engine.status().await.unwrap();
    assert!(status.pools.iter().all(|pool| pool.running == 0 && pool.queued == 0), "{status:?}");
    yard.events.check();
}

/// V3: the default timeout is 60 s for none, read and write, 600 s for execute and network, none for a recursive
/// tool; a call may override it.
#[tokio::test(start_paused = true)]
async fn timeouts_have_their_defaults() {
    let yard = yard(|builder, log| {
        builder
            .retry(RetryPolicy::NONE)
            .tool(scripted(ToolSpec::execute("execute"), log))
            .tool(scripted(ToolSpec::network("network"), log))
            .tool(scripted(ToolSpec::read("recursive").recursive(), log))
    })
    .await;
    let session = yard.engine.session("s");
    for (tool, seconds) in [("read", 60), ("serial", 60), ("execute", 600), ("network", 600)] {
        let from = Instant::now();
        assert_eq!(kinds(&[session.call(call("x", tool, 0, "hang")).await]), [Some(ErrorKind::Timeout)]);
        assert_eq!(from.elapsed(), Duration::from_secs(seconds), "{tool}");
    }
    let own = call("x", "read", 0, "hang").timeout(7 * SECOND);
    let from = Instant::now();
    session.call(own).await;
    assert_eq!(from.elapsed(), 7 * SECOND);
    assert!(session.call(call("x", "recursive", 3_600_000, "ok")).await.success());
}

/// V3: `duration_ms` counts from when the call's run began: its wait for permits and its run, and no earlier run.
#[tokio::test(start_paused = true)]
async fn a_duration_is_the_wait_and_the_run() {
    let yard = yard(|builder, _| builder).await;
    yard.engine.resize(ToolClass::Read, 1).await.unwrap();
    let batch = vec![
        call("write", "serial", 1_000, "ok"),
        call("first", "read", 200, "ok"),
        call("second", "read", 300, "fail"),
        call("unknown", "nothing", 0, "ok"),
    ];
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    let of = |outcome: &Outcome| [outcome.queued(), outcome.ran()].map(|time| time.as_millis());
    assert_eq!(outcomes.iter().map(of).collect::<Vec<_>>(), [[0, 1_000], [0, 200], [200, 300], [0, 0]]);
    let durations: Vec<_> = outcomes.iter().map(Outcome::duration_ms).collect();
    assert_eq!(durations, [1_000, 200, 500, 0]);
}

/// OB-2: a handler knows its session, agent, turn and batch, as events name them; calls that it dispatches belong to
/// its turn, and those of an agent that it forks to a turn of that agent.
#[tokio::test(start_paused = true)]
async fn a_handler_knows_its_place() {
    use toolyard::SubAgents;
    fn place(cx: &ToolContext) -> String {
        format!("{} {} turn {} batch {}", cx.session(), cx.agent(), cx.turn(), cx.batch())
    }
    let yard = yard(|builder, _| {
        let place_of =
            tool_fn(ToolSpec::read("place"), |(): (), cx: ToolContext| async move { Ok(place(&cx)) });
        let nests = tool_fn(ToolSpec::read("nests"), |(): (), cx: ToolContext| async move {
            let nested = cx.dispatch(vec![Call::new("nested", "place", "{}")]).await;
            let agent = cx.fork(toolyard::ForkPolicy::default())?;
            let forked = agent.dispatch(vec![Call::new("forked", "place", "{}")]).await;
            Ok([place(&cx), nested[0].to_text(), forked[0].to_text()].join("; "))
        });
        builder.tool(place_of).tool(nests)
    })
    .await;
    let session = yard.engine.session("own name");
    assert_eq!(session.call(Call::new("a", "place", "{}")).await.to_text(), "own name root turn 1 batch 1");
    let turn = session.turn();
    let outcomes = turn.dispatch(vec![Call::new("b", "nests", "{}")]).await;
    assert_eq!(turn.number(), 2);
    let places = "own name root turn 2 batch 2; own name root turn 2 batch 3; own name root/1 turn 3 batch 4";
    assert_eq!(outcomes[0].to_text(), places);
    let events = yard.events.events();
    let called = events.iter().filter(|event| event.kind.name() == "tool.called");
    let named = called.map(|event| {
        let (turn, batch) = (event.turn.unwrap(), event.batch.unwrap());
        format!("{} {} turn {turn} batch {batch}", event.session, event.agent)
    });
    assert_eq!(named.skip(1).collect::<Vec<_>>(), places.split("; ").collect::<Vec<_>>());
}

/// SC-2, SC-3: a batch of 37 good calls, one that panics, one that hangs and an unknown one gives 40 results in order.
#[tokio::test(start_paused = true)]
async fn a_bad_call_fails_alone() {
    let yard = yard(|builder, _| builder).await;
    let mut batch: Vec<_> = (0..37).map(|n| call(&format!("g{n}"), "read", 5, "ok")).collect();
    batch.insert(5, call("panics", "read", 0, "panic"));
    batch.insert(15, call("hangs", "read", 0, "hang"));
    batch.insert(25, call("unknown", "nothing", 0, "ok"));
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert_eq!(outcomes.len(), 40);
    assert_eq!(outcomes.iter().filter(|outcome| outcome.success()).count(), 37);
    assert_eq!(
        [5, 15, 25].map(|at: usize| outcomes[at].error().unwrap().kind),
        [ErrorKind::Panic, ErrorKind::Timeout, ErrorKind::NotFound]
    );
    yard.events.check();
}

/// SC-4, SC-5, T14: when a turn is cancelled, waiting calls end at once, a polite handler ends in its own time, one
/// that finishes anyway completes, and a deaf one is given up after the grace; a sibling turn is untouched.
#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_only_its_turn() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("t14");
    let (turn, sibling) = (session.turn(), session.turn());
    let batch = vec![
        call("polite", "concurrent", 0, "polite"),
        call("finishes", "concurrent", 0, "finishes"),
        call("deaf", "concurrent", 0, "deaf").timeout(100 * SECOND),
        call("later", "serial", 0, "ok"),
    ];
    let from = Instant::now();
    let cancel = async {
        tokio::time::sleep(5 * SECOND).await;
        turn.cancel();
        turn.cancel(); // the second cancel has no effect
    };
    let (outcomes, other, ()) =
        tokio::join!(turn.dispatch(batch), sibling.dispatch(vec![call("o", "read", 20_000, "ok")]), cancel);
    assert_eq!(shape(&outcomes), "polite cancelled, finishes ok, deaf cancelled, later cancelled");
    assert!(other[0].success());
    assert_eq!(from.elapsed(), 35 * SECOND);
    assert_eq!(yard.log.spans()[..3], ["polite 0..5000", "finishes 0..5000", "deaf 0..35000"]);
    let effects = [0, 2, 3].map(|at: usize| outcomes[at].error().unwrap().effect);
    assert_eq!(effects, [Effect::Unknown, Effect::Unknown, Effect::NotStarted]);
    assert!(outcomes[1].cancel_requested);
    let again = turn.dispatch(vec![call("again", "read", 0, "ok")]).await;
    assert_eq!(shape(&again), "again cancelled", "a turn stays cancelled");
    yard.events.check();
}

/// SC-5: `Tool::cancel` is called in addition to firing the token.
#[tokio::test(start_paused = true)]
async fn a_running_tool_gets_its_cancel() {
    #[derive(Default)]
    struct Stoppable(tokio::sync::Notify);
    #[async_trait]
    impl Tool for Stoppable {
        async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
            self.0.notified().await;
            Err(ToolError::cancelled("stopped").with_content(vec![toolyard::Content::text("half of it")]))
        }
        async fn cancel(&self) -> bool {
            self.0.notify_one();
            true
        }
    }
    let yard =
        yard(|builder, _| builder.tool(from_fn(ToolSpec::read("stoppable"), Stoppable::default))).await;
    let session = yard.engine.session("s");
    let cancel = async {
        tokio::time::sleep(SECOND).await;
        session.cancel();
    };
    let from = Instant::now();
    let (outcome, ()) = tokio::join!(session.call(call("c", "stoppable", 0, "ok")), cancel);
    assert_eq!(from.elapsed(), SECOND);
    let error = outcome.error().unwrap();
    assert_eq!(error.kind, ErrorKind::Cancelled);
    assert_eq!(error.content(), [toolyard::Content::text("half of it")], "partial output is kept");
}

/// CC-6b: dropping a dispatch cancels its calls; each still ends once, and its permits come back.
#[tokio::test(start_paused = true)]
async fn a_dropped_dispatch_leaves_nothing_behind() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let batch: Vec<_> = (0..30).map(|n| call(&format!("c{n}"), "read", 0, "polite")).collect();
    let dispatch = tokio::time::timeout(SECOND, session.dispatch(batch)).await;
    assert!(dispatch.is_err());
    tokio::time::sleep(SECOND).await;
    assert_eq!(yard.log.running(), 0);
    let status = yard.engine.status().await.unwrap();
    assert!(status.pools.iter().all(|pool| pool.running == 0 && pool.queued == 0), "{status:?}");
    yard.events.check();
}

/// SC-8: a drain ends new and waiting calls as `shutting_down`; running ones may finish, then are cancelled, then
/// given up; every call has its result.
#[tokio::test(start_paused = true)]
async fn a_drain_ends_calls_step_by_step() {
    let yard = yard(|builder, _| builder).await;
    let (session, other) = (yard.engine.session("a"), yard.engine.session("b"));
    let batch = vec![
        call("finishes in time", "concurrent", 20_000, "ok"),
        call("polite", "concurrent", 0, "polite"),
        call("deaf", "concurrent", 0, "deaf").timeout(100 * SECOND),
        call("later", "read", 0, "ok"),
    ];
    let queued = (0..21).map(|n| call(&format!("q{n}"), "read", 25_000, "ok")).collect::<Vec<_>>();
    let from = Instant::now();
    let shutdown = async {
        tokio::time::sleep(SECOND).await;
        let report = yard.engine.shutdown(Drain::default()).await;
        (report, from.elapsed())
    };
    let (outcomes, reads, (report, took)) =
        tokio::join!(session.dispatch(batch), other.dispatch(queued), shutdown);
    assert_eq!(
        shape(&outcomes),
        "finishes in time ok, polite cancelled, deaf cancelled, later shutting_down"
    );
    assert!(reads[..20].iter().all(Outcome::success));
    assert_eq!(shape(&reads[20..]), "q20 shutting_down");
    assert_eq!(yard.log.spans()[1..3], ["polite 0..31000", "deaf 0..61000"]);
    assert_eq!(took, 61 * SECOND);
    assert_eq!(report.abandoned, 1);
    let late = yard.engine.session("late").call(call("x", "read", 0, "ok")).await;
    assert_eq!(kinds(&[late]), [Some(ErrorKind::ShuttingDown)]);
    yard.events.check();
    let again = yard.engine.shutdown(Drain::default()).await;
    assert_eq!(again.abandoned, 0);
}

/// Every call gets a fresh tool from the factory.
#[tokio::test(start_paused = true)]
async fn every_call_has_a_fresh_tool() {
    struct Once(AtomicUsize, usize);
    #[async_trait]
    impl Tool for Once {
        async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
            let uses = self.0.fetch_add(1, Ordering::Relaxed);
            Ok(ToolOutput::json(json!({"made": self.1, "uses": uses})))
        }
    }
    let made = Arc::new(AtomicUsize::new(0));
    let count = made.clone();
    let make = move || Once(AtomicUsize::new(0), count.fetch_add(1, Ordering::Relaxed));
    let yard = yard(|builder, _| builder.tool(from_fn(ToolSpec::read("once"), make))).await;
    let batch: Vec<_> = (0..10).map(|n| call(&format!("c{n}"), "once", 0, "ok")).collect();
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    let mut numbers: Vec<_> =
        outcomes.iter().map(|outcome| outcome.output()["made"].as_u64().unwrap()).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..10).collect::<Vec<_>>());
    assert!(outcomes.iter().all(|outcome| outcome.output()["uses"] == 0));
    assert_eq!(made.load(Ordering::Relaxed), 10);
}

/// CL-8: after a `replace`, calls in flight finish on the old tool and later calls run on the new one.
#[tokio::test(start_paused = true)]
async fn a_tool_is_replaced_while_calls_run() {
    let says = |word: &'static str| {
        tool_fn(ToolSpec::read("say"), move |(): (), _: ToolContext| async move {
            tokio::time::sleep(SECOND).await;
            Ok(word)
        })
    };
    let yard = yard(|builder, _| builder.tool(says("old"))).await;
    let session = yard.engine.session("s");
    let replace = async {
        tokio::task::yield_now().await;
        yard.engine.registry().replace(says("new")).unwrap();
    };
    let (old, ()) = tokio::join!(session.call(call("a", "say", 0, "ok")), replace);
    assert_eq!(old.to_text(), "old");
    assert_eq!(session.call(call("b", "say", 0, "ok")).await.to_text(), "new");
}

/// When a tool is unregistered, its calls in flight finish, and waiting ones are `not_found`.
#[tokio::test(start_paused = true)]
async fn a_tool_is_removed_while_calls_wait() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let batch: Vec<_> = (0..22).map(|n| call(&format!("c{n}"), "read", 1000, "ok")).collect();
    let go = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        assert!(yard.engine.registry().unregister("read"));
    };
    let (outcomes, ()) = tokio::join!(session.dispatch(batch), go);
    assert!(outcomes[..20].iter().all(Outcome::success));
    assert_eq!(shape(&outcomes[20..]), "c20 not_found, c21 not_found");
    assert_eq!(outcomes[20].attempts, 0);
    yard.events.check();
}

/// `tool_config` overrides a tool's settings; an unknown or duplicate name or a bad schema is an error at build time.
#[tokio::test(start_paused = true)]
async fn a_tool_config_overrides_settings() {
    let concurrent = ToolSettings { concurrent: Some(true), ..ToolSettings::default() };
    let promoted = yard(|builder, _| builder.tool_config("serial", concurrent)).await;
    let batch: Vec<_> = (0..3).map(|n| call(&format!("c{n}"), "serial", 10, "ok")).collect();
    promoted.engine.session("s").dispatch(batch).await;
    assert_eq!(promoted.log.most_at_once(), 3);

    let error = Engine::builder().tool_config("nope", ToolSettings::default()).build().await.unwrap_err();
    assert!(matches!(error, BuildError::UnknownTool { name, .. } if name == "nope"));
    let twice = || tool_fn(ToolSpec::read("a"), |(): (), _: ToolContext| async { Ok(()) });
    let error = Engine::builder().tool(twice()).tool(twice()).build().await.unwrap_err();
    assert!(matches!(error, BuildError::Tool(RegisterError::Duplicate { name }) if name == "a"));
    let bad = ToolSpec::read("bad").input_schema(json!({"oneOf": []}));
    let error = Engine::builder().tool(scripted(bad, &promoted.log)).build().await.unwrap_err();
    assert!(error.to_string().contains("'/oneOf'"), "{error}");
}

/// CC-2: a pool is resized and paused while calls are in flight.
#[tokio::test(start_paused = true)]
async fn a_pool_is_resized_and_paused_while_calls_run() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let operator = async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert_eq!(yard.engine.resize(ToolClass::Read, 2).await, Ok(20));
        yard.engine.pause(ToolClass::Read).await.unwrap();
        let status = yard.engine.status().await.unwrap()[ToolClass::Read];
        assert_eq!((status.running, status.queued, status.width), (20, 10, 2));
        tokio::time::sleep(Duration::from_millis(95)).await;
        yard.engine.resume(ToolClass::Read).await.unwrap();
    };
    let batch: Vec<_> = (0..30).map(|n| call(&format!("c{n}"), "read", 10, "ok")).collect();
    let (outcomes, ()) = tokio::join!(session.dispatch(batch), operator);
    assert!(outcomes.iter().all(Outcome::success));
    let spans = yard.log.spans();
    assert_eq!((spans[20].as_str(), spans[29].as_str()), ("c20 100..110", "c29 140..150"));
    yard.events.check();
}

/// The engine works on a multi-threaded runtime and from any thread (I1, I3 in real time).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_sessions_on_many_threads() {
    let yard = yard(|builder, _| builder).await;
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let session = yard.engine.session(format!("s{n}"));
            tokio::spawn(async move {
                let tools = ["read", "serial", "concurrent", "read", "nothing"];
                let batch: Vec<_> =
                    (0..100).map(|m| call(&format!("c{m}"), tools[(m + n) % 5], 0, "ok")).collect();
                session.dispatch(batch).await
            })
        })
        .collect();
    for task in tasks {
        let outcomes = task.await.unwrap();
        assert_eq!(outcomes.iter().filter(|outcome| outcome.success()).count(), 80);
    }
    let status = yard.engine.status().await.unwrap();
    assert!(status.pools.iter().all(|pool| pool.running == 0 && pool.queued == 0), "{status:?}");
    yard.events.check();
}
