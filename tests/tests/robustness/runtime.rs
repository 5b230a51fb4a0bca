//! An engine whose runtime is not that of its callers, or has been shut down (SC-3).

use crate::soon;
use serde_json::json;
use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};
use tokio::runtime::{Builder, Runtime};
use toolyard::{Call, Drain, ErrorKind, Outcome, ToolClass, ToolSettings, ToolSpec};
use toolyard_tests::{call, kinds, scripted, shape, yard};

fn engines() -> Runtime {
    Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

fn callers() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// SC-3: a caller without a runtime gets its results, over several runs too.
#[test]
fn a_caller_may_be_outside_tokio() {
    let engines = engines();
    let yard = engines.block_on(yard(|builder, _| builder));
    let session = yard.engine.session("s");
    let tools = ["read", "serial", "concurrent", "serial", "nothing", "read"];
    let batch: Vec<_> = (0..).zip(tools).map(|(n, tool)| call(&format!("c{n}"), tool, 1, "ok")).collect();
    let outcomes = futures::executor::block_on(session.dispatch(batch));
    assert_eq!(shape(&outcomes), "c0 ok, c1 ok, c2 ok, c3 ok, c4 not_found, c5 ok");
    yard.events.check();
}

/// SC-3: if the engine's runtime shuts down, every call of a dispatch driven by another runtime ends as `internal`,
/// whether running or waiting.
#[test]
fn a_runtime_shuts_down_under_running_and_waiting_calls() {
    let engines = engines();
    let yard = engines.block_on(yard(|builder, _| builder));
    let session = yard.engine.session("s");
    let outcomes = callers().block_on(soon(async {
        let mut batch: Vec<_> = (0..2000).map(|n| call(&format!("c{n}"), "read", 0, "hang")).collect();
        batch.extend((0..3).map(|n| call(&format!("s{n}"), "serial", 0, "hang")));
        let go = async {
            while yard.log.running() < 20 {
                tokio::task::yield_now().await;
            }
            engines.shutdown_background();
        };
        tokio::join!(session.dispatch(batch), go).0
    }));
    assert_eq!(kinds(&outcomes), [Some(ErrorKind::Internal); 2003]);
    assert_eq!(yard.log.started().len(), 20);
    assert_eq!(yard.log.running(), 0);
    yard.events.check();
}

/// SC-3, CL-5: if the engine's runtime shuts down, every call of a stream ends as `internal`, whether it runs or
/// waits for its run.
#[test]
fn a_runtime_shuts_down_under_a_stream() {
    let engines = engines();
    let yard = engines.block_on(yard(|builder, _| builder));
    let batch = yard.engine.session("s").open_batch();
    batch.push(call("runs", "read", 0, "hang"));
    batch.push(call("waits", "serial", 0, "ok"));
    while yard.events.of_call("waits").is_empty() || yard.log.running() == 0 {
        std::thread::yield_now();
    }
    engines.shutdown_background();
    let outcomes = callers().block_on(soon(batch.finish()));
    assert_eq!(shape(&outcomes), "runs internal, waits internal");
    yard.events.check();
}

/// SC-3: the same holds for calls that wait without a permit: for their next attempt, for a token, or for the result
/// of another call with their key.
#[test]
fn a_runtime_shuts_down_under_calls_without_permits() {
    let keyed = |id: &str| {
        let mut call = Call::new(id, "again", json!({"end": "transient", "hint_ms": 20_000}));
        call.idempotency_key = Some("k".into());
        call
    };
    for batch in [
        vec![Call::new("a", "serial", json!({"end": "harmless", "hint_ms": 20_000}))],
        vec![call("a", "paced", 0, "ok"), call("b", "paced", 0, "ok")],
        vec![keyed("a"), keyed("b"), keyed("c")],
    ] {
        let engines = engines();
        let paced = ToolSettings { rate: Some("15/m burst 1".parse().unwrap()), ..ToolSettings::default() };
        let yard = engines.block_on(yard(|builder, log| {
            builder
                .tool(scripted(ToolSpec::write("again").concurrent().idempotent(), log))
                .tool(scripted(ToolSpec::read("paced"), log))
                .tool_config("paced", paced)
        }));
        let session = yard.engine.session("s");
        let (count, tool) = (batch.len(), batch[0].name.clone());
        let last = if &*tool == "paced" { "tool.completed" } else { "dispatch.retry" };
        let outcomes = callers().block_on(soon(async {
            let go = async {
                while !yard.events.of_call("a").contains(&last) {
                    tokio::task::yield_now().await;
                }
                engines.shutdown_background();
            };
            tokio::join!(session.dispatch(batch), go).0
        }));
        let kept = usize::from(&*tool == "paced");
        assert_eq!(kinds(&outcomes)[kept..], vec![Some(ErrorKind::Internal); count - kept], "{tool}");
        yard.events.check();
    }
}

/// SC-3: a call that arrives after the engine's runtime has shut down ends as `internal`, even if it needs approval.
#[test]
fn a_call_may_arrive_after_the_runtime_shut_down() {
    let engines = engines();
    let yard = engines.block_on(yard(|builder, log| {
        builder
            .tool(scripted(ToolSpec::read("blocks").blocking(), log))
            .tool(scripted(ToolSpec::execute("asks"), log))
            .confirmations(toolyard::Confirmations::default())
    }));
    let session = yard.engine.session("s");
    engines.shutdown_background();
    let batch = ["read", "blocks", "concurrent", "asks"].map(|tool| call(tool, tool, 0, "ok"));
    let outcomes: Vec<Outcome> = callers().block_on(soon(session.dispatch(batch.to_vec())));
    assert_eq!(shape(&outcomes), "read internal, blocks internal, concurrent internal, asks internal");
    assert!(yard.log.started().is_empty());
    yard.events.check();
}

/// V1: hooks have timers whatever drives the dispatch.
#[test]
fn hooks_run_for_a_caller_outside_tokio() {
    struct Quick;
    #[toolyard::async_trait]
    impl toolyard::Hooks for Quick {}
    let engines = engines();
    let yard = engines.block_on(yard(|builder, _| builder.hooks(Quick)));
    let session = yard.engine.session("s");
    let outcomes = futures::executor::block_on(session.dispatch(vec![call("c", "read", 1, "ok")]));
    assert_eq!(shape(&outcomes), "c ok");
}

/// SC-2: an inline handler has timers whatever drives the dispatch.
#[test]
fn an_inline_handler_runs_for_a_caller_outside_tokio() {
    let engines = engines();
    let yard =
        engines.block_on(yard(|builder, log| builder.tool(scripted(ToolSpec::read("inline").inline(), log))));
    let session = yard.engine.session("s");
    let outcomes = futures::executor::block_on(session.dispatch(vec![call("c", "inline", 1, "ok")]));
    assert_eq!(shape(&outcomes), "c ok");
}

/// SC-2, SC-3: a call does not wait for idle tasks of earlier calls that were lost with their runtime.
#[test]
fn a_call_does_not_wait_for_tasks_lost_earlier() {
    let engines = engines();
    let yard = engines.block_on(yard(|builder, _| builder));
    let session = yard.engine.session("s");
    let batch: Vec<_> = (0..100).map(|n| call(&format!("c{n}"), "read", 0, "ok")).collect();
    let before = engines.block_on(session.dispatch(batch.clone()));
    assert_eq!(kinds(&before), [None; 100]);
    engines.shutdown_background();
    let after = callers().block_on(soon(session.dispatch(batch)));
    assert_eq!(kinds(&after), [Some(ErrorKind::Internal); 100]);
    yard.events.check();
}

/// SC-2: a dropped engine leaves no task behind, and a live one keeps a bounded number of idle tasks.
#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn a_dropped_engine_drops_its_tasks() {
    let alive = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = alive();
    let yard = yard(|builder, _| {
        let mut widths = toolyard::PoolWidths::default();
        widths.read = 1000;
        builder.pools(widths)
    })
    .await;
    let batch: Vec<_> = (0..1000).map(|n| call(&format!("c{n}"), "read", 5, "ok")).collect();
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert_eq!(kinds(&outcomes), [None; 1000]);
    tokio::task::yield_now().await;
    assert!(alive() < 300, "{} tasks rest", alive());
    yard.engine.shutdown(toolyard::Drain::default()).await;
    drop(yard);
    while alive() > before {
        tokio::task::yield_now().await;
    }
}

