//! The contents of results and errors (V4, V5).

use serde_json::Value;
use toolyard::{
    Caller, Content, Denied, Effect, Grant, RuntimePolicy, ToolContext, ToolError, ToolSpec, tool_fn,
};
use toolyard_tests::{call, shape, yard};

/// V5: the model reads both a tool's error and the output that came before it.
#[tokio::test(start_paused = true)]
async fn a_later_failure_includes_the_earlier_one() {
    let yard = yard(|builder, _| {
        builder.tool(tool_fn(ToolSpec::read("half"), |(): (), _: ToolContext| async {
            let half = vec![Content::text("first line\nsecond line")];
            Err::<(), _>(ToolError::transient("HTTP 500: connection refused").with_content(half))
        }))
    })
    .await;
    let outcome = yard.engine.session("s").call(call("c", "half", 0, "ok")).await;
    let error = outcome.error().unwrap();
    assert_eq!(error.message, "HTTP 500: connection refused");
    assert_eq!(error.content(), [Content::text("first line\nsecond line")]);
    let text = format!("HTTP 500: connection refused\nfirst line\nsecond line\n{}", error.advice);
    assert_eq!(error.to_text(), text);
    assert_eq!(outcome.to_text(), text);
}

/// V5: the text of an unsuccessful output starts with its message, which is not repeated.
#[tokio::test(start_paused = true)]
async fn a_failure_text_is_not_repeated() {
    let yard = yard(|builder, _| builder).await;
    let outcome = yard.engine.session("s").call(call("c", "read", 0, "no")).await;
    assert_eq!(outcome.to_text().matches("the tool says no").count(), 1, "{}", outcome.to_text());
}

/// V4, PO-1: a call that its sandbox did not start counts no attempt, neither in the result nor in its error.
#[tokio::test(start_paused = true)]
async fn a_call_that_its_sandbox_refuses_has_no_attempt() {
    struct Bounded;
    impl RuntimePolicy for Bounded {
        fn check(&self, _: &ToolSpec, _: &Value, _: &Caller<'_>) -> Result<Grant, Denied> {
            let mut grant = Grant::host();
            grant.limits.memory = Some(1);
            Ok(grant)
        }
    }
    let yard = yard(|builder, _| builder.policy(Bounded)).await;
    let outcome = yard.engine.session("s").call(call("c", "read", 0, "ok")).await;
    assert_eq!(shape(std::slice::from_ref(&outcome)), "c sandbox_error");
    let error = outcome.error().unwrap();
    assert_eq!((outcome.attempts, error.attempts, error.effect), (0, 0, Effect::NotStarted));
    assert!(yard.log.started().is_empty());
    yard.events.check();
}
