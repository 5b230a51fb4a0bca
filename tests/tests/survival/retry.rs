//! Retries of failed attempts (RT-1 to RT-9).

use super::{SECOND, no_hang};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use toolyard::{
    BreakerPolicy, Call, CallError, Effect, ErrorKind, EventKind, Jitter, Outcome, RetryPolicy, RetryStopped,
    Tool, ToolClass, ToolContext, ToolError, ToolOutput, ToolSettings, ToolSpec, async_trait, from_fn,
    tool_fn,
};
use toolyard_tests::{Yard, call, scripted, shape, tries, yard};

async fn one(yard: &Yard, call: Call) -> Outcome {
    no_hang(yard.engine.session("s").call(call)).await
}

fn error(outcome: &Outcome) -> &CallError {
    outcome.error().expect("expected a failed call")
}

/// The delays in the events, in milliseconds.
fn delays(yard: &Yard) -> Vec<u64> {
    let delay = |kind: &EventKind| match kind {
        EventKind::Retry { delay_ms, .. } => Some(*delay_ms),
        _ => None,
    };
    yard.events.events().iter().filter_map(|event| delay(&event.kind)).collect()
}

/// RT-1, RT-2: a read has up to three attempts, 0.1–0.15 s and 0.4–0.6 s apart.
#[tokio::test(start_paused = true)]
async fn a_transient_failure_is_retried() {
    let yard = yard(|builder, _| builder.seed(7)).await;
    let from = Instant::now();
    let outcome = one(&yard, tries("a", "read", 0, &["transient", "transient", "ok"])).await;
    assert!(outcome.success());
    assert_eq!((outcome.attempts, outcome.queued()), (3, Duration::ZERO));
    let delays = delays(&yard);
    assert!((100..=150).contains(&delays[0]) && (400..=600).contains(&delays[1]), "{delays:?}");
    assert!(from.elapsed() >= Duration::from_millis(500), "{:?}", from.elapsed());
    assert_eq!(outcome.ran(), from.elapsed(), "all attempts and the delays between them");
    yard.events.check();
}

/// RT-1: the third attempt is the last, and the result says so.
#[tokio::test(start_paused = true)]
async fn there_are_three_attempts_at_most() {
    let yard = yard(|builder, _| builder).await;
    let outcome = one(&yard, call("a", "read", 0, "transient")).await;
    let error = error(&outcome);
    assert_eq!((outcome.attempts, error.attempts, yard.log.started().len()), (3, 3, 3));
    assert_eq!((error.kind, error.retry_stopped), (ErrorKind::Transient, Some(RetryStopped::Attempts)));
    yard.events.check();
}

/// RT-1: which failures of which tools are retried.
#[tokio::test(start_paused = true)]
async fn only_repeatable_failures_are_retried() {
    let yard = yard(|builder, log| {
        let idempotent = ToolSpec::write("idempotent").idempotent().timeout(SECOND);
        let recursive = ToolSpec::read("recursive").recursive();
        builder
            .breaker(BreakerPolicy::DISABLED)
            .tool(scripted(idempotent, log))
            .tool(scripted(recursive, log))
            .tool_config("serial", ToolSettings { timeout: Some(SECOND), ..ToolSettings::default() })
    })
    .await;
    for (tool, end, attempts) in [
        ("read", "transient", 3),
        ("idempotent", "transient", 3),
        ("serial", "transient", 1),
        ("serial", "harmless", 3),
        ("recursive", "transient", 1),
        ("read", "limited", 3),
        ("serial", "limited", 1),
        ("idempotent", "hang", 3),
        ("serial", "hang", 1),
        ("read", "fail", 1),
        ("read", "panic", 1),
        ("read", "no", 1),
    ] {
        let outcome = one(&yard, call("a", tool, 0, end)).await;
        assert_eq!(outcome.attempts, attempts, "{tool} {end}");
    }
    yard.events.check();
}

/// RT-2: a tool may have its own policy, with full jitter and other numbers.
#[tokio::test(start_paused = true)]
async fn a_tool_may_set_its_retry_policy() {
    let second = Duration::from_secs(1);
    let policy = RetryPolicy::default().with_max_attempts(5).with_jitter(Jitter::Full);
    let policy = policy.with_delays(second, 1.0, second);
    let yard = yard(|builder, log| {
        builder.tool(scripted(ToolSpec::read("own").retry(policy), log)).retry(RetryPolicy::NONE)
    })
    .await;
    assert_eq!(one(&yard, call("a", "own", 0, "transient")).await.attempts, 5);
    let delays = delays(&yard);
    assert!(delays.len() == 4 && delays.iter().all(|delay| *delay <= 1000), "{delays:?}");
    assert_eq!(one(&yard, call("a", "read", 0, "transient")).await.attempts, 1);
}

