//! The log lines of panics in the code of the embedder.

use crate::heard::{Lines, Threads};
use futures::{FutureExt, future::BoxFuture};
use serde_json::{Value, json};
use std::{future::pending, io, path::Path, sync::Arc};
use tokio::sync::Notify;
use toolyard::{
    Abort, Answer, ApprovalRequest, Approver, Blocking, Call, Caller, Confirmations, Denied, Drain, Engine,
    Event, EventSink, EventWriter, FsMode, Grant, Hooks, Outcome, PathEscape, PathScope, Redactor, Resources,
    RuntimePolicy, Tool, ToolClass, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait,
    from_fn,
};

/// A secret that every panic has in its message.
const SECRET: &str = "swordfish-1984";

/// Everything an embedder gives to an engine. It panics in one place.
#[derive(Clone)]
struct Embedder {
    panics_in: &'static str,
    threads: Arc<Threads>,
    started: Arc<Notify>,
    stopped: Arc<Notify>,
}

impl Embedder {
    fn is_in(&self, place: &str) {
        assert!(self.panics_in != place, "{place} with {SECRET}");
    }
}

#[async_trait]
impl Hooks for Embedder {
    async fn on_tool_call(&self, _: &Call, _: &Caller<'_>) -> Result<(), Abort> {
        self.is_in("on_tool_call");
        Ok(())
    }

    async fn on_tool_start(&self, _: &Call, _: &Caller<'_>) {
        self.is_in("on_tool_start");
    }

    async fn on_tool_end(&self, _: &Outcome, _: &Caller<'_>) {
        self.is_in("on_tool_end");
    }
}

#[async_trait]
impl Approver for Embedder {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        self.is_in("ask");
        request.changes().await;
        Answer::allow("ada")
    }

    fn no_more_questions(&self) {
        self.is_in("no_more_questions");
    }
}

impl RuntimePolicy for Embedder {
    fn check(&self, _: &ToolSpec, _: &Value, _: &Caller<'_>) -> Result<Grant, Denied> {
        self.is_in("policy");
        Ok(Grant::default())
    }
}

impl PathScope for Embedder {
    fn root(&self) -> &Path {
        Path::new("/")
    }

    fn check(&self, _: &str) -> Result<(), PathEscape> {
        self.is_in("workspace");
        Ok(())
    }
}

impl EventSink for Embedder {
    fn accept(&self, _: &Event) {
        self.is_in("accept");
    }

    fn flush(&self) {
        self.is_in("sink's flush");
    }
}

impl EventWriter for Embedder {
    fn write(&mut self, _: &Event) -> io::Result<()> {
        self.is_in("write");
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.is_in("writer's flush");
        Ok(())
    }
}

impl Blocking for Embedder {
    fn spawn(&self, job: BoxFuture<'static, ()>) {
        self.threads.spawn(job);
    }

    fn spawn_writer(&self, job: BoxFuture<'static, ()>) {
        self.is_in("spawn_writer");
        self.threads.spawn(job);
    }
}

impl ToolFactory for Embedder {
    fn spec(&self) -> ToolSpec {
        ToolSpec::write("t").requires_fs(FsMode::Read, "path")
    }

    fn create(&self) -> Arc<dyn Tool> {
        self.is_in("create");
        Arc::new(self.clone())
    }

    fn class_for(&self, _: &Value) -> Option<ToolClass> {
        self.is_in("class_for");
        None
    }

    fn preview(&self, _: &Value, _: &Resources) -> Option<String> {
        self.is_in("preview");
        None
    }
}

#[async_trait]
impl Tool for Embedder {
    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.is_in("execute");
        self.started.notify_one();
        self.stopped.notified().await;
        Ok("done".into())
    }

    async fn cancel(&self) -> bool {
        self.stopped.notify_one();
        self.is_in("cancel");
        true
    }
}

/// Has an engine of this embedder's make a call and cancel it.
async fn make_a_call(embedder: &Embedder) {
    let it = || embedder.clone();
    let engine = Engine::builder()
        .tool(it())
        .hooks(it())
        .approver(it())
        .confirmations(Confirmations::default())
        .policy(it())
        .workspace(Arc::new(it()))
        .events(it())
        .event_writer(it())
        .blocking(Arc::new(it()))
        .redact(Redactor::new().with_secret(SECRET).unwrap())
        .build()
        .await
        .unwrap();
    let session = engine.session("s");
    let cancel = async {
        embedder.started.notified().await;
        session.cancel_call("a");
        pending().await
    };
    tokio::select! {
        _ = session.call(Call::new("a", "t", json!({"path": "x"}))) => {}
        () = cancel => {}
    }
    engine.shutdown(Drain::default()).await;
}

