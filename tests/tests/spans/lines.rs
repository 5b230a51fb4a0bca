//! Log lines of handlers, and about them, belong to the span of their call.

use crate::heard::{Lines, Threads};
use serde_json::Value;
use std::{env, error::Error, process::Command, time::Duration};
use toolyard::{Call, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, async_trait, from_fn, wording};
use toolyard_tests::yard;

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

/// OB-4: what a handler logs belongs to the span of its call, in a task and on a blocking thread.
#[tokio::test]
async fn what_a_handler_logs_belongs_to_its_call() {
    let (lines, _listening) = Lines::listen();
    let yard = yard(|builder, _| {
        let builder = builder.blocking(Threads::listening()).tool(from_fn(ToolSpec::read("task"), || Logs));
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
    let (lines, _listening) = Lines::listen();
    let yard = yard(|builder, _| {
        let builder = builder.blocking(Threads::listening()).tool(from_fn(ToolSpec::read("task"), || Fails));
        builder.tool(from_fn(ToolSpec::read("thread").blocking(), || Fails))
    })
    .await;
    let session = yard.engine.session("s");
    let asked = env::var("RUST_LIB_BACKTRACE").or_else(|_| env::var("RUST_BACKTRACE")).ok();
    for tool in ["task", "thread"] {
        for (id, told) in [
            ("text", "panic=\"lost the thread\""),
            ("error", "panic=\"cannot book: no route\""),
            ("unclassified", "error=cannot book: no route"),
        ] {
            let outcome = session.call(Call::new(id, tool, "{}")).await;
            assert_eq!(outcome.error().unwrap().message, wording::INTERNAL_FAILURE);
            let said = lines.of(id);
            lines.take();
            assert!(said.len() == 1 && said[0].starts_with("ERROR ") && said[0].contains(told), "{said:?}");
            assert!(said[0].contains(&format!(" tool=\"{tool}\"")), "{said:?}");
            let is_panic = id != "unclassified";
            assert_eq!(said[0].contains(" location=\"tests/tests/spans/lines.rs:"), is_panic, "{said:?}");
            let has_stack = if is_panic {
                asked.as_deref() != Some("0")
            } else {
                asked.as_deref().is_some_and(|it| it != "0")
            };
            let stack = said[0].split_once(" backtrace=").map(|(_, stack)| stack);
            assert_eq!(stack.is_some(), has_stack, "{said:?}");
            if let Some(stack) = stack {
                assert!(stack.contains("0: "), "{stack}");
                // Debug information gives frames other names.
                assert!(stack.contains("lines::Fails") || stack.contains("spans/lines.rs:"), "{stack}");
            }
        }
    }
}

/// V5: an unclassified error has the backtrace of its conversion where the environment asks for one; a panic has its
/// own, unless the environment forbids it.
#[test]
fn backtraces_are_as_the_environment_says() {
    for asked in ["0", "1"] {
        let mut again = Command::new(env::current_exe().unwrap());
        again.args(["--exact", "lines::what_nobody_expects_is_logged_with_its_cause"]);
        let done = again.env("RUST_LIB_BACKTRACE", asked).output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{asked}: {said}");
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
    let (lines, _listening) = Lines::listen();
    for (answer, level, told) in [
        (Some(true), "INFO", "tool=\"t\" attempt=1 stopped_cleanly=true"),
        (Some(false), "INFO", "tool=\"t\" attempt=1 stopped_cleanly=false"),
        (None, "ERROR", "tool=\"t\" panic=\"no answer\""),
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
        assert!(said.len() == 1 && said[0].starts_with(level) && said[0].contains(told), "{said:?}");
        lines.take();
    }
}
