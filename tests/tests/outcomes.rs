//! The results that callers get: the codes of V4, the wordings of V5, and the refusals of the gate (V1, PO-1, PO-3).

#![allow(clippy::unwrap_used, reason = "a panic fails the test")]

use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::sync::oneshot;
use toolyard::{
    Abort, AllowAll, Answer, ApprovalRequest, Approver, Call, CallError, Caller, ConfirmationMode,
    Confirmations, Dedupe, Denied, Effect, EngineBuilder, ErrorKind, FsMode, Grant, Hooks, Limits, Outcome,
    PathEscape, PathScope, Redactor, ResourceLimits, RetryPolicy, RuntimePolicy, Sandbox, SideEffects,
    ToolContext, ToolOutput, ToolSpec, async_trait, tool_fn,
};
use toolyard_tests::{Yard, call, kinds, scripted, shape, yard};

fn error(outcome: &Outcome) -> &CallError {
    outcome.error().expect("the call has no output")
}

/// Dispatches one call of `read` that ends in this way.
async fn end(yard: &Yard, end: &str) -> Outcome {
    yard.engine.session("s").call(call("c", "read", 0, end)).await
}

/// V4, V5: a handler's own error message reaches the caller unchanged; that of a panic or unclassified error does not.
#[tokio::test(start_paused = true)]
async fn tool_errors_keep_their_message_and_accidents_do_not() {
    let yard = yard(|builder, _| builder.retry(RetryPolicy::NONE)).await;
    for (script, kind, message, effect) in [
        ("fail", ErrorKind::ExecutionError, "HTTP 404: no such thing", Effect::Failed),
        ("no", ErrorKind::ExecutionError, "the tool says no", Effect::Failed),
        ("transient", ErrorKind::Transient, "HTTP 500: connection refused", Effect::Failed),
        ("unclassified", ErrorKind::ExecutionError, "The tool failed unexpectedly.", Effect::Failed),
        ("panic", ErrorKind::Panic, "The tool failed unexpectedly.", Effect::Failed),
    ] {
        let outcome = end(&yard, script).await;
        let error = error(&outcome);
        assert_eq!((error.kind, error.message.as_str(), error.effect), (kind, message, effect), "{script}");
        assert_eq!((error.attempts, outcome.attempts), (1, 1));
    }
    yard.events.check();
}

/// V5: an output with `success: false` keeps its content whole for the caller.
#[tokio::test(start_paused = true)]
async fn a_tool_that_says_no_keeps_its_content() {
    let yard = yard(|builder, _| builder).await;
    let outcome = end(&yard, "no").await;
    assert_eq!(error(&outcome).content(), [toolyard::Content::text("the tool says no")]);
    assert_eq!(outcome.output()["code"], "execution_error");
}

/// V5, ID-3: it also keeps its data and metadata, both for its caller and for callers that share its key, with or
/// without a redactor.
#[tokio::test(start_paused = true)]
async fn a_tool_that_says_no_keeps_its_data() {
    let mut output =
        ToolOutput::text("no such room").with_structured(json!({"free": ["17"]})).with_metadata("m", 1);
    output.success = false;
    for redactor in [None, Some(Redactor::new().with_secret("correct horse").unwrap())] {
        let returned = output.clone();
        let yard = yard(move |builder, _| {
            let book = tool_fn(ToolSpec::write("book"), move |(): (), _: ToolContext| {
                let returned = returned.clone();
                async move { Ok(returned) }
            });
            redactor.into_iter().fold(builder.tool(book), EngineBuilder::redact)
        })
        .await;
        let mut call = call("c", "book", 0, "ok");
        call.idempotency_key = Some("k".into());
        let session = yard.engine.session("s");
        for dedupe in [Dedupe::Fresh, Dedupe::Replayed] {
            let outcome = session.call(call.clone()).await;
            assert_eq!((outcome.dedupe, error(&outcome).output()), (dedupe, Some(&output)));
            assert_eq!(error(&outcome).message, "no such room");
            assert_eq!(outcome.output()["structured"], json!({"free": ["17"]}));
        }
        yard.events.check();
    }
}

