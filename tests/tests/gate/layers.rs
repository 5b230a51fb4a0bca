//! Layers around tools (KT-7).

use serde_json::{Value, json};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use toolyard::{
    Abort, Answer, AttemptResult, Backend, Call, Caller, Engine, EngineBuilder, ErrorKind, Execution,
    Failure, Form, Hooks, Next, Outcome, RetryPolicy, Running, Sandbox, SandboxError, Stopped, Tool,
    ToolContext, ToolError, ToolFactory, ToolLayer, ToolSpec, Work, async_trait,
    testing::{EventRecorder, Reply, ScriptedApprover, ScriptedTool},
};

/// Adds its name to the argument `by` and to the output.
struct Named(&'static str);

#[async_trait]
impl ToolLayer for Named {
    fn arguments(&self, _: &ToolSpec, _: &Caller<'_>, args: &Value) -> Result<Option<Value>, Abort> {
        let by = args["by"].as_str().unwrap_or_default();
        if by.contains(self.0) {
            return Ok(None);
        }
        Ok(Some(json!({"by": format!("{by}{}", self.0)})))
    }

    async fn attempt(&self, _: &ToolSpec, _: &Value, _: &ToolContext, next: Next<'_>) -> AttemptResult {
        let output = next.run().await?;
        Ok(format!("{}({})", self.0, output.to_text()).into())
    }
}

/// What a layer does in place of what it should.
#[derive(Clone, Copy, PartialEq)]
enum Does {
    RefusesArguments,
    PanicsAtArguments,
    PanicsBefore,
    PanicsAfter,
    Answers,
    Hangs,
    Recovers,
    Fails,
}

#[async_trait]
impl ToolLayer for Does {
    fn arguments(&self, _: &ToolSpec, _: &Caller<'_>, _: &Value) -> Result<Option<Value>, Abort> {
        match self {
            Self::RefusesArguments => Err(Abort::because("the quota is used up")),
            Self::PanicsAtArguments => panic!("at the arguments"),
            _ => Ok(None),
        }
    }

    async fn attempt(&self, _: &ToolSpec, _: &Value, _: &ToolContext, next: Next<'_>) -> AttemptResult {
        match self {
            Self::PanicsBefore => panic!("before"),
            Self::Answers => return Ok("known".into()),
            Self::Hangs => std::future::pending::<()>().await,
            _ => {}
        }
        match (self, next.run().await) {
            (Self::PanicsAfter, _) => panic!("after"),
            (Self::Recovers, Err(_)) => Ok("recovered".into()),
            (Self::Fails, Ok(_)) => Err(ToolError::execution("the layer says no")),
            (_, result) => result,
        }
    }
}

/// Refuses every call once it is told to.
#[derive(Clone, Default)]
struct Refuses(Arc<AtomicBool>);

impl ToolLayer for Refuses {
    fn arguments(&self, _: &ToolSpec, _: &Caller<'_>, _: &Value) -> Result<Option<Value>, Abort> {
        if self.0.load(Ordering::Relaxed) { Err(Abort::because("not now")) } else { Ok(None) }
    }
}

async fn built(builder: EngineBuilder) -> Engine {
    builder.approver(Answer::allow("ada")).build().await.unwrap()
}

fn end(outcome: &Outcome) -> String {
    outcome.error().map_or_else(|| outcome.to_text(), |error| error.kind.to_string())
}

/// KT-7: the first layer is the outermost, and the engine's are outside of the tool's own; whatever is registered later has
/// the engine's too.
#[tokio::test(start_paused = true)]
async fn layers_have_an_order() {
    let tool = ScriptedTool::new(ToolSpec::read("tool")).then(Reply::text("x"));
    let own = tool.clone().layer(Named("c")).layer(Named("d"));
    let engine = built(Engine::builder().tool(own).layer(Named("a")).layer(Named("b"))).await;
    let session = engine.session("s");
    let outcome = session.call(Call::new("1", "tool", "{}")).await;
    assert_eq!(outcome.to_text(), "a(b(c(d(x))))");
    assert_eq!(tool.seen()[0].arguments, json!({"by": "abcd"}));
    engine.registry().register(ScriptedTool::new(ToolSpec::read("later")).then(Reply::text("y"))).unwrap();
    assert_eq!(session.call(Call::new("2", "later", "{}")).await.to_text(), "a(b(y))");
}

/// Keeps the arguments that it is shown.
#[derive(Clone, Default)]
struct Looks(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Hooks for Looks {
    async fn on_tool_call(&self, call: &Call, _: &Caller<'_>) -> Result<(), Abort> {
        self.0.lock().unwrap().push(call.arguments.text().into_owned());
        Ok(())
    }
}

/// KT-7: schema, approval, key and outcome have the arguments that run; the hook has those that came.
#[tokio::test(start_paused = true)]
async fn everything_sees_what_runs() {
    let schema = json!({"type": "object", "properties": {"by": {"type": "string"}}, "required": ["by"]});
    let tool = ScriptedTool::new(ToolSpec::write("tool").input_schema(schema)).then(Reply::text("x"));
    let (person, looks) = (ScriptedApprover::new([Answer::allow("ada")]), Looks::default());
    let builder = Engine::builder().tool(tool.clone().layer(Named("a")));
    let engine = builder.approver(person.clone()).hooks(looks.clone()).build().await.unwrap();
    let session = engine.session("s");
    let keyed = |id: &'static str, args: &'static str| Call::new(id, "tool", args).idempotency_key("k");
    let outcome = session.call(keyed("1", "{}")).await; // does not fit the schema as it comes
    assert_eq!(outcome.to_text(), "a(x)");
    assert_eq!(outcome.arguments.text(), r#"{"by":"a"}"#);
    assert_eq!(*looks.0.lock().unwrap(), ["{}"]);
    assert_eq!(person.asked()[0].arguments()["by"], "a");
    // The same call by what runs, and another one.
    assert_eq!(session.call(keyed("2", r#"{"by": "a"}"#)).await.to_text(), "a(x)");
    assert_eq!(end(&session.call(keyed("3", r#"{"by": "b"}"#)).await), "key_mismatch");
    assert_eq!(tool.seen().len(), 1);
    let plan = session.plan(&vec![Call::new("4", "tool", "{}")].into());
    assert!(plan.calls[0].refusal.is_none());
}

/// KT-7, ID-6: what the gate says of a call comes before the refusal of a layer, in a plan as in a dispatch.
#[tokio::test(start_paused = true)]
async fn a_plan_says_first_what_a_dispatch_says_first() {
    let tool = ScriptedTool::new(ToolSpec::write("tool")).then(Reply::text("x"));
    let refuses = Refuses::default();
    let builder = Engine::builder().tool(tool.clone().layer(refuses.clone()));
    let engine = built(builder).await;
    let session = engine.session("s");
    let keyed = |id: &'static str, key: &'static str| Call::new(id, "tool", "{}").idempotency_key(key);
    assert_eq!(session.call(keyed("1", "k")).await.to_text(), "x");
    refuses.0.store(true, Ordering::Relaxed);
    for (key, expected) in [("k", None), ("other", Some(ErrorKind::Aborted))] {
        let plan = session.plan(&vec![keyed("2", key)].into());
        assert_eq!(plan.calls[0].refusal.as_ref().map(|error| error.kind), expected);
        let outcome = session.call(keyed("2", key)).await;
        assert_eq!(outcome.error().map(|error| error.kind), expected);
    }
    assert_eq!(tool.seen().len(), 1);
}

/// KT-7, CL-8: a call that is sent again is recognised by what ran.
#[tokio::test(start_paused = true)]
async fn a_resent_call_is_recognised() {
    let tool = ScriptedTool::new(ToolSpec::write("tool"));
    let engine = built(Engine::builder().tool(tool.clone()).layer(Named("a"))).await;
    let turn = engine.session("s").turn();
    let batch = vec![Call::new("1", "tool", "{}")];
    turn.dispatch(batch.clone()).await;
    assert_eq!(turn.resend(batch).await[0].to_text(), "a(ok)");
    assert_eq!(tool.seen().len(), 1);
}

/// KT-7: what a layer does wrong ends its own call as what a tool does wrong does; what it answers counts; its siblings go
/// on. On a task and on a thread.
#[tokio::test(start_paused = true)]
async fn what_a_layer_does_stays_in_its_call() {
    for blocking in [false, true] {
        for (does, reply, expected, handlers) in [
            (Does::RefusesArguments, Reply::text("x"), "aborted", 0),
            (Does::PanicsAtArguments, Reply::text("x"), "panic", 0),
            (Does::PanicsBefore, Reply::text("x"), "panic", 0),
            (Does::PanicsAfter, Reply::text("x"), "panic", 1),
            (Does::Answers, Reply::text("x"), "known", 0),
            (Does::Hangs, Reply::text("x"), "timeout", 0),
            (Does::Recovers, Reply::error(ToolError::execution("no")), "recovered", 1),
            (Does::Recovers, Reply::panic("of the tool"), "panic", 1),
            (Does::Fails, Reply::text("x"), "execution_error", 1),
        ] {
            let spec = ToolSpec::read("tool").timeout(Duration::from_secs(9));
            let tool = ScriptedTool::new(if blocking { spec.blocking() } else { spec }).then(reply);
            let sibling = ScriptedTool::new(ToolSpec::read("sibling"));
            let events = EventRecorder::default();
            let builder =
                Engine::builder().tool(tool.clone().layer(does)).tool(sibling).events(events.clone());
            let engine = built(builder).await;
            let calls = ["tool", "sibling"].map(|tool| Call::new(tool, tool, "{}"));
            let outcomes = engine.session("s").dispatch(calls.to_vec()).await;
            assert_eq!(outcomes.iter().map(end).collect::<Vec<_>>(), [expected, "ok"]);
            assert_eq!(tool.seen().len(), handlers, "{expected}, blocking: {blocking}");
            events.check();
        }
    }
}

/// KT-7: every attempt passes the layers, and the engine retries what they return.
#[tokio::test(start_paused = true)]
async fn every_attempt_passes_the_layers() {
    let spec = ToolSpec::read("tool").retry(RetryPolicy::default().with_max_attempts(3));
    let busy = || Reply::error(ToolError::transient("busy"));
    let tool = ScriptedTool::new(spec).then(busy()).then(busy()).then(Reply::text("x"));
    let engine = built(Engine::builder().tool(tool.clone()).layer(Named("a"))).await;
    let outcome = engine.session("s").call(Call::new("1", "tool", "{}")).await;
    assert_eq!((outcome.to_text().as_str(), outcome.attempts), ("a(x)", 3));
    let arguments: Vec<_> = tool.seen().iter().map(|seen| seen.arguments.clone()).collect();
    assert_eq!(arguments, vec![json!({"by": "a"}); 3]);
}

/// A tool that a sandbox executes.
struct InSandbox(ScriptedTool);

impl ToolFactory for InSandbox {
    fn spec(&self) -> ToolSpec {
        self.0.spec()
    }

    fn create(&self) -> Arc<dyn Tool> {
        self.0.create()
    }

    fn forms(&self) -> &[Form] {
        &[Form::Command]
    }
}

/// A sandbox that refuses what it is given, or breaks once the tool is done.
struct Fragile {
    refuses: bool,
}

impl Backend for Fragile {
    fn execute<'a>(&'a self, execution: &'a Execution<'a>) -> Result<Running<'a>, SandboxError> {
        if self.refuses {
            return Err(SandboxError::Unavailable(Sandbox::Process));
        }
        let result = Work::sandboxed(async move {
            execution.tool.execute(execution.args, &execution.cx).await?;
            Err(Failure::Sandbox { why: "the pipe is closed".to_owned(), started: true })
        });
        Ok(Running { result, stopped: Stopped::WhenDropped })
    }
}

/// KT-7, SM-3: a sandbox that refuses or fails is the end of the attempt, whatever a layer makes of it; a layer that answers
/// by itself needs no sandbox.
#[tokio::test(start_paused = true)]
async fn a_layer_does_not_hide_a_sandbox_that_fails() {
    for (refuses, handlers) in [(true, 0), (false, 1)] {
        let tool = ScriptedTool::new(ToolSpec::read("tool"));
        let builder =
            || Engine::builder().tool(InSandbox(tool.clone())).backend(Arc::new(Fragile { refuses }));
        let engine = built(builder().layer(Does::Recovers)).await;
        let outcome = engine.session("s").call(Call::new("1", "tool", "{}")).await;
        assert_eq!(end(&outcome), "sandbox_error");
        assert_eq!(tool.seen().len(), handlers);
        let engine = built(builder().layer(Does::Answers)).await;
        assert_eq!(end(&engine.session("s").call(Call::new("1", "tool", "{}")).await), "known");
    }
}