/// SC-7: an engine is asked, changed and shut down from anywhere: outside of tokio, and in a runtime without timers.
#[test]
fn an_engine_is_managed_from_outside_its_runtime() {
    let engines = engines();
    let bare = Builder::new_current_thread().build().unwrap();
    for outside in [true, false] {
        let yard = engines.block_on(yard(|builder, _| builder));
        let engine = yard.engine.clone();
        let managed = async move {
            assert_eq!(engine.status().await.unwrap()[ToolClass::Read].width, 20);
            assert_eq!(engine.resize(ToolClass::Read, 3).await.unwrap(), 20);
            engine.pause(ToolClass::Read).await.unwrap();
            engine.resume(ToolClass::Read).await.unwrap();
            assert!(engine.events_written().await);
            let turn = engine.session("s").turn();
            let batch =
                vec![call("a", "read", 1, "ok"), call("b", "serial", 1, "ok"), call("c", "read", 1, "ok")];
            assert_eq!(shape(&turn.dispatch(batch.clone()).await), "a ok, b ok, c ok");
            assert_eq!(shape(&turn.resend(batch).await), "a ok, b ok, c ok");
            let stream = engine.session("s").open_batch();
            stream.push(call("d", "read", 1, "ok"));
            assert_eq!(shape(&stream.finish().await), "d ok");
            assert_eq!(engine.shutdown(Drain::default()).await.abandoned, 0);
            assert!(engine.status().await.is_err());
            assert!(engine.resize(ToolClass::Read, 4).await.is_err());
            assert_eq!(engine.shutdown(Drain::default()).await.abandoned, 0);
        };
        if outside {
            futures::executor::block_on(managed)
        } else {
            bare.block_on(managed)
        }
        yard.events.check();
    }
}