/// RT-7: a call that has pushed calls into a stream is not retried, even if it fails before the stream has taken them
/// in, and they never run.
#[tokio::test(start_paused = true)]
async fn a_call_that_has_streamed_calls_is_not_retried() {
    let yard = yard(|builder, _| {
        let streams = tool_fn(ToolSpec::read("streams"), |(): (), cx: ToolContext| async move {
            use toolyard::SubAgents;
            let stream = cx.fork(toolyard::ForkPolicy::default())?.open_batch();
            stream.push(call("inner", "serial", 0, "ok"));
            Err::<ToolOutput, _>(ToolError::transient("HTTP 500: connection refused"))
        });
        builder.tool(streams)
    })
    .await;
    let outcome = one(&yard, Call::new("a", "streams", "{}")).await;
    assert_eq!((error(&outcome).kind, outcome.attempts), (ErrorKind::Transient, 1));
    assert_eq!(yard.log.started(), [""; 0]);
    assert_eq!(yard.events.of_call("inner"), ["tool.call.received", "tool.failed"]);
    yard.events.check();
}

/// RT-6, CC-5: a call in backoff holds neither its permits nor the serial lease, but its batch's next run still waits.
#[tokio::test(start_paused = true)]
async fn backoff_frees_the_slot() {
    let yard = yard(|builder, log| {
        let spec = ToolSpec::write("flaky").idempotent();
        builder.tool(scripted(spec, log)).max_in_flight(1)
    })
    .await;
    let session = yard.engine.session("s");
    let first = vec![tries("a", "flaky", 10, &["transient", "ok"]), call("b", "read", 10, "ok")];
    let beside = async {
        sleep(Duration::from_millis(20)).await;
        let status = yard.engine.status().await.unwrap();
        assert!(status.pools.iter().all(|pool| pool.running == 0), "{status:?}");
        session.dispatch(vec![call("other", "serial", 10, "ok")]).await
    };
    let (outcomes, other) = no_hang(async { tokio::join!(session.dispatch(first), beside) }).await;
    assert_eq!((shape(&outcomes), shape(&other)), ("a ok, b ok".to_owned(), "other ok".to_owned()));
    assert_eq!(
        yard.log.started(),
        ["a", "other", "a", "b"],
        "another session runs meanwhile, its own next run does not"
    );
    yard.events.check();
}

/// RT-3, T10: a hint over 30 s ends the call at once and is passed on in the error.
#[tokio::test(start_paused = true)]
async fn t10_a_hint_over_30_s_is_passed_on() {
    let yard = yard(|builder, _| builder).await;
    let hinted = |ms: u64| Call::new("a", "read", json!({"ends": ["limited", "ok"], "hint_ms": ms}));
    let from = Instant::now();
    let outcome = one(&yard, hinted(45_000)).await;
    let error = error(&outcome);
    assert_eq!((error.kind, error.attempts, from.elapsed()), (ErrorKind::RateLimited, 1, Duration::ZERO));
    assert_eq!(error.retry_after, Some(45 * SECOND));
    assert_eq!(error.retry_stopped, Some(RetryStopped::Hint));
    yard.events.check();
}

/// RT-3, T10: a hint of up to 30 s is waited for exactly, and a longer one not at all.
#[tokio::test(start_paused = true)]
async fn t10_a_hint_of_up_to_30_s_is_waited_for() {
    for (hint_ms, attempts) in [(2_000, 2), (29_999, 2), (30_000, 2), (30_001, 1)] {
        let yard = yard(|builder, _| builder).await;
        let from = Instant::now();
        let args = json!({"ends": ["limited", "ok"], "hint_ms": hint_ms});
        let outcome = one(&yard, Call::new("a", "read", args)).await;
        assert_eq!((outcome.attempts, outcome.success()), (attempts, attempts == 2), "{hint_ms} ms");
        let waited = if attempts == 2 { vec![hint_ms] } else { Vec::new() };
        assert_eq!(delays(&yard), waited);
        assert_eq!(from.elapsed(), Duration::from_millis(waited.iter().sum()));
        yard.events.check();
    }
}

