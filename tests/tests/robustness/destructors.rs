//! Destructors that panic, several at once too, and panics whose payload does: each costs one call at most, and never
//! the process.

use crate::{SECOND, Tasks, no_hang, soon};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::{panic::panic_any, path::Path, sync::Arc};
use tokio::runtime::Builder;
use toolyard::{
    Abort, Answer, ApprovalRequest, Approver, BreakerPolicy, Call, Caller, Confirmations, Denied, Drain,
    Event, EventSink, EventWriter, Grant, Hooks, Outcome, PathEscape, PathScope, RuntimePolicy,
    SessionOptions, Tool, ToolClass, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait,
    from_fn,
};
use toolyard_tests::{call, scripted, shape, yard};

/// Panics when it is dropped, as `lock().unwrap()` does in a destructor.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("scripted panic in drop")
    }
}

/// A tool that panics when it is dropped, whose handler does so too, and so does its `cancel`.
struct Bombs {
    _bomb: Bomb,
}

#[async_trait]
impl Tool for Bombs {
    async fn execute(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let _bomb = Bomb;
        match args["end"].as_str() {
            Some("cancelled") => cx.cancelled().await,
            Some("hang") => std::future::pending().await,
            _ => std::mem::forget(_bomb),
        }
        Ok("done".into())
    }

    async fn cancel(&self) -> bool {
        let _bomb = Bomb;
        std::future::pending().await
    }
}

fn bombs(spec: ToolSpec) -> impl ToolFactory {
    from_fn(spec, || Bombs { _bomb: Bomb })
}

/// SC-2: a handler's future and its tool that both panic when they are dropped at a timeout end their call as `panic`,
/// and no other; so do those that end by themselves, in a task, in place, and on a thread.
#[tokio::test(start_paused = true)]
async fn two_destructors_that_panic_end_only_their_call() {
    for placed in [ToolSpec::inline as fn(ToolSpec) -> ToolSpec, ToolSpec::blocking, |spec| spec] {
        let yard = yard(|builder, _| {
            builder.tool(bombs(placed(ToolSpec::write("bombs").timeout(SECOND)))).blocking(Arc::new(Tasks))
        })
        .await;
        let session = yard.engine.session("s");
        let placement = yard.engine.registry().get("bombs").unwrap().spec().placement;
        for end in ["hang", "ok"] {
            let batch = vec![call("b", "bombs", 0, end), call("s", "serial", 0, "ok")];
            let outcomes = no_hang(session.dispatch(batch)).await;
            let is_zombie = placement == toolyard::Placement::Blocking && end == "hang";
            // A blocking handler that hangs is not dropped: it is a zombie.
            let expected = if is_zombie { "b timeout, s queue_timeout" } else { "b panic, s ok" };
            assert_eq!(shape(&outcomes), expected, "{placement:?} {end}");
            if is_zombie {
                break;
            }
        }
        yard.events.check();
    }
}

/// SC-4, SC-6: the same when the call is cancelled and its handler abandoned, while its tool's `cancel` still runs.
#[tokio::test(start_paused = true)]
async fn destructors_that_panic_after_a_cancel_end_only_their_call() {
    let yard = yard(|builder, _| builder.tool(bombs(ToolSpec::write("bombs")))).await;
    for end in ["hang", "cancelled"] {
        let session = yard.engine.session(end);
        let cancel = async {
            tokio::time::sleep(SECOND).await;
            session.cancel_call("b");
        };
        let batch = vec![call("b", "bombs", 0, end), call("s", "serial", 0, "ok")];
        let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), cancel) }).await;
        assert_eq!(shape(&outcomes), "b panic, s ok", "{end}");
    }
    yard.events.check();
}

/// SC-3: the same when their task is dropped with its runtime.
#[test]
fn destructors_that_panic_with_their_runtime_end_only_their_call() {
    let engines = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let yard = engines.block_on(yard(|builder, _| builder.tool(bombs(ToolSpec::write("bombs")))));
    let session = yard.engine.session_with("s", SessionOptions::default().resource(Bomb));
    let callers = Builder::new_current_thread().enable_all().build().unwrap();
    let outcomes = callers.block_on(soon(async {
        let go = async {
            while !yard.events.of_call("b").contains(&"dispatch.attempt") {
                tokio::task::yield_now().await;
            }
            tokio::task::yield_now().await;
            engines.shutdown_background();
        };
        tokio::join!(session.dispatch(vec![call("b", "bombs", 0, "hang")]), go).0
    }));
    assert_eq!(shape(&outcomes), "b internal");
    yard.events.check();
    drop(session);
}

/// A tool whose handler panics with a payload that panics when it is dropped.
struct PanicsWithBomb;

#[async_trait]
impl Tool for PanicsWithBomb {
    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        panic_any(Bomb)
    }
}