/// CL-3, SC-3: a dispatch that waits for a zombie between two runs does so wherever it is driven.
#[test]
fn a_dispatch_is_driven_in_a_runtime_without_timers() {
    let engines = engines();
    let yard = engines.block_on(yard(|builder, _| builder));
    let bare = Builder::new_current_thread().build().unwrap();
    let tools = ["read", "serial", "concurrent", "serial", "nothing", "read"];
    let batch: Vec<_> = (0..).zip(tools).map(|(n, tool)| call(&format!("c{n}"), tool, 1, "ok")).collect();
    let outcomes = bare.block_on(yard.engine.session("s").dispatch(batch));
    assert_eq!(shape(&outcomes), "c0 ok, c1 ok, c2 ok, c3 ok, c4 not_found, c5 ok");
    yard.events.check();
}

/// PO-4: a person outside of tokio looks at a question, with what it would change, and answers it.
#[test]
fn a_question_is_shown_outside_of_tokio() {
    struct Planned;
    impl toolyard::ToolFactory for Planned {
        fn spec(&self) -> ToolSpec {
            ToolSpec::write("planned")
        }

        fn create(&self) -> std::sync::Arc<dyn toolyard::Tool> {
            unreachable!("the person says no")
        }

        fn preview(&self, _: &serde_json::Value, _: &toolyard::Resources) -> Option<String> {
            Some("- old\n+ new".to_owned())
        }
    }
    let (engines, desk) = (engines(), toolyard::ApprovalDesk::default());
    let yard = engines.block_on(yard(|builder, _| {
        builder.tool(Planned).confirmations(toolyard::Confirmations::default()).approver(desk.clone())
    }));
    let session = yard.engine.session("s");
    let person = async {
        let question = desk.next().await.unwrap();
        assert_eq!(question.changes().await.as_deref(), Some("- old\n+ new"));
        desk.answer(question.id(), question.digest(), toolyard::Answer::deny("ada")).await.unwrap();
    };
    let asked = session.dispatch(vec![Call::new("c", "planned", "{}")]);
    let (outcomes, ()) = futures::executor::block_on(async { futures::join!(asked, person) });
    assert_eq!(shape(&outcomes), "c user_denied");
    yard.events.check();
}

