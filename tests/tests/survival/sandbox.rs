//! Sandboxes that fail, before the tool starts or under it, and their breakers (SM-3, CB-9).

use super::{SECOND, no_hang};
use std::{sync::Arc, time::Duration};
use tokio::time::sleep;
use toolyard::{
    Backend, BreakerOf, BreakerPolicy, BreakerState, BreakerStatus, CallError, Effect, ErrorKind, EventKind,
    Execution, Failure, Form, Outcome, RetryPolicy, Running, Sandbox, SandboxError, Stopped, Tool,
    ToolFactory, ToolOutput, ToolSpec, Work,
};
use toolyard_tests::{Log, Yard, call, scripted, shape, tries, yard};

/// A scripted tool that is a program.
struct Program<F>(F);

impl<F: ToolFactory> ToolFactory for Program<F> {
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

/// A sandbox for programs, and a host without one. The `end` of a call, or that of its attempt in `ends`, may be the
/// sandbox's: `early` (it fails before the tool has started), `late` (it fails when the tool is done), `hangs_late` (it
/// fails when it is told to stop), `refused` (it cannot do what the grant asks).
struct Sandboxes;

impl Backend for Sandboxes {
    fn execute<'a>(&'a self, execution: &'a Execution<'a>) -> Result<Running<'a>, SandboxError> {
        let handler = execution.tool.execute(execution.args, &execution.cx);
        if execution.confinement.sandbox == Sandbox::Host {
            return Ok(Running { result: Work::Handler(handler), stopped: Stopped::WhenDropped });
        }
        let attempt = execution.cx.attempt() as usize - 1;
        let ends = execution.args["ends"].as_array();
        let end = ends.map_or(&execution.args["end"], |ends| &ends[attempt.min(ends.len() - 1)]);
        let fails = |started| Failure::Sandbox { why: "no more processes\nerrno 11".to_owned(), started };
        let result = match end.as_str().unwrap_or_default() {
            "refused" => return Err(SandboxError::Unavailable(Sandbox::Process)),
            "early" => Work::sandboxed(async move { Err(fails(false)) }),
            "late" => Work::sandboxed(async move {
                handler.await?;
                Err(fails(true))
            }),
            "hangs_late" => Work::sandboxed(async move {
                execution.cx.cancelled().await;
                Err(fails(true))
            }),
            _ => Work::sandboxed(async move { Ok(handler.await?) }),
        };
        Ok(Running { result, stopped: Stopped::WhenDropped })
    }
}

/// An engine with the programs `looks`, which reads, and `acts`, which writes.
async fn sandboxed(retry: RetryPolicy) -> Yard {
    yard(|builder, log| {
        let program = |spec, log: &Log| Program(scripted(spec, log));
        builder
            .retry(retry)
            .tool(program(ToolSpec::read("looks"), log))
            .tool(program(ToolSpec::write("acts"), log))
            .backend(Arc::new(Sandboxes))
    })
    .await
}

async fn run(yard: &Yard, tool: &str, end: &str) -> Outcome {
    no_hang(yard.engine.session("s").call(call("a", tool, 0, end))).await
}

fn error(outcome: &Outcome) -> &CallError {
    outcome.error().expect("expected a failed call")
}

fn status(yard: &Yard, of: &BreakerOf) -> BreakerStatus {
    yard.engine.breakers().into_iter().find(|breaker| breaker.of == *of).unwrap()
}

fn counts(yard: &Yard, of: &BreakerOf) -> (u64, u64) {
    let status = status(yard, of);
    (status.failures, status.successes)
}

fn process() -> BreakerOf {
    BreakerOf::sandbox(Sandbox::Process)
}

/// The transitions in the events.
fn moves(yard: &Yard) -> Vec<String> {
    let shown = |kind: &EventKind| match kind {
        EventKind::BreakerTransition { from, to, .. } => {
            Some(format!("{:?} {}→{}", BreakerOf::of_event(kind)?, from.as_str(), to.as_str()))
        }
        _ => None,
    };
    yard.events.events().iter().filter_map(|event| shown(&event.kind)).collect()
}

/// SM-3: a sandbox that fails before the tool has started leaves a call that has not started, and may be sent again.
#[tokio::test(start_paused = true)]
async fn a_sandbox_that_fails_early_leaves_a_call_that_has_not_started() {
    let yard = sandboxed(RetryPolicy::default()).await;
    for tool in ["looks", "acts"] {
        let outcome = run(&yard, tool, "early").await;
        let error = error(&outcome);
        assert_eq!((error.kind, error.effect), (ErrorKind::SandboxError, Effect::NotStarted));
        assert_eq!((outcome.attempts, error.attempts, error.retryable), (0, 0, true));
        assert_eq!(error.message, "sandbox 'process' failed before the call started: no more processes");
        assert_eq!(outcome.sandbox, Sandbox::Process);
    }
    assert_eq!(yard.log.started(), Vec::<String>::new());
    yard.events.check();
}

