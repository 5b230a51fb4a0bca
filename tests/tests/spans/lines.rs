//! Log lines of handlers, and about them, belong to the span of their call.

use futures::{executor::block_on, future::BoxFuture};
use serde_json::Value;
use std::{
    error::Error,
    fmt::{Debug, Write as _},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};
use toolyard::{
    Blocking, Call, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, async_trait, from_fn,
    telemetry::TOOL_CALL_ID,
};
use toolyard_tests::{listen, yard};
use tracing::{
    Dispatch, Event, Subscriber,
    dispatcher::{get_default, with_default},
    field::{Field, Visit},
    span::{Attributes, Id},
};
use tracing_subscriber::{
    Registry,
    layer::{Context, Layer, SubscriberExt},
    registry::LookupSpan,
};

/// The log lines of this crate and the engine: level, call, fields.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Lines {
    fn of(&self, call: &str) -> Vec<String> {
        let lines = self.0.lock().unwrap();
        let of = |line: &&String| line.split(' ').nth(1) == Some(call);
        lines.iter().filter(of).cloned().collect()
    }
}

/// The call of a span.
struct CallOf(String);

#[derive(Default)]
struct Fields(String, Option<CallOf>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == TOOL_CALL_ID {
            self.1 = Some(CallOf(value.to_owned()));
        }
        self.record_debug(field, &value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        write!(self.0, " {}={value:?}", field.name()).unwrap();
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Lines {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(call) = fields.1 {
            cx.span(id).unwrap().extensions_mut().insert(call);
        }
    }

    fn on_event(&self, event: &Event<'_>, cx: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let span = cx.event_span(event);
        let call = span.and_then(|span| span.extensions().get::<CallOf>().map(|call| call.0.clone()));
        let line = format!("{} {}{}", event.metadata().level(), call.as_deref().unwrap_or("-"), fields.0);
        self.0.lock().unwrap().push(line);
    }
}

/// A tool that logs, and stops when it is told to.
struct Logs;

#[async_trait]
impl Tool for Logs {
    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        tracing::warn!("the handler begins");
        tokio::task::yield_now().await;
        tracing::warn!("the handler goes on");
        Ok("done".into())
    }
}

/// Threads that listen as the test does.
struct Threads(Dispatch);

impl Blocking for Threads {
    fn spawn(&self, job: BoxFuture<'static, ()>) {
        let dispatch = self.0.clone();
        thread::spawn(move || with_default(&dispatch, || block_on(job)));
    }
}

/// OB-4: what a handler logs belongs to the span of its call, in a task and on a blocking thread.
#[tokio::test]
async fn what_a_handler_logs_belongs_to_its_call() {
    let lines = Lines::default();
    let _listening = listen(Registry::default().with(lines.clone()));
    let threads = Threads(get_default(Dispatch::clone));
    let yard = yard(|builder, _| {
        let builder = builder.blocking(Arc::new(threads)).tool(from_fn(ToolSpec::read("task"), || Logs));
        builder.tool(from_fn(ToolSpec::read("thread").blocking(), || Logs))
    })
    .await;
    let session = yard.engine.session("s");
    let batch = vec![Call::new("a", "task", "{}"), Call::new("b", "thread", "{}")];
    assert!(session.dispatch(batch).await.iter().all(toolyard::Outcome::success));
    for call in ["a", "b"] {
        let said = ["begins", "goes on"].map(|what| format!("WARN {call} message=the handler {what}"));
        assert_eq!(lines.of(call), said);
    }
}

/// An error with a cause.
#[derive(Debug)]
struct Outer(std::io::Error);

impl std::fmt::Display for Outer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cannot book")
    }
}

impl Error for Outer {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

/// A tool that fails as its call's id says.
struct Fails;

#[async_trait]
impl Tool for Fails {
    async fn execute(&self, _: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        tokio::task::yield_now().await;
        let error = Outer(std::io::Error::other("no route"));
        match cx.call_id().as_str() {
            "text" => panic!("lost the thread"),
            "error" => std::panic::panic_any::<Box<dyn Error + Send + Sync>>(error.into()),
            _ => Err(error.into()),
        }
    }
}

/// V5: a panic is logged at ERROR with its place and its backtrace, an unclassified error with all its causes, both in
/// the span of the call, whether the handler ran in a task or on a thread.
#[tokio::test]
async fn what_nobody_expects_is_logged_with_its_cause() {
    let lines = Lines::default();
    let _listening = listen(Registry::default().with(lines.clone()));
    let threads = Threads(get_default(Dispatch::clone));
    let yard = yard(|builder, _| {
        let builder = builder.blocking(Arc::new(threads)).tool(from_fn(ToolSpec::read("task"), || Fails));
        builder.tool(from_fn(ToolSpec::read("thread").blocking(), || Fails))
    })
    .await;
    let session = yard.engine.session("s");
    for tool in ["task", "thread"] {
        for (id, told) in [
            ("text", "panic=\"lost the thread\""),
            ("error", "panic=\"cannot book: no route\""),
            ("unclassified", "error=cannot book: no route"),
        ] {
            assert!(!session.call(Call::new(id, tool, "{}")).await.success());
            let said = lines.of(id);
            lines.0.lock().unwrap().clear();
            assert!(said.len() == 1 && said[0].starts_with("ERROR ") && said[0].contains(told), "{said:?}");
            assert!(said[0].contains(&format!(" tool=\"{tool}\"")), "{said:?}");
            let is_panic = id != "unclassified";
            for part in [" location=\"", "lines.rs:", " backtrace=", "0: "] {
                assert_eq!(said[0].contains(part), is_panic, "{part} {said:?}");
            }
        }
    }
}

/// A tool that answers to `cancel`, or panics there.
struct Answers(Option<bool>);

#[async_trait]
impl Tool for Answers {
    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        tokio::time::sleep(Duration::from_secs(5)).await;
        Ok("done".into())
    }

    async fn cancel(&self) -> bool {
        self.0.expect("no answer")
    }
}

/// SC-5: what a tool answers to `cancel` is logged in the span of the call, and so is its panic.
#[tokio::test(start_paused = true)]
async fn the_answer_to_a_cancel_is_logged() {
    let lines = Lines::default();
    let _listening = listen(Registry::default().with(lines.clone()));
    for (answer, level, told) in [
        (Some(true), "INFO", "tool=\"t\" attempt=1 stopped_cleanly=true"),
        (Some(false), "INFO", "tool=\"t\" attempt=1 stopped_cleanly=false"),
        (None, "ERROR", "tool=\"t\" attempt=1"),
    ] {
        let yard =
            yard(|builder, _| builder.tool(from_fn(ToolSpec::read("t"), move || Answers(answer)))).await;
        let session = yard.engine.session("s");
        let cancel = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert!(session.cancel_call("a"));
        };
        assert!(tokio::join!(session.call(Call::new("a", "t", "{}")), cancel).0.success());
        let said = lines.of("a");
        assert!(said.len() == 1 && said[0].starts_with(level) && said[0].ends_with(told), "{said:?}");
        lines.0.lock().unwrap().clear();
    }
}