/// V5, PO-7: wherever code of the embedder panics, a line of level ERROR says whose it is and where, with the backtrace
/// and the message, and without the secret in it.
#[tokio::test]
async fn every_panic_of_an_embedder_is_logged_alike() {
    let (lines, _listening) = Lines::listen();
    for (panics_in, told) in [
        ("on_tool_call", "the hook on_tool_call panicked; the call is refused tool=\"t\""),
        ("on_tool_start", "the hook on_tool_start panicked; the call continues tool=\"t\""),
        ("on_tool_end", "the hook on_tool_end panicked; the call continues tool=\"t\""),
        ("ask", "the approver panicked; the call is refused tool=\"t\""),
        ("no_more_questions", "an approver panicked when it was told that the engine has ended"),
        ("policy", "the policy panicked; the call is refused tool=\"t\""),
        ("workspace", "the workspace's check panicked; the call is refused tool=\"t\""),
        ("accept", "an event sink panicked and lost an event"),
        ("sink's flush", "an event sink panicked and lost an event"),
        ("write", "a writer of events panicked"),
        ("writer's flush", "a writer of events panicked"),
        ("spawn_writer", "could not start a thread to write events; they stay queued"),
        ("create", "a handler panicked tool=\"t\""),
        (
            "class_for",
            "a tool panicked when it was asked for the class of a call; it has the declared one tool=\"t\"",
        ),
        ("preview", "a tool panicked when it was asked what a call would change tool=\"t\""),
        ("execute", "a handler panicked tool=\"t\""),
        ("cancel", "a tool panicked when it was asked to stop its handler tool=\"t\""),
    ] {
        let [started, stopped] = [(); 2].map(|()| Arc::default());
        make_a_call(&Embedder { panics_in, threads: Threads::listening(), started, stopped }).await;
        let said = lines.take();
        let line = format!(
            " message={told} panic=\"{panics_in} with [redacted]\" location=\"tests/tests/spans/panics.rs:"
        );
        let line =
            said.iter().find(|it| it.contains(&line)).unwrap_or_else(|| panic!("{panics_in}: {said:#?}"));
        assert!(line.starts_with("ERROR "), "{line}");
        assert!(line.contains(" backtrace=") && line.contains("0: "), "{line}");
        assert!(!said.concat().contains(SECRET), "{said:#?}");
    }
}

/// Hooks that panic when they are dropped.
struct Dropped;

#[async_trait]
impl Hooks for Dropped {}

impl Drop for Dropped {
    fn drop(&mut self) {
        panic!("dropped with {SECRET}");
    }
}

/// V5, PO-7: the panic of a destructor is logged with its place. What it says is not: nothing that knows the engine's
/// secrets may be left.
#[tokio::test]
async fn the_panic_of_a_destructor_is_logged_without_its_message() {
    let (lines, _listening) = Lines::listen();
    let engine = Engine::builder().hooks(Dropped).build().await.unwrap();
    engine.shutdown(Drain::default()).await;
    drop(engine);
    let said = lines.take();
    let line = "ERROR - message=a destructor panicked location=\"tests/tests/spans/panics.rs:";
    let line = said.iter().find(|it| it.starts_with(line)).unwrap_or_else(|| panic!("{said:#?}"));
    assert!(line.contains(" backtrace="), "{line}");
    assert!(!said.concat().contains("dropped with"), "{said:#?}");
}

/// A tool whose handler never ends, and panics when it is dropped.
struct Endless;

#[async_trait]
impl Tool for Endless {
    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        let _kept = Dropped;
        pending().await
    }
}

/// Threads that lose the handlers that they have begun.
struct Lossy;

impl Blocking for Lossy {
    fn spawn(&self, job: BoxFuture<'static, ()>) {
        assert!(job.now_or_never().is_none());
    }
}

/// V5, PO-7: a handler that panics where it is dropped is logged like one that panics while it runs.
#[tokio::test]
async fn the_panic_of_a_dropped_handler_is_logged_with_its_message() {
    let (lines, _listening) = Lines::listen();
    let redactor = Redactor::new().with_secret(SECRET).unwrap();
    let tool = from_fn(ToolSpec::read("t").blocking(), || Endless);
    let engine =
        Engine::builder().tool(tool).blocking(Arc::new(Lossy)).redact(redactor).build().await.unwrap();
    engine.session("s").call(Call::new("a", "t", "{}")).await;
    let said = lines.of("a");
    let line =
        "ERROR a message=a handler panicked when it was dropped tool=\"t\" panic=\"dropped with [redacted]\"";
    assert!(said.iter().any(|it| it.starts_with(line)), "{said:#?}");
}

/// A handler that panics, as its tool does when it is dropped.
struct Twice;

#[async_trait]
impl Tool for Twice {
    async fn execute(&self, _: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        assert!(cx.call_id().as_str().is_empty(), "in the handler");
        Ok("done".into())
    }
}

impl Drop for Twice {
    fn drop(&mut self) {
        panic!("in the tool");
    }
}

/// V5, SC-2: of a handler that panics and whose tool panics too, the first panic is the call's, and both are logged.
#[tokio::test]
async fn of_two_panics_the_first_is_the_calls() {
    let (lines, _listening) = Lines::listen();
    let builder = Engine::builder().tool(from_fn(ToolSpec::read("task"), || Twice));
    let builder = builder.tool(from_fn(ToolSpec::read("thread").blocking(), || Twice));
    let engine = builder.blocking(Threads::listening()).build().await.unwrap();
    for tool in ["task", "thread"] {
        engine.session("s").call(Call::new("a", tool, "{}")).await;
        let said = lines.of("a");
        lines.take();
        let is_second = |it: &String| it.starts_with("ERROR a message=a destructor panicked location=");
        assert!(said.iter().any(is_second), "{said:#?}");
        let first = format!("ERROR a message=a handler panicked tool=\"{tool}\" panic=\"in the handler\"");
        assert!(said.iter().any(|it| it.starts_with(&first)), "{said:#?}");
    }
}