/// SM-3: the effect of a call whose sandbox failed under it is unknown, unless its tool only reads. It is not retried.
#[tokio::test(start_paused = true)]
async fn a_sandbox_that_fails_late_leaves_an_unknown_effect() {
    let yard = sandboxed(RetryPolicy::default()).await;
    for (tool, effect) in [("looks", Effect::Failed), ("acts", Effect::Unknown)] {
        let outcome = run(&yard, tool, "late").await;
        let error = error(&outcome);
        assert_eq!((error.kind, error.effect), (ErrorKind::SandboxError, effect));
        assert_eq!((outcome.attempts, error.attempts, error.retryable), (1, 1, false));
        assert_eq!(error.message, "sandbox 'process' failed while the call ran: no more processes");
    }
    assert_eq!(yard.log.started().len(), 2);
    yard.events.check();
}

/// SM-3: a further attempt whose sandbox fails early ends the call with what is known of the attempts before.
#[tokio::test(start_paused = true)]
async fn a_retry_whose_sandbox_fails_keeps_the_error_before() {
    let yard = sandboxed(RetryPolicy::default()).await;
    let session = yard.engine.session("s");
    let outcome = no_hang(session.call(tries("a", "looks", 0, &["transient", "early"]))).await;
    let error = error(&outcome);
    assert_eq!((error.kind, error.attempts, error.effect), (ErrorKind::SandboxError, 1, Effect::Failed));
    assert_eq!(error.last_error.as_ref().unwrap().kind, ErrorKind::Transient);
    yard.events.check();
}

/// SM-3, ID-5: nothing is kept under the key of a call that has not started; of one that may have, its end is.
#[tokio::test(start_paused = true)]
async fn a_key_outlives_a_sandbox_that_fails_early() {
    let yard = sandboxed(RetryPolicy::default()).await;
    let session = yard.engine.session("s");
    let attempts = || {
        let events = yard.events.events();
        events.iter().filter(|event| matches!(event.kind, EventKind::Attempt)).count()
    };
    for (key, expected) in [("early", 2), ("late", 1)] {
        let before = attempts();
        for _ in 0..2 {
            let mut keyed = call("a", "acts", 0, key);
            keyed.idempotency_key = Some(key.into());
            let outcome = no_hang(session.call(keyed)).await;
            assert_eq!(error(&outcome).kind, ErrorKind::SandboxError);
        }
        assert_eq!(attempts() - before, expected, "{key}");
    }
    yard.events.check();
}

/// CB-9: the breaker of a sandbox counts only its failures, and every answer of a tool as a success; the breaker of
/// the tool counts nothing of an attempt that has not started.
#[tokio::test(start_paused = true)]
async fn the_breaker_of_a_sandbox_counts_only_its_failures() {
    let yard = sandboxed(RetryPolicy::NONE).await;
    run(&yard, "serial", "transient").await;
    assert!(yard.engine.breakers().iter().all(|breaker| breaker.of != process()), "the host has none");
    for end in ["transient", "fail", "ok"] {
        run(&yard, "looks", end).await;
    }
    assert_eq!(counts(&yard, &process()), (0, 3));
    for end in ["panic", "limited", "refused"] {
        run(&yard, "looks", end).await;
    }
    assert_eq!(counts(&yard, &process()), (0, 3), "they say nothing of the sandbox");
    let looks = counts(&yard, &BreakerOf::tool("looks"));
    run(&yard, "looks", "early").await;
    assert_eq!(counts(&yard, &process()), (1, 3));
    assert_eq!(counts(&yard, &BreakerOf::tool("looks")), looks, "it has not started");
    run(&yard, "looks", "late").await;
    assert_eq!(counts(&yard, &process()), (2, 3));
    assert_eq!(counts(&yard, &BreakerOf::tool("looks")), (looks.0 + 1, looks.1));
}