/// RT-4: if a backoff would leave no time for an attempt, the call ends at once with the last real error.
#[tokio::test(start_paused = true)]
async fn there_is_no_sleep_past_the_deadline() {
    let yard = yard(|builder, _| builder).await;
    let from = Instant::now();
    let outcome = one(&yard, call("a", "read", 10, "transient").deadline(5 * SECOND)).await;
    let error = error(&outcome);
    // 10 % of the attempt timeout of 60 s is more than the time left.
    assert_eq!((error.kind, error.retry_stopped), (ErrorKind::Transient, Some(RetryStopped::Deadline)));
    assert_eq!((from.elapsed(), outcome.attempts), (Duration::from_millis(10), 1));
    yard.events.check();
}

/// V3, RT-4: a timeout in all counts from the start of the first attempt, whatever the call waited before. A later
/// attempt is cut off where it ends, and so is the wait for one.
#[tokio::test(start_paused = true)]
async fn a_timeout_in_all_bounds_the_call_with_its_retries() {
    let yard = yard(|builder, _| builder).await;
    yard.engine.resize(ToolClass::Read, 1).await.unwrap();
    let session = yard.engine.session("s");
    let twice = |id: &str, ms: u64| tries(id, "read", ms, &["transient", "ok"]).timeout_in_all(SECOND);

    let from = Instant::now();
    let outcomes = no_hang(session.dispatch(vec![call("busy", "read", 500, "ok"), twice("cut", 700)])).await;
    let cut = error(&outcomes[1]);
    assert_eq!((cut.kind, cut.attempts, cut.effect), (ErrorKind::Timeout, 2, Effect::Failed));
    assert_eq!((cut.retry_stopped, cut.retryable), (Some(RetryStopped::Deadline), true));
    assert_eq!(from.elapsed(), Duration::from_millis(1500), "it waited for half a second before it started");

    let from = Instant::now();
    let late = async {
        sleep(Duration::from_millis(310)).await;
        session.call(call("late", "read", 5000, "ok")).await
    };
    let waits = async { (session.call(twice("waits", 300)).await, from.elapsed()) };
    let ((waited, elapsed), _) = no_hang(async { tokio::join!(waits, late) }).await;
    let waited = error(&waited);
    assert_eq!((waited.kind, waited.attempts, elapsed), (ErrorKind::DeadlineExceeded, 1, SECOND));
    assert_eq!(waited.last_error.as_ref().map(|last| last.kind), Some(ErrorKind::Transient));
    assert_eq!(waited.advice, "It changed nothing; it needs more time.");
    yard.events.check();
}

/// RT-5, T18: ten failing retries drain the bucket, so the next failure has one attempt; ten successes buy one retry.
#[tokio::test(start_paused = true)]
async fn t18_failing_retries_drain_the_bucket() {
    let yard = yard(|builder, _| builder.breaker(BreakerPolicy::DISABLED)).await;
    for _ in 0..5 {
        assert_eq!(one(&yard, call("a", "read", 0, "transient")).await.attempts, 3);
    }
    let outcome = one(&yard, call("a", "read", 0, "transient")).await;
    assert_eq!((outcome.attempts, error(&outcome).retry_stopped), (1, Some(RetryStopped::Budget)));
    for _ in 0..10 {
        assert!(one(&yard, call("a", "read", 0, "ok")).await.success());
    }
    assert_eq!(one(&yard, call("a", "read", 0, "transient")).await.attempts, 2);
    yard.events.check();
}

/// RT-5: a retry that succeeds gives back its tokens.
#[tokio::test(start_paused = true)]
async fn retries_that_succeed_cost_nothing() {
    let yard = yard(|builder, _| builder.breaker(BreakerPolicy::DISABLED)).await;
    for _ in 0..50 {
        assert!(one(&yard, tries("a", "read", 0, &["transient", "ok"])).await.success());
    }
    assert_eq!(one(&yard, call("a", "read", 0, "transient")).await.attempts, 3);
}

/// RT-5: of many calls that fail at once, as many are tried again as the bucket has tokens for, and more with a larger one.
#[tokio::test(start_paused = true)]
async fn a_larger_bucket_holds_the_retries_of_more_agents() {
    for (tokens, expected) in [(100, 10), (189, 18), (190, 19)] {
        let retry = RetryPolicy::default().with_bucket(tokens);
        let yard = yard(|builder, _| builder.breaker(BreakerPolicy::DISABLED).retry(retry)).await;
        let calls: Vec<_> =
            (0..19).map(|n| tries(&format!("c{n}"), "read", 0, &["transient", "ok"])).collect();
        let outcomes = yard.engine.session("s").dispatch(calls).await;
        let (ok, failed): (Vec<_>, Vec<_>) = outcomes.iter().partition(|outcome| outcome.success());
        assert_eq!(ok.len(), expected, "{tokens} tokens");
        assert!(failed.iter().all(|one| error(one).retry_stopped == Some(RetryStopped::Budget)));
        yard.events.check();
    }
}