/// SC-3: an engine whose runtime has shut down says so at once, and its shutdown ends.
#[test]
fn an_engine_without_its_runtime_is_managed_in_vain() {
    let engines = engines();
    let yard = engines.block_on(yard(|builder, _| builder));
    let engine = &yard.engine;
    engines.shutdown_timeout(crate::SECOND);
    futures::executor::block_on(async {
        assert!(engine.status().await.is_err());
        assert!(engine.resize(ToolClass::Read, 3).await.is_err());
        assert!(engine.pause(ToolClass::Read).await.is_err());
        assert!(engine.resume(ToolClass::Read).await.is_err());
        assert!(engine.events_written().await);
        assert_eq!(engine.shutdown(Drain::default()).await.abandoned, 0);
    });
    yard.events.check();
}

/// SC-3: no engine is built where it could not keep time.
#[test]
fn an_engine_is_not_built_without_timers() {
    let bare = Builder::new_current_thread().build().unwrap();
    let refused = bare.block_on(toolyard::Engine::builder().build()).unwrap_err();
    assert!(matches!(refused, toolyard::BuildError::NoTimers), "{refused}");
    assert!(refused.to_string().contains("enable_time"), "{refused}");
    let refused = futures::executor::block_on(toolyard::Engine::builder().build()).unwrap_err();
    assert!(matches!(refused, toolyard::BuildError::NoRuntime), "{refused}");
}

/// SC-3, SC-8: an engine whose runtime was shut down shuts down all the same, from another runtime, on which its calls
/// go on. Where it kept its time no time passes any more, so it waits for nothing.
#[test]
fn an_engine_without_its_runtime_waits_for_nothing() {
    struct Elsewhere(tokio::runtime::Handle);
    impl toolyard::Spawner for Elsewhere {
        fn spawn(&self, task: futures::future::BoxFuture<'static, ()>) {
            drop(self.0.spawn(task));
        }
    }
    let (engines, elsewhere) = (engines(), callers());
    let spawner = Arc::new(Elsewhere(elsewhere.handle().clone()));
    let yard = engines.block_on(yard(|builder, _| builder.spawner(spawner)));
    let session = yard.engine.session("s");
    let batch = vec![call("a", "read", 0, "deaf"), call("b", "serial", 0, "ok")];
    let mut dispatch = Box::pin(session.dispatch(batch));
    elsewhere.block_on(soon(async {
        while yard.log.running() == 0 {
            assert!(futures::poll!(&mut dispatch).is_pending());
            tokio::task::yield_now().await;
        }
    }));
    engines.shutdown_timeout(crate::SECOND);
    elsewhere.block_on(soon(yard.engine.shutdown(Drain::default())));
    let outcomes = elsewhere.block_on(soon(dispatch));
    assert_eq!(shape(&outcomes), "a cancelled, b shutting_down");
    yard.events.check();
}

/// V1, SC-3: a hook that hangs in a dispatch of another runtime is given up when the engine's runtime is shut down.
#[test]
fn a_hook_that_hangs_is_given_up_with_the_runtime() {
    struct Hangs(Arc<AtomicBool>);
    #[toolyard::async_trait]
    impl toolyard::Hooks for Hangs {
        async fn on_tool_call(&self, _: &Call, _: &toolyard::Caller<'_>) -> Result<(), toolyard::Abort> {
            self.0.store(true, Ordering::Relaxed);
            std::future::pending().await
        }
    }
    let (engines, begun) = (engines(), Arc::new(AtomicBool::new(false)));
    let yard = engines.block_on(yard(|builder, _| builder.hooks(Hangs(begun.clone()))));
    let session = yard.engine.session("s");
    let mut dispatch = Box::pin(session.dispatch(vec![call("a", "read", 0, "ok")]));
    callers().block_on(soon(async {
        while !begun.load(Ordering::Relaxed) {
            assert!(futures::poll!(&mut dispatch).is_pending());
            tokio::task::yield_now().await;
        }
    }));
    engines.shutdown_timeout(crate::SECOND);
    assert_eq!(shape(&callers().block_on(soon(dispatch))), "a aborted");
    yard.events.check();
}