/// SC-2, CB-2: a panic whose payload panics when it is dropped ends its call as `panic` and is counted.
#[tokio::test(start_paused = true)]
async fn a_payload_that_panics_is_a_panic_and_counted() {
    for placed in [ToolSpec::inline as fn(ToolSpec) -> ToolSpec, ToolSpec::blocking, |spec| spec] {
        let yard = yard(|builder, _| {
            builder
                .tool(from_fn(placed(ToolSpec::write("payload")), || PanicsWithBomb))
                .blocking(Arc::new(Tasks))
                .breaker(BreakerPolicy::default())
        })
        .await;
        let session = yard.engine.session("s");
        let batch: Vec<_> = (0..6).map(|n| call(&format!("p{n}"), "payload", 0, "ok")).collect();
        let outcomes = no_hang(session.dispatch(batch)).await;
        assert_eq!(shape(&outcomes[..5]), "p0 panic, p1 panic, p2 panic, p3 panic, p4 panic");
        assert_eq!(shape(&outcomes[5..]), "p5 circuit_open", "five failures open the breaker");
        yard.events.check();
    }
}

/// An embedder's code that panics, with a payload that panics too, wherever it is called, and that panics when it is
/// dropped.
struct Everything {
    _bomb: Bomb,
}

fn everything() -> Everything {
    Everything { _bomb: Bomb }
}

#[async_trait]
impl Hooks for Everything {
    async fn on_tool_call(&self, call: &Call, _: &Caller<'_>) -> Result<(), Abort> {
        match call.id.as_str() {
            "hook panics" => panic_any(Bomb),
            "hook hangs" => {
                let _bomb = Bomb;
                std::future::pending().await
            }
            _ => {}
        }
        Ok(())
    }

    async fn on_tool_end(&self, _: &Outcome, _: &Caller<'_>) {
        panic_any(Bomb)
    }
}

#[async_trait]
impl Approver for Everything {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        if request.call_id().as_str() == "approver hangs" {
            let _bomb = Bomb;
            std::future::pending().await
        }
        panic_any(Bomb)
    }
}

impl RuntimePolicy for Everything {
    fn check(&self, _: &ToolSpec, args: &Value, _: &Caller<'_>) -> Result<Grant, Denied> {
        if args["policy"] == json!("panics") { panic_any(Bomb) } else { Ok(Grant::host()) }
    }
}

impl PathScope for Everything {
    fn root(&self) -> &Path {
        Path::new("/")
    }

    fn check(&self, _: &str) -> Result<(), PathEscape> {
        panic_any(Bomb)
    }
}

impl EventSink for Everything {
    fn accept(&self, _: &Event) {
        panic_any(Bomb)
    }
}

impl EventWriter for Everything {
    fn write(&mut self, _: &Event) -> std::io::Result<()> {
        Ok(())
    }
}

impl ToolFactory for Everything {
    fn spec(&self) -> ToolSpec {
        ToolSpec::read("everything")
    }

    fn create(&self) -> Arc<dyn Tool> {
        panic_any(Bomb)
    }

    fn class_for(&self, _: &Value) -> Option<ToolClass> {
        panic_any(Bomb)
    }
}

/// SC-2, V1: policy, hooks, approver, workspace, sinks, factories and resources may panic with such a payload, and the
/// engine with all of them is dropped in one piece, though each of them panics.
#[tokio::test(start_paused = true)]
async fn an_engine_is_dropped_with_parts_that_all_panic() {
    let yard = yard(|builder, log| {
        builder
            .tool(everything())
            .tool(scripted(ToolSpec::write("asks"), log))
            .tool(scripted(ToolSpec::read("looks").requires_fs(toolyard::FsMode::Read, "path"), log))
            .policy(everything())
            .hooks(everything())
            .confirmations(Confirmations::default())
            .approver(everything())
            .workspace(Arc::new(everything()))
            .events(everything())
            .events(everything())
            .event_writer(everything())
            .resource(Bomb)
    })
    .await;
    let session = yard.engine.session_with("s", SessionOptions::default().resource(everything()));
    let batch = vec![
        call("factory", "everything", 0, "ok"),
        call("hook panics", "read", 0, "ok"),
        call("hook hangs", "read", 0, "ok"),
        call("approver panics", "asks", 0, "ok"),
        call("approver hangs", "asks", 0, "ok"),
        Call::new("policy", "read", json!({"policy": "panics"})),
        Call::new("workspace", "looks", json!({"path": "x"})),
        call("fine", "read", 0, "ok"),
    ];
    let outcomes = no_hang(session.dispatch(batch)).await;
    assert_eq!(
        shape(&outcomes),
        "factory panic, hook panics aborted, hook hangs aborted, approver panics internal, \
         approver hangs confirmation_timeout, policy internal, workspace internal, fine ok"
    );
    no_hang(yard.engine.shutdown(Drain::default())).await;
    drop((session, yard));
    tokio::time::sleep(SECOND).await;
}

/// SC-2: a tool dropped with a job that is given to no thread panics alone.
#[tokio::test(start_paused = true)]
async fn a_job_that_is_dropped_panics_alone() {
    struct Drops;
    impl toolyard::Blocking for Drops {
        fn spawn(&self, _: BoxFuture<'static, ()>) {}
    }
    let yard =
        yard(|builder, _| builder.tool(bombs(ToolSpec::write("bombs").blocking())).blocking(Arc::new(Drops)))
            .await;
    let batch = vec![call("b", "bombs", 0, "ok"), call("s", "serial", 0, "ok")];
    let outcomes = no_hang(yard.engine.session("s").dispatch(batch)).await;
    assert_eq!(shape(&outcomes), "b panic, s ok");
    yard.events.check();
}