/// RT-7, T11: at depth 3, only the leaf is retried.
#[tokio::test(start_paused = true)]
async fn t11_one_layer_retries() {
    struct Passes;
    #[async_trait]
    impl Tool for Passes {
        async fn execute(&self, args: &serde_json::Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
            let depth = args["depth"].as_u64().unwrap();
            let inner = match depth {
                1 => call("leaf", "read", 0, "transient"),
                _ => Call::new("inner", "passes", json!({"depth": depth - 1})),
            };
            let outcomes = cx.dispatch(vec![inner]).await;
            Err(ToolError::transient(outcomes[0].to_text()))
        }
    }
    let yard = yard(|builder, _| builder.tool(from_fn(ToolSpec::read("passes"), || Passes))).await;
    let outcome = one(&yard, Call::new("root", "passes", json!({"depth": 3}))).await;
    assert_eq!((outcome.attempts, error(&outcome).kind), (1, ErrorKind::Transient));
    assert_eq!(yard.log.started(), ["leaf"; 3]);
    yard.events.check();
}

/// RT-8: a cancel ends the backoff at once, and the error includes that of the last attempt.
#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_backoff_at_once() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let cancel = async {
        sleep(Duration::from_millis(50)).await;
        assert!(session.cancel_call("a"));
    };
    let from = Instant::now();
    let calls = vec![call("a", "read", 0, "transient"), call("b", "read", 10, "ok")];
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(calls), cancel) }).await;
    assert_eq!(shape(&outcomes), "a cancelled, b ok");
    assert_eq!(from.elapsed(), Duration::from_millis(50));
    let error = error(&outcomes[0]);
    assert_eq!((error.attempts, error.effect), (1, Effect::Failed));
    assert_eq!(error.last_error.as_ref().unwrap().kind, ErrorKind::Transient);
    sleep(5 * SECOND).await;
    assert_eq!(yard.log.started(), ["a", "b"], "and it does not start again");
    yard.events.check();
}