/// CB-9, CB-7, CB-8: a sandbox that keeps failing is closed to all tools that run in it, and to no others; a probe
/// opens it again.
#[tokio::test(start_paused = true)]
async fn a_sandbox_that_keeps_failing_is_left_alone() {
    let yard = sandboxed(RetryPolicy::NONE).await;
    for tool in ["looks", "acts", "looks", "acts", "looks"] {
        assert_eq!(error(&run(&yard, tool, "early").await).kind, ErrorKind::SandboxError);
    }
    let session = yard.engine.session("s");
    let batch = ["looks", "acts", "read"].map(|tool| call(tool, tool, 0, "ok"));
    let outcomes = no_hang(session.dispatch(batch.to_vec())).await;
    assert_eq!(shape(&outcomes), "looks circuit_open, acts circuit_open, read ok");
    let refused = error(&outcomes[0]);
    let message = "sandbox 'process' is failing often; its circuit is open, retry in ";
    assert!(refused.message.starts_with(message), "{}", refused.message);
    let wait = refused.retry_after.unwrap();
    assert!((24 * SECOND..=36 * SECOND).contains(&wait), "{wait:?}");
    sleep(wait).await;
    assert!(run(&yard, "acts", "ok").await.success());
    let process = "Sandbox(Process)";
    assert_eq!(
        moves(&yard),
        [
            format!("{process} closed→open"),
            format!("{process} open→half_open"),
            format!("{process} half_open→closed")
        ]
    );
    yard.events.check();
}

/// CB-5, SM-3: a probe that the sandbox refuses, or that is cancelled, says nothing of it and gives its slot back. One
/// whose sandbox fails early moves the sandbox's breaker alone: the tool's probe is given back.
#[tokio::test(start_paused = true)]
async fn a_probe_that_says_nothing_of_a_sandbox_is_given_back() {
    let yard = sandboxed(RetryPolicy::NONE).await;
    for _ in 0..5 {
        run(&yard, "looks", "late").await;
    }
    let looks = BreakerOf::tool("looks");
    assert_eq!([&looks, &process()].map(|of| status(&yard, of).state), [BreakerState::Open; 2]);
    sleep(Duration::from_secs(40)).await;
    for end in ["refused", "limited"] {
        run(&yard, "looks", end).await;
        assert_eq!([&looks, &process()].map(|of| status(&yard, of).state), [BreakerState::HalfOpen; 2]);
    }
    let session = yard.engine.session("s");
    let (cancelled, found) = no_hang(async {
        let hangs = session.call(call("hangs", "looks", 0, "hangs_late"));
        let cancel = async {
            sleep(SECOND).await;
            session.cancel_call("hangs")
        };
        tokio::join!(hangs, cancel)
    })
    .await;
    assert_eq!((error(&cancelled).kind, found), (ErrorKind::Cancelled, true));
    assert_eq!(status(&yard, &process()).state, BreakerState::HalfOpen);
    run(&yard, "looks", "early").await;
    let states = [&looks, &process()].map(|of| status(&yard, of).state);
    assert_eq!(states, [BreakerState::HalfOpen, BreakerState::Open]);
    yard.events.check();
}

/// CB-10: an operator moves the breaker of a sandbox, also of one that nothing has run in; the host has none.
#[tokio::test(start_paused = true)]
async fn an_operator_moves_the_breaker_of_a_sandbox() {
    let yard = sandboxed(RetryPolicy::NONE).await;
    assert!(yard.engine.force_open(&process()));
    assert_eq!(error(&run(&yard, "looks", "ok").await).kind, ErrorKind::CircuitOpen);
    assert!(yard.engine.force_closed(&process()));
    for _ in 0..9 {
        assert_eq!(error(&run(&yard, "acts", "early").await).kind, ErrorKind::SandboxError);
    }
    assert!(yard.engine.reset_breaker(&process()));
    assert_eq!((status(&yard, &process()).state, counts(&yard, &process())), (BreakerState::Closed, (0, 0)));
    assert!(!yard.engine.force_open(&BreakerOf::sandbox(Sandbox::Host)));
    let of_process = |text: &str| format!("Sandbox(Process) {text}");
    assert_eq!(
        moves(&yard),
        ["closed→forced_open", "forced_open→forced_closed", "forced_closed→closed"].map(of_process)
    );
}

/// CB-9: the engine's policy is that of its sandboxes.
#[tokio::test(start_paused = true)]
async fn sandboxes_follow_the_policy_of_the_engine() {
    let yard = yard(|builder, log| {
        builder
            .breaker(BreakerPolicy::DISABLED)
            .tool(Program(scripted(ToolSpec::read("looks"), log)))
            .backend(Arc::new(Sandboxes))
    })
    .await;
    for _ in 0..20 {
        assert_eq!(error(&run(&yard, "looks", "early").await).kind, ErrorKind::SandboxError);
    }
    assert_eq!(status(&yard, &process()).state, BreakerState::Closed);
}

/// SM-3: what a handler in a sandbox returns is its call's result, output or error.
#[tokio::test(start_paused = true)]
async fn a_tool_in_a_sandbox_ends_as_it_says() {
    let yard = sandboxed(RetryPolicy::NONE).await;
    assert_eq!(run(&yard, "acts", "ok").await.to_text(), ToolOutput::text("a").to_text());
    assert_eq!(error(&run(&yard, "acts", "fail").await).message, "HTTP 404: no such thing");
}
