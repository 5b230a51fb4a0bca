//! Code of tools and embedders that panics where the caller does not expect it.

use crate::{SECOND, Tasks, no_hang};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use std::{path::Path, sync::Arc};
use toolyard::{
    Abort, Answer, ApprovalRequest, Approver, Call, Caller, Confirmations, Effect, Event, FsMode, Hooks,
    Outcome, PathEscape, PathScope, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, async_trait, from_fn,
};
use toolyard_tests::{Recorder, call, scripted, shape, yard};

/// Panics before it returns a future.
struct AtOnce;

impl Tool for AtOnce {
    fn execute<'a, 'b, 'c, 'd>(
        &'a self,
        _: &'b Value,
        _: &'c ToolContext,
    ) -> BoxFuture<'d, Result<ToolOutput, ToolError>>
    where
        'a: 'd,
        'b: 'd,
        'c: 'd,
        Self: 'd,
    {
        panic!("scripted panic")
    }
}

/// SC-2: a handler that panics before its first wait ends only its own call, both in a task and inline.
#[tokio::test(start_paused = true)]
async fn a_panicking_handler_ends_only_its_call() {
    let yard = yard(|builder, _| {
        builder
            .tool(from_fn(ToolSpec::read("task"), || AtOnce))
            .tool(from_fn(ToolSpec::read("inline").inline(), || AtOnce))
    })
    .await;
    let batch = ["task", "inline", "read"].map(|tool| call(tool, tool, 0, "ok"));
    let outcomes = no_hang(yard.engine.session("s").dispatch(batch.to_vec())).await;
    assert_eq!(shape(&outcomes), "task panic, inline panic, read ok");
    assert!(outcomes[..2].iter().all(|outcome| outcome.attempts == 1));
    yard.events.check();
}

/// A tool that panics when it is dropped.
struct InDrop;

#[async_trait]
impl Tool for InDrop {
    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        Ok("done".into())
    }
}

impl Drop for InDrop {
    fn drop(&mut self) {
        panic!("scripted panic")
    }
}

/// SC-2: a tool whose drop panics ends only its own call and keeps no permit.
#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_on_drop_ends_only_its_call() {
    let yard = yard(|builder, _| {
        builder
            .tool(from_fn(ToolSpec::write("task"), || InDrop))
            .tool(from_fn(ToolSpec::write("inline").inline(), || InDrop))
    })
    .await;
    let batch = ["task", "inline", "serial"].map(|tool| call(tool, tool, 0, "ok"));
    let outcomes = no_hang(yard.engine.session("s").dispatch(batch.to_vec())).await;
    assert_eq!(shape(&outcomes), "task panic, inline panic, serial ok");
    yard.events.check();
}

/// SC-2: a factory that panics ends only the call it was to create a tool for.
#[tokio::test(start_paused = true)]
async fn a_panicking_factory_ends_only_its_call() {
    let make = || -> InDrop { panic!("scripted panic") };
    let yard = yard(|builder, _| builder.tool(from_fn(ToolSpec::read("makes"), make))).await;
    let batch = vec![call("m", "makes", 0, "ok"), call("r", "read", 0, "ok")];
    let outcomes = no_hang(yard.engine.session("s").dispatch(batch)).await;
    assert_eq!(shape(&outcomes), "m panic, r ok");
    yard.events.check();
}

/// SC-4: a tool whose `cancel` panics still gets its grace, and its call ends.
#[tokio::test(start_paused = true)]
async fn a_tool_that_panics_in_cancel_has_its_grace() {
    struct Stubborn;
    #[async_trait]
    impl Tool for Stubborn {
        async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
            tokio::time::sleep(10 * SECOND).await;
            Ok("finished all the same".into())
        }
        fn cancel<'a, 'd>(&'a self) -> BoxFuture<'d, bool>
        where
            'a: 'd,
            Self: 'd,
        {
            panic!("scripted panic")
        }
    }
    let yard = yard(|builder, _| builder.tool(from_fn(ToolSpec::read("stubborn"), || Stubborn))).await;
    let session = yard.engine.session("s");
    let cancel = async {
        tokio::time::sleep(SECOND).await;
        session.cancel();
    };
    let (outcome, ()) = tokio::join!(no_hang(session.call(call("c", "stubborn", 0, "ok"))), cancel);
    assert_eq!(outcome.to_text(), "finished all the same");
    assert!(outcome.cancel_requested);
    yard.events.check();
}

/// PO-4: an approver that panics before its first wait gives no answer: the call is `internal` and does not run.
#[tokio::test(start_paused = true)]
async fn a_panicking_approver_gives_no_answer() {
    struct NoApprover;
    impl Approver for NoApprover {
        fn ask<'a, 'b, 'd>(&'a self, _: &'b ApprovalRequest) -> BoxFuture<'d, Answer>
        where
            'a: 'd,
            'b: 'd,
            Self: 'd,
        {
            panic!("scripted panic")
        }
    }
    let yard = yard(|builder, _| builder.confirmations(Confirmations::default()).approver(NoApprover)).await;
    let batch = vec![call("s", "serial", 0, "ok"), call("r", "read", 0, "ok")];
    let outcomes = no_hang(yard.engine.session("s").dispatch(batch)).await;
    assert_eq!(shape(&outcomes), "s internal, r ok");
    let error = outcomes[0].error().unwrap();
    assert_eq!((error.message.as_str(), error.effect), ("the approver panicked", Effect::NotStarted));
    assert_eq!(yard.log.started(), ["r"]);
    yard.events.check();
}

/// Hooks that panic, before they return a future, for the call whose id is the hook's name.
struct PanickyHooks;

