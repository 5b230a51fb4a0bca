//! V1: hooks run where the rule says, and a bad hook affects only its own call.

use super::no_hang;
use futures::FutureExt;
use serde_json::json;
use std::sync::Arc;
use std::{future::pending, sync::Mutex, time::Duration};
use tokio::sync::Notify;
use toolyard::{
    Abort, Answer, ApprovalRequest, Approver, Call, Caller, Confirmations, Hooks, NoHooks, Outcome,
    ToolContext, ToolError, ToolSpec, async_trait, tool_fn,
};
use toolyard_tests::{call, shape, yard};

/// Hooks and an approver that record what happens and act according to the call id.
#[derive(Clone, Default)]
struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

#[async_trait]
impl Hooks for Diary {
    async fn on_tool_call(&self, call: &Call, _: &Caller<'_>) -> Result<(), Abort> {
        self.note(format!("call {} {}", call.id, call.arguments.text()));
        match call.id.as_str() {
            "panics" => panic!("scripted panic"),
            "hangs" => pending().await,
            "stopped" => Err(Abort::because("not today")),
            _ => Ok(()),
        }
    }

    async fn on_tool_start(&self, call: &Call, _: &Caller<'_>) {
        self.note(format!("start {}", call.id));
        if call.id.as_str() == "late" {
            pending::<()>().await;
        }
    }

    async fn on_tool_end(&self, outcome: &Outcome, _: &Caller<'_>) {
        self.note(format!("end {}", outcome.call_id));
        assert!(outcome.call_id.as_str() != "late", "scripted panic");
    }
}

#[async_trait]
impl Approver for Diary {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        self.note(format!("ask {}", request.call_id()));
        Answer::allow("ada")
    }
}

/// V1: the hook with the raw arguments runs before any lookup, then comes approval, then the start hook before the
/// permits, then the end hook. A hook before the call that panics, hangs for 5 s or refuses ends its own call as
/// `aborted`.
#[tokio::test(start_paused = true)]
async fn hooks_run_in_the_order_of_v1() {
    let diary = Diary::default();
    let yard = yard(|builder, _| {
        builder.hooks(diary.clone()).approver(diary.clone()).confirmations(Confirmations::default())
    })
    .await;
    let batch = vec![
        Call::new("unknown", "nobody", "{broken"),
        call("panics", "read", 0, "ok"),
        call("hangs", "read", 0, "ok"),
        call("stopped", "read", 0, "ok"),
        call("late", "read", 0, "ok"),
        Call::new("good", "serial", "{}"),
    ];
    let from = tokio::time::Instant::now();
    let session = yard.engine.session("s");
    let outcomes = no_hang(session.dispatch(batch)).await;
    assert_eq!(
        shape(&outcomes),
        "unknown not_found, panics aborted, hangs aborted, stopped aborted, late ok, good ok"
    );
    assert_eq!(from.elapsed(), Duration::from_secs(10), "5 s each for the two that hang");
    let lines = diary.lines();
    assert_eq!(lines[0], "call unknown {broken");
    let of_good: Vec<_> = lines.iter().filter(|line| line.contains("good")).collect();
    assert_eq!(of_good, ["call good {}", "ask good", "start good", "end good"]);
    let of_stopped = yard.events.of_call("stopped");
    assert_eq!(of_stopped, ["tool.call.received", "tool.call.denied"]);
    yard.events.check();
}

/// Holds the call `first` up until another one starts.
#[derive(Default)]
struct AfterAnother(Notify);

#[async_trait]
impl Hooks for AfterAnother {
    async fn on_tool_start(&self, call: &Call, _: &Caller<'_>) {
        match call.id.as_str() {
            "first" => self.0.notified().await,
            _ => self.0.notify_one(),
        }
    }
}

/// V1: a start hook that waits holds up its own call alone.
#[tokio::test(start_paused = true)]
async fn a_start_hook_that_waits_holds_up_its_own_call() {
    let yard = yard(|builder, _| builder.hooks(AfterAnother::default())).await;
    let batch = vec![call("first", "read", 0, "ok"), call("second", "read", 0, "ok")];
    let from = tokio::time::Instant::now();
    let outcomes = no_hang(yard.engine.session("s").dispatch(batch)).await;
    assert_eq!(shape(&outcomes), "first ok, second ok");
    assert_eq!(from.elapsed(), Duration::ZERO);
    yard.events.check();
}

/// V1: hooks that are done at once need no task, so a call that may run in place does.
#[tokio::test(start_paused = true)]
async fn a_call_with_hooks_runs_in_place() {
    let here = |(): (), _: ToolContext| async { Ok::<_, ToolError>("ok") };
    let tool = tool_fn(ToolSpec::read("inline").inline(), here);
    let yard = yard(|builder, _| builder.hooks(NoHooks).tool(tool)).await;
    let session = yard.engine.session("s");
    let outcome = session.call(Call::new("c", "inline", json!({}))).now_or_never();
    assert!(outcome.expect("it was done at the first poll").success());
}