/// V5: the message for an unknown name lists the available tools, sorted, at most 50 of them.
#[tokio::test(start_paused = true)]
async fn an_unknown_tool_lists_the_available_ones() {
    let few = yard(|builder, _| builder).await;
    let outcome = few.engine.session("s").call(Call::new("c", "X", "{broken")).await;
    assert_eq!(error(&outcome).message, "Tool 'X' not found. Available: [concurrent, read, serial]");
    assert_eq!((error(&outcome).kind, error(&outcome).effect), (ErrorKind::NotFound, Effect::NotStarted));

    let many = yard(|builder, log| {
        (0..60).fold(builder, |builder, n| builder.tool(scripted(ToolSpec::read(format!("t{n:02}")), log)))
    })
    .await;
    let outcome = many.engine.session("s").call(Call::new("c", "X", "{}")).await;
    assert!(error(&outcome).message.ends_with("t46, … and 13 more]"), "{}", error(&outcome).message);
}

/// V1, V5: broken JSON and arguments that violate the schema fail only their own call, and the error says where;
/// siblings go on.
#[tokio::test(start_paused = true)]
async fn bad_arguments_fail_only_their_call() {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1}},
        "required": ["city"],
        "additionalProperties": false,
    });
    let yard =
        yard(|builder, log| builder.tool(scripted(ToolSpec::read("weather").input_schema(schema), log)))
            .await;
    let outcomes = yard
        .engine
        .session("s")
        .dispatch(vec![
            Call::new("a", "weather", r#"{"city": "Oslo"}"#),
            Call::new("b", "weather", r#"{"city": }"#),
            Call::new("c", "weather", r#"{"city": 7, "days": 0, "x": 1}"#),
            Call::new("d", "weather", ""),
            Call::new("e", "weather", "[".repeat(100_000)),
            Call::new("f", "weather", r#""Oslo""#),
            Call::new("g", "weather", r#"{"city": "Bergen"}"#),
        ])
        .await;
    use ErrorKind::InvalidInput as I;
    assert_eq!(kinds(&outcomes), [None, Some(I), Some(I), Some(I), Some(I), Some(I), None]);
    assert_eq!(error(&outcomes[1]).message, "Invalid JSON: expected value at position 9");
    let pointers: Vec<_> = error(&outcomes[2]).validation_errors.iter().map(|e| e.pointer.as_str()).collect();
    assert_eq!(pointers.len(), 3);
    assert!(pointers.contains(&"/city") && pointers.contains(&"/days") && pointers.contains(&""));
    assert_eq!(error(&outcomes[2]).kind.json_rpc(), -32602);
    assert_eq!(yard.log.started(), ["a", "g"]);
    assert_eq!(yard.events.of_call("b"), ["tool.call.received", "tool.input_invalid"]);
    yard.events.check();
}

/// V4: an output over its bound is refused.
#[tokio::test(start_paused = true)]
async fn an_output_over_its_bound_is_refused() {
    let yard = yard(|builder, _| builder).await;
    assert_eq!(error(&end(&yard, "big").await).kind, ErrorKind::OutputTooLarge);
}

/// V1, V5: the output of a failure has the same bound as that of a success, with or without a redactor.
#[tokio::test(start_paused = true)]
async fn a_failure_may_be_as_large_as_a_success() {
    for redactor in [None, Some(Redactor::new().with_secret("correct horse").unwrap())] {
        let says = |success| {
            move |_: Value, _: ToolContext| async move {
                let mut output = ToolOutput::json(json!({"why": "x".repeat(600)}));
                output.success = success;
                Ok(output)
            }
        };
        let mut limits = Limits::default();
        limits.output_bytes_max = 1000;
        let yard = yard(|builder, _| {
            let builder = builder.limits(limits).tool(tool_fn(ToolSpec::read("yes"), says(true)));
            let builder = builder.tool(tool_fn(ToolSpec::read("no"), says(false)));
            redactor.into_iter().fold(builder, EngineBuilder::redact)
        });
        let session = yard.await.engine.session("s");
        let outcomes = session.dispatch(["yes", "no"].map(|tool| Call::new(tool, tool, "{}")).to_vec()).await;
        assert_eq!(shape(&outcomes), "yes ok, no execution_error");
        assert_eq!(
            error(&outcomes[1]).output().unwrap().structured(),
            outcomes[0].status.as_ref().unwrap().structured()
        );
    }
}

/// A policy that decides by the tool's name.
struct ByName;

impl RuntimePolicy for ByName {
    fn check(&self, tool: &ToolSpec, _: &Value, _: &Caller<'_>) -> Result<Grant, Denied> {
        let limits = |set: fn(&mut ResourceLimits)| {
            let mut grant = Grant::host();
            set(&mut grant.limits);
            Ok(grant)
        };
        match tool.name.as_str() {
            "read" => Err(Denied::Disabled),
            "serial" => Err(Denied::Because("Not on a Sunday.".to_owned())),
            "panics" => panic!("scripted panic"),
            "wasm" => Ok(Grant::within(Sandbox::Wasm)),
            "memory" => limits(|limits| limits.memory = Some(1)),
            "short" => limits(|limits| limits.wall_time = Some(Duration::from_millis(1500))),
            "small" => limits(|limits| limits.output_bytes = Some(1)),
            _ => AllowAll.check(tool, &Value::Null, &Caller::new(&"s".into(), &toolyard::AgentPath::root())),
        }
    }
}

/// PO-1, PO-6, V5: a policy refuses, panics, names an unavailable sandbox, or sets limits, enforceable or not.
#[tokio::test(start_paused = true)]
async fn a_policy_decides_where_and_within_what() {
    let yard = yard(|builder, log| {
        let tools = ["panics", "wasm", "memory", "short", "small"];
        let add = |builder: toolyard::EngineBuilder, name| builder.tool(scripted(ToolSpec::read(name), log));
        tools.into_iter().fold(builder.policy(ByName).retry(RetryPolicy::NONE), add)
    })
    .await;
    let session = yard.engine.session("s");
    let mut errors = Vec::new();
    for tool in ["read", "serial", "panics", "wasm", "memory", "small"] {
        let outcome = session.call(call(tool, tool, 0, "ok")).await;
        errors.push(format!("{}: {}", error(&outcome).kind, error(&outcome).message));
    }
    let short = session.call(call("short", "short", 0, "hang")).await;
    errors.push(format!("{}: {}", error(&short).kind, error(&short).message));
    assert_eq!(
        errors,
        [
            "permission_denied: Permission denied: tool 'read' is disabled by policy",
            "permission_denied: Not on a Sunday.",
            "internal: the policy check failed",
            "sandbox_error: The grant of tool 'wasm' cannot be kept: it cannot run in sandbox 'wasm', only in: host. The \
             call was not run.",
            "sandbox_error: sandbox 'host' cannot limit memory: the call was not run",
            "output_too_large: the output has 5 bytes, more than the limit of 1",
            "timeout: Tool exceeded 1.5s wall time limit",
        ]
    );
    assert_eq!(yard.log.started(), ["small", "short"]);
    yard.events.check();
}

/// PO-3: without an approver, calls that need approval are refused at once, and reads run.
#[tokio::test(start_paused = true)]
async fn without_an_approver_calls_are_denied() {
    let events = toolyard_tests::Recorder::default();
    let log = toolyard_tests::Log::new();
    let kinds_of = [
        ("none", SideEffects::None),
        ("read", SideEffects::Read),
        ("write", SideEffects::Write),
        ("execute", SideEffects::Execute),
        ("network", SideEffects::Network),
    ];
    let builder = toolyard::Engine::builder().events(events.clone());
    let builder = kinds_of.iter().fold(builder, |builder, (name, effects)| {
        builder.tool(scripted(ToolSpec::new(*name, *effects), &log))
    });
    let engine = builder.build().await.unwrap();
    let batch: Vec<_> = kinds_of.iter().map(|(name, _)| call(name, name, 0, "ok")).collect();
    let outcomes = engine.session("s").dispatch(batch).await;
    assert_eq!(
        shape(&outcomes),
        "none ok, read ok, write user_denied, execute user_denied, network user_denied"
    );
    assert_eq!(error(&outcomes[2]).message, "This operation needs approval and nobody can be asked.");
    assert!(error(&outcomes[2]).advice.contains("say what you need"));
    assert!(outcomes[2..].iter().all(|outcome| outcome.routing == toolyard::Routing::ShortCircuit));
    events.check();
}

/// An approver whose answers the test sends.
struct Later {
    asked: tokio::sync::mpsc::UnboundedSender<(String, oneshot::Sender<Answer>)>,
}

#[async_trait]
impl Approver for Later {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        let (answer, wait) = oneshot::channel();
        self.asked.send((request.call_id().to_string(), answer)).unwrap();
        wait.await.expect("the test answers every question, or the question is withdrawn")
    }
}

/// CL-3, CC-5, PO-4: all questions of a batch are asked at once; each call of a run starts as soon as its own answer
/// arrives, and no run waits for the answers of a later one; no permit is held meanwhile.
#[tokio::test(start_paused = true)]
async fn questions_are_asked_concurrently_and_hold_no_permit() {
    let (asked, mut questions) = tokio::sync::mpsc::unbounded_channel();
    let yard = yard(|builder, _| {
        builder
            .approver(Later { asked })
            .confirmations(Confirmations::default().tool("read", ConfirmationMode::Auto))
    })
    .await;
    let session = yard.engine.session("s");
    let batch = vec![
        call("r", "read", 10, "ok"),
        call("c1", "concurrent", 10, "ok"),
        call("c2", "concurrent", 10, "ok"),
        call("s1", "serial", 10, "ok"),
    ];
    let answers = async {
        let mut open = std::collections::BTreeMap::new();
        while open.len() < 3 {
            let (id, answer) = questions.recv().await.unwrap();
            open.insert(id, answer);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        let status = yard.engine.status().await.unwrap();
        assert!(status.pools.iter().all(|pool| pool.running == 0), "{status:?}");
        for (id, answer) in
            [("s1", Answer::allow("ada")), ("c2", Answer::allow("ada")), ("c1", Answer::deny("ada"))]
        {
            tokio::time::sleep(Duration::from_millis(100)).await;
            open.remove(id).unwrap().send(answer).unwrap();
        }
    };
    let (outcomes, ()) = tokio::join!(session.dispatch(batch), answers);
    assert_eq!(shape(&outcomes), "r ok, c1 user_denied, c2 ok, s1 ok");
    assert_eq!(yard.log.spans(), ["r 0..10", "c2 250..260", "s1 350..360"]);
    assert_eq!(
        yard.events.of_call("c1"),
        [
            "tool.call.received",
            "tool.confirmation_requested",
            "tool.confirmation_resolved",
            "tool.call.denied"
        ]
    );
    assert_eq!(outcomes[2].queued(), Duration::ZERO, "approval time is no queue time (V3)");
    yard.events.check();
}

/// PO-4: no answer for five minutes ⇒ `confirmation_timeout`; an approver that panics ⇒ `internal`.
#[tokio::test(start_paused = true)]
async fn an_unanswered_question_ends_its_call() {
    struct Silent;
    #[async_trait]
    impl Approver for Silent {
        async fn ask(&self, request: &ApprovalRequest) -> Answer {
            assert!(request.call_id().as_str() != "p", "scripted panic");
            std::future::pending().await
        }
    }
    let yard = yard(|builder, _| builder.approver(Silent).confirmations(Confirmations::default())).await;
    let from = tokio::time::Instant::now();
    let batch = vec![call("p", "concurrent", 0, "ok"), call("t", "concurrent", 0, "ok")];
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert_eq!(shape(&outcomes), "p internal, t confirmation_timeout");
    assert_eq!(from.elapsed(), Duration::from_secs(300));
    assert_eq!(yard.log.started(), [""; 0]);
    yard.events.check();
}

/// SC-4: a cancel withdraws the question at once.
#[tokio::test(start_paused = true)]
async fn a_cancel_withdraws_the_question() {
    let (asked, mut questions) = tokio::sync::mpsc::unbounded_channel();
    let yard =
        yard(|builder, _| builder.approver(Later { asked }).confirmations(Confirmations::default())).await;
    let turn = yard.engine.session("s").turn();
    let cancel = async {
        let (_, answer) = questions.recv().await.unwrap();
        turn.cancel();
        answer
    };
    let (outcomes, answer) = tokio::join!(turn.dispatch(vec![call("s", "serial", 0, "ok")]), cancel);
    assert_eq!(shape(&outcomes), "s cancelled");
    tokio::task::yield_now().await;
    assert!(answer.is_closed());
    yard.events.check();
}

struct Root;

impl PathScope for Root {
    fn root(&self) -> &std::path::Path {
        std::path::Path::new("/root")
    }
    fn check(&self, path: &str) -> Result<(), PathEscape> {
        if path.contains("..") { Err(PathEscape::new(path)) } else { Ok(()) }
    }
}

/// PO-1b, PO-2, V5: a path that leaves the workspace is refused before anything runs, and so is a call of a tool that
/// needs a workspace in a session without one.
#[tokio::test(start_paused = true)]
async fn a_path_that_leaves_the_workspace_is_refused_at_the_gate() {
    let spec = || ToolSpec::read("cat").requires_fs(FsMode::Read, "path");
    let with = yard(|builder, log| builder.tool(scripted(spec(), log)).workspace(Arc::new(Root))).await;
    let session = with.engine.session("s");
    let cat = |path: Value| Call::new("c", "cat", json!({"path": path}));
    assert!(session.call(cat(json!("a/b"))).await.success());
    let outcome = session.call(cat(json!("../x"))).await;
    assert_eq!(error(&outcome).message, "Path '../x' escapes workspace boundary");
    assert_eq!(error(&outcome).kind, ErrorKind::PermissionDenied);
    assert_eq!(outcome.attempts, 0);

    let without = yard(|builder, log| builder.tool(scripted(spec(), log))).await;
    let outcome = without.engine.session("s").call(cat(json!("a"))).await;
    assert_eq!(error(&outcome).message, "Tool 'cat' needs a workspace and this session has none");
}

/// Hooks that record their calls and act according to the call id (V1).
#[derive(Clone, Default)]
struct HookLog(Arc<std::sync::Mutex<Vec<String>>>);

#[async_trait]
impl Hooks for HookLog {
    async fn on_tool_call(&self, call: &Call, _: &Caller<'_>) -> Result<(), Abort> {
        match call.id.as_str() {
            "abort" => return Err(Abort::because("not this one")),
            "panic" => panic!("scripted panic"),
            "hang" => std::future::pending().await,
            _ => {}
        }
        self.0.lock().unwrap().push(format!("call {}", call.id));
        Ok(())
    }
    async fn on_tool_start(&self, call: &Call, _: &Caller<'_>) {
        self.0.lock().unwrap().push(format!("start {}", call.id));
        assert!(call.id.as_str() != "start_panics", "scripted panic");
    }
    async fn on_tool_end(&self, outcome: &Outcome, _: &Caller<'_>) {
        self.0.lock().unwrap().push(format!("end {} {}", outcome.call_id, outcome.success()));
        if outcome.call_id.as_str() == "end_hangs" {
            std::future::pending::<()>().await;
        }
    }
}

/// V1: a hook may refuse a call; a hook that panics or hangs before a call aborts that call, and after it only causes
/// a log line.
#[tokio::test(start_paused = true)]
async fn a_failing_hook_fails_only_its_call() {
    let hooks = HookLog::default();
    let yard = yard(|builder, _| builder.hooks(hooks.clone())).await;
    let ids = ["abort", "panic", "hang", "start_panics", "end_hangs", "fine"];
    let batch: Vec<_> = ids.iter().map(|id| call(id, "read", 0, "ok")).collect();
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert_eq!(
        shape(&outcomes),
        "abort aborted, panic aborted, hang aborted, start_panics ok, end_hangs ok, fine ok"
    );
    assert_eq!(error(&outcomes[0]).message, "not this one");
    assert_eq!(error(&outcomes[2]).message, "the hook before this call took longer than 5s");
    let of_fine: Vec<_> =
        hooks.0.lock().unwrap().iter().filter(|line| line.contains("fine")).cloned().collect();
    assert_eq!(of_fine, ["call fine", "start fine", "end fine true"]);
    yard.events.check();
}

/// The plan reports routing and refusals without running anything.
#[tokio::test(start_paused = true)]
async fn a_plan_runs_nothing() {
    let hooks = HookLog::default();
    let yard = yard(|builder, _| builder.hooks(hooks.clone())).await;
    let batch = vec![call("r", "read", 0, "ok"), Call::new("x", "read", "{"), call("s", "serial", 0, "ok")];
    let plan = yard.engine.session("s").plan(&batch.into());
    let routing: Vec<_> = plan.calls.iter().map(|call| call.routing.as_str()).collect();
    assert_eq!(routing, ["read", "short_circuit", "serial"]);
    assert_eq!(plan.calls[0].why, "side effects: read");
    assert_eq!(plan.calls[1].why, "refused: invalid_input");
    assert_eq!(plan.runs.iter().map(|run| run.calls.clone()).collect::<Vec<_>>(), [0..1, 1..2, 2..3]);
    assert!(yard.log.started().is_empty() && hooks.0.lock().unwrap().is_empty());
}

/// CL-4, V5: an outcome carries the call's arguments as they were received, whether the call ran or was refused.
#[tokio::test(start_paused = true)]
async fn an_outcome_carries_the_arguments_of_its_call() {
    let yard = yard(|builder, _| builder).await;
    let text = r#"{ "end":"ok",  "ms": 1 }"#;
    let batch = vec![
        Call::new("text", "read", text),
        Call::new("value", "serial", json!({"end": "fail"})),
        Call::new("broken", "read", r#"{"ms": "#),
        Call::new("unknown", "nothing", text),
    ];
    let sent: Vec<_> = batch.iter().map(|call| call.arguments.clone()).collect();
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert_eq!(shape(&outcomes), "text ok, value execution_error, broken invalid_input, unknown not_found");
    assert_eq!(outcomes.iter().map(|outcome| outcome.arguments.clone()).collect::<Vec<_>>(), sent);
    assert_eq!(outcomes[0].arguments.text(), text, "not written anew");
}

/// V5: a handler says whether its message is meant for the user, and its cause reaches the outcome, not the wire.
#[tokio::test(start_paused = true)]
async fn a_handler_decides_who_reads_its_message() {
    for (said, expected) in [(None, false), (Some(true), true), (Some(false), false)] {
        let fails = tool_fn(ToolSpec::read("fails"), move |(): (), _: ToolContext| async move {
            let error =
                toolyard::ToolError::execution("no such city").with_source(std::io::Error::other("HTTP 404"));
            Err::<(), _>(match said {
                Some(visible) => error.user_visible(visible),
                None => error,
            })
        });
        let yard = yard(|builder, _| builder.tool(fails)).await;
        let outcome = yard.engine.session("s").call(Call::new("a", "fails", "{}")).await;
        let error = error(&outcome);
        assert_eq!((error.user_visible, error.message.as_str()), (expected, "no such city"));
        assert_eq!(error.source.as_ref().unwrap().to_string(), "HTTP 404");
        assert!(!serde_json::to_string(error).unwrap().contains("404"));
    }
}