fn panic_at(hook: &str, id: &str) {
    assert!(hook != id, "scripted panic");
}

impl Hooks for PanickyHooks {
    fn on_tool_call<'a, 'b, 'c, 'e, 'd>(
        &'a self,
        call: &'b Call,
        _: &'c Caller<'e>,
    ) -> BoxFuture<'d, Result<(), Abort>>
    where
        'a: 'd,
        'b: 'd,
        'c: 'd,
        'e: 'd,
        Self: 'd,
    {
        panic_at("call", call.id.as_str());
        Box::pin(async { Ok(()) })
    }
    fn on_tool_start<'a, 'b, 'c, 'e, 'd>(&'a self, call: &'b Call, _: &'c Caller<'e>) -> BoxFuture<'d, ()>
    where
        'a: 'd,
        'b: 'd,
        'c: 'd,
        'e: 'd,
        Self: 'd,
    {
        panic_at("start", call.id.as_str());
        Box::pin(async {})
    }
    fn on_tool_end<'a, 'b, 'c, 'e, 'd>(&'a self, outcome: &'b Outcome, _: &'c Caller<'e>) -> BoxFuture<'d, ()>
    where
        'a: 'd,
        'b: 'd,
        'c: 'd,
        'e: 'd,
        Self: 'd,
    {
        panic_at("end", outcome.call_id.as_str());
        Box::pin(async {})
    }
}

/// V1: a hook that panics before its first wait refuses the call if it runs before it, and only causes a log line
/// after.
#[tokio::test(start_paused = true)]
async fn a_panicking_hook_fails_only_its_call() {
    let yard = yard(|builder, log| {
        builder.hooks(PanickyHooks).tool(scripted(ToolSpec::read("inline").inline(), log))
    })
    .await;
    for tool in ["read", "serial", "inline"] {
        let batch = ["call", "start", "end", "fine"].map(|id| call(id, tool, 0, "ok"));
        let outcomes = no_hang(yard.engine.session("s").dispatch(batch.to_vec())).await;
        assert_eq!(shape(&outcomes), "call aborted, start ok, end ok, fine ok", "{tool}");
    }
    yard.events.check();
}

/// PO-6: a workspace whose check panics refuses the call; its siblings go on.
#[tokio::test(start_paused = true)]
async fn a_panicking_workspace_refuses_only_its_call() {
    struct NoScope;
    impl PathScope for NoScope {
        fn root(&self) -> &Path {
            Path::new("/")
        }
        fn check(&self, _: &str) -> Result<(), PathEscape> {
            panic!("scripted panic")
        }
    }
    let yard = yard(|builder, log| {
        let cat = ToolSpec::read("cat").requires_fs(FsMode::Read, "path");
        builder.workspace(Arc::new(NoScope)).tool(scripted(cat, log))
    })
    .await;
    let batch = vec![Call::new("c", "cat", json!({"path": "x"})), call("r", "read", 0, "ok")];
    let outcomes = no_hang(yard.engine.session("s").dispatch(batch)).await;
    assert_eq!(shape(&outcomes), "c internal, r ok");
    assert_eq!(outcomes[0].error().unwrap().effect, Effect::NotStarted);
    assert_eq!(yard.log.started(), ["r"]);
    yard.events.check();
}

/// SC-3, OB-3: a sink that panics loses only its own events; every call has its result, and other sinks see all events.
#[tokio::test(start_paused = true)]
async fn a_panicking_sink_loses_only_its_events() {
    let after = Recorder::default();
    let yard = yard(|builder, _| {
        let panics = |event: &Event| assert!(event.call_id.is_none(), "scripted panic");
        builder.events(panics).events(after.clone())
    })
    .await;
    let session = yard.engine.session("s");
    let batch = ["read", "serial", "concurrent", "nothing"].map(|tool| call(tool, tool, 1, "ok"));
    let outcomes = no_hang(session.dispatch(batch.to_vec())).await;
    assert_eq!(shape(&outcomes), "read ok, serial ok, concurrent ok, nothing not_found");
    assert!(no_hang(session.call(call("again", "serial", 0, "ok"))).await.success(), "the lease came back");
    assert_eq!(after.events(), yard.events.events());
    assert_eq!(after.ended(), ["nothing", "read", "serial", "concurrent", "again"]);
    after.check();
}

/// SC-2: a blocking handler that panics ends only its own call, whose lease comes back.
#[tokio::test(start_paused = true)]
async fn a_panicking_blocking_handler_ends_only_its_call() {
    let yard = yard(|builder, log| {
        builder.tool(scripted(ToolSpec::write("blocks").blocking(), log)).blocking(Arc::new(Tasks))
    })
    .await;
    let batch = vec![call("b", "blocks", 0, "panic"), call("s", "serial", 0, "ok")];
    let outcomes = no_hang(yard.engine.session("s").dispatch(batch)).await;
    assert_eq!(shape(&outcomes), "b panic, s ok");
    yard.events.check();
}

/// SC-2: a blocking handler that panics before its first wait also ends its call as a panic.
#[tokio::test(start_paused = true)]
async fn a_blocking_handler_that_panics_at_once_ends_as_panic() {
    let yard = yard(|builder, _| {
        builder.tool(from_fn(ToolSpec::read("blocking").blocking(), || AtOnce)).blocking(Arc::new(Tasks))
    })
    .await;
    let outcome = no_hang(yard.engine.session("s").call(call("b", "blocking", 0, "ok"))).await;
    assert_eq!(shape(&[outcome]), "b panic");
    yard.events.check();
}