/// RT-9: attempts of a call have consecutive numbers and the same key.
#[tokio::test(start_paused = true)]
async fn attempts_share_a_key_and_are_numbered() {
    struct Streams;
    #[async_trait]
    impl Tool for Streams {
        async fn execute(&self, _: &serde_json::Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
            cx.emit(&format!("{} {}", cx.attempt(), cx.idempotency_key().unwrap()));
            if cx.attempt() == 3 { Ok("done".into()) } else { Err(ToolError::transient("not yet")) }
        }
    }
    let yard = yard(|builder, _| builder.tool(from_fn(ToolSpec::read("streams"), || Streams))).await;
    let mut call = Call::new("a", "streams", "{}");
    call.idempotency_key = Some("k".into());
    assert!(one(&yard, call).await.success());
    let events = yard.events.events();
    let streamed = events.iter().filter_map(|event| match &event.kind {
        EventKind::OutputDelta { text } => Some((event.attempt, text.clone())),
        _ => None,
    });
    let expected = ["1 k", "2 k", "3 k"].iter().zip(1..).map(|(text, n)| (Some(n), (*text).to_owned()));
    assert_eq!(streamed.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    yard.events.check();
}

/// SC-5: a handler with a timeout grace may clean up; the attempt has timed out nevertheless.
#[tokio::test(start_paused = true)]
async fn a_timeout_may_leave_a_grace() {
    struct Tidies;
    #[async_trait]
    impl Tool for Tidies {
        async fn execute(&self, args: &serde_json::Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
            cx.cancelled().await;
            sleep(Duration::from_millis(args["ms"].as_u64().unwrap())).await;
            Ok("as far as it came".into())
        }
    }
    let yard = yard(|builder, _| {
        let spec = ToolSpec::write("tidies").timeout(SECOND).timeout_grace(SECOND);
        builder.tool(from_fn(spec, || Tidies))
    })
    .await;
    for (ms, took, output) in [(500, 1500, "as far as it came"), (5000, 2000, "")] {
        let from = Instant::now();
        let outcome = one(&yard, Call::new("a", "tidies", json!({"ms": ms}))).await;
        let error = error(&outcome);
        assert_eq!((error.kind, error.effect), (ErrorKind::Timeout, Effect::Unknown));
        assert_eq!(ToolOutput::parts(error.content().to_vec()).to_text(), output);
        assert_eq!(from.elapsed(), Duration::from_millis(took));
    }
    yard.events.check();
}

/// V3: each time a call asks for its permits it has a full queue timeout, whatever it waited before.
#[tokio::test(start_paused = true)]
async fn each_attempt_has_a_full_queue_timeout() {
    let yard = yard(|builder, _| builder.queue_timeout(SECOND)).await;
    yard.engine.resize(ToolClass::Read, 1).await.unwrap();
    let session = yard.engine.session("s");
    let batch = vec![call("busy", "read", 500, "ok"), tries("flaky", "read", 100, &["transient", "ok"])];
    let late = async {
        sleep(Duration::from_millis(550)).await;
        session.call(call("late", "read", 700, "ok")).await
    };
    // It waits until 0.5 s, runs until 0.6 s, and waits again for the last call, which ends at 1.3 s.
    let (outcomes, late) = no_hang(async { tokio::join!(session.dispatch(batch), late) }).await;
    assert_eq!(shape(&outcomes), "busy ok, flaky ok");
    assert!(late.success());
    yard.events.check();
}

/// RT-5: a retry that is not made because its call was cancelled costs nothing.
#[tokio::test(start_paused = true)]
async fn a_retry_that_is_not_made_costs_nothing() {
    let yard = yard(|builder, _| builder.breaker(BreakerPolicy::DISABLED)).await;
    let session = yard.engine.session("s");
    let flaky = |id: &str| tries(id, "read", 0, &["transient", "ok"]);
    for n in 0..10 {
        let id = format!("c{n}");
        let cancel = async {
            sleep(Duration::from_millis(50)).await;
            assert!(session.cancel_call(&id));
        };
        let (outcome, ()) = no_hang(async { tokio::join!(session.call(flaky(&id)), cancel) }).await;
        assert_eq!((error(&outcome).kind, outcome.attempts), (ErrorKind::Cancelled, 1));
    }
    let outcome = no_hang(session.call(flaky("last"))).await;
    assert!(outcome.success(), "{:?}", outcome.error());
    yard.events.check();
}

/// V1, RT-8: the `on_tool_end` hook also runs, once, for a call that ends between two attempts, and the call does not
/// wait for it.
#[tokio::test(start_paused = true)]
async fn the_end_hook_runs_for_an_end_between_attempts() {
    #[derive(Clone, Default)]
    struct Ends(std::sync::Arc<std::sync::Mutex<Vec<String>>>);
    #[async_trait]
    impl toolyard::Hooks for Ends {
        async fn on_tool_end(&self, outcome: &Outcome, _: &toolyard::Caller<'_>) {
            sleep(SECOND).await;
            self.0.lock().unwrap().push(shape(std::slice::from_ref(outcome)));
        }
    }
    let ended = Ends::default();
    let yard = yard(|builder, _| builder.hooks(ended.clone())).await;
    let session = yard.engine.session("s");
    let cancel = async {
        sleep(Duration::from_millis(50)).await;
        assert!(session.cancel_call("a"));
    };
    let from = Instant::now();
    let (outcome, ()) =
        no_hang(async { tokio::join!(session.call(call("a", "read", 0, "transient")), cancel) }).await;
    assert_eq!((error(&outcome).kind, from.elapsed()), (ErrorKind::Cancelled, Duration::from_millis(50)));
    sleep(2 * SECOND).await;
    assert_eq!(*ended.0.lock().unwrap(), ["a cancelled"]);
}

/// CC-9: a cancelled backoff keeps nothing alive: the session closes with its last call.
#[tokio::test(start_paused = true)]
async fn a_cancelled_backoff_keeps_nothing_alive() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let hinted = Call::new("a", "read", json!({"ends": ["transient", "ok"], "hint_ms": 20_000}));
    let cancel = async {
        sleep(SECOND).await;
        session.cancel();
    };
    no_hang(async { tokio::join!(session.call(hinted), cancel) }).await;
    drop(session);
    tokio::task::yield_now().await;
    let closed = yard.events.events().iter().any(|event| matches!(event.kind, EventKind::SessionClosed));
    assert!(closed, "the session does not wait for the cancelled attempt");
}
