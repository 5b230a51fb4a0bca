use super::*;
use std::sync::atomic::{AtomicU32, Ordering};
use toolyard::{
    Batch, BreakerPolicy, Call, Confirmations, Dedupe, Engine, EngineBuilder, Outcome, PoolWidths,
    RetryPolicy, ToolContext, ToolError, ToolSpec, tool_fn,
};

const SECOND: Duration = Duration::from_secs(1);

/// This many attempts, two seconds apart whatever the jitter.
fn retries(attempts: u32) -> RetryPolicy {
    let policy = RetryPolicy::default().with_max_attempts(attempts);
    policy.with_delays(2 * SECOND, 1.0, 2 * SECOND)
}

/// Runs the calls on an engine whose tool `flaky` takes a second and first fails `failures` times, and reports on them.
async fn report(
    failures: u32,
    spec: ToolSpec,
    change: impl FnOnce(EngineBuilder) -> EngineBuilder,
    calls: Vec<Call>,
) -> (Report, Vec<Outcome>) {
    let left = AtomicU32::new(failures);
    let flaky = tool_fn(spec, move |(): (), _: ToolContext| {
        let fails = left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        async move {
            tokio::time::sleep(SECOND).await;
            if fails { Err(ToolError::transient("HTTP 503")) } else { Ok("done") }
        }
    });
    let recorder = Recorder::default();
    let builder = Engine::builder()
        .tool(flaky)
        .retry(retries(3))
        .confirmations(Confirmations::auto())
        .events(recorder.sink());
    let engine = change(builder).build().await.unwrap();
    let session = engine.session("run");
    let turn = session.turn();
    let outcomes = turn.dispatch(Batch::new(calls)).await;
    let times = recorder.take(session.id(), turn.number());
    let mut report = Report::new(widths(), false);
    report.add(None, Timeline::new(&outcomes, &times));
    report.breaker_changes = recorder.breaker_changes();
    report.at_once = recorder.at_once();
    (report, outcomes)
}

fn widths() -> Widths {
    Widths {
        pools: PoolWidths::default(),
        max_in_flight: None,
        tree_max_in_flight: None,
        tools: Default::default(),
        rates: Default::default(),
    }
}

fn read() -> ToolSpec {
    ToolSpec::read("flaky")
}

fn call(id: &'static str) -> Call {
    Call::new(id, "flaky", "{}")
}

/// The line of a call.
fn line(report: &Report, id: &str) -> String {
    let text = report.text(200);
    let line = text.lines().find(|line| line.contains(id));
    line.unwrap_or_else(|| panic!("{id} is not in\n{text}")).to_owned()
}

/// RT-2, RT-6: every attempt has its own bar, with the wait between.
#[tokio::test(start_paused = true)]
async fn retries_are_seen_one_by_one() {
    let (report, _) = report(2, read(), |builder| builder, vec![call("again")]).await;
    let json = report.json(Exit::Ok);
    let call = &json["timeline"][0];
    let attempt = |began: f64, error: Option<&str>| {
        let backoff = error.map(|_| 2000.0);
        json!({"began_ms": began, "ended_ms": began + 1000.0, "error": error, "backoff_ms": backoff})
    };
    let transient = Some("transient");
    let attempts = json!([attempt(0.0, transient), attempt(3000.0, transient), attempt(6000.0, None)]);
    assert_eq!((&call["attempts"], &call["ran_ms"]), (&attempts, &json!(7000.0)));
    assert_eq!((&call["ok"], &call["error"], &call["dedupe"]), (&json!(true), &Value::Null, &json!("fresh")));
    assert_eq!((&call["retry_stopped"], &call["retry_after_ms"]), (&Value::Null, &Value::Null));

    let line = line(&report, "again");
    let bars = line.find('▒').map(|at| line[at..].split_whitespace().next().unwrap()).unwrap();
    // What follows is the end of its colour.
    let bars: Vec<char> = bars.chars().take_while(|cell| !cell.is_control()).collect();
    let shape: Vec<char> = bars.chunk_by(|a, b| a == b).map(|of| of[0]).collect();
    assert_eq!(shape, ['▒', '╌', '▒', '╌', '█'], "{line}");
    assert!(line.ends_with("3 attempts, 4.00 s between"), "{line}");
}

/// KT-11: a call that waits for its next attempt does not run, and the average is over the elapsed time.
#[tokio::test(start_paused = true)]
async fn a_backoff_does_not_run() {
    let (report, _) = report(2, read(), |builder| builder, vec![call("one"), call("other")]).await;
    let json = report.json(Exit::Ok);
    // Two failures, and after a backoff of two seconds two successes.
    assert_eq!((&json["wall_ms"], &json["tools"]["flaky"]["calls"]), (&json!(4000.0), &json!(2)));
    assert_eq!(json["at_once"], json!({"average": 1.0, "most": 2, "busy_ms": 4000.0}));
    assert_eq!(json["tools"]["flaky"]["ran_ms"]["p50"], json!(4000.0));
}

/// V5, RT-1, RT-4: why no further attempt was made.
#[tokio::test(start_paused = true)]
async fn the_reason_why_retries_stopped_is_shown() {
    let late = call("late").deadline(2 * SECOND);
    let (report, _) = report(9, read(), |builder| builder, vec![call("failed"), late]).await;
    assert!(
        line(&report, "failed").ends_with("transient; 3 attempts, 4.00 s between; retry stopped: attempts")
    );
    assert!(line(&report, "late").ends_with("transient; retry stopped: deadline"));
    let json = report.json(Exit::CallFailed);
    let stopped = [0, 1].map(|at| json["timeline"][at]["retry_stopped"].clone());
    assert_eq!(stopped, ["attempts", "deadline"]);
}

/// CB-8, CB-10, RT-8: which calls were refused, when to retry, and how the breaker moved.
#[tokio::test(start_paused = true)]
async fn an_open_breaker_is_shown_with_its_retry_delay() {
    let touchy = BreakerPolicy::default().with_consecutive(1).with_jitter(0.0);
    let serial = ToolSpec::write("flaky").idempotent();
    let (report, _) =
        report(1, serial, |builder| builder.breaker(touchy), vec![call("first"), call("second")]).await;
    let lines = [line(&report, "first"), line(&report, "second")];
    assert!(lines[0].contains("circuit_open after transient, retry in 28.00 s"), "{lines:?}");
    assert!(lines[1].contains("circuit_open, retry in 28.00 s"), "{lines:?}");
    assert!(report.text(200).contains("\nbreaker of tool 'flaky': open\n"), "{}", report.text(200));
    let json = report.json(Exit::CallFailed);
    let fields = ["error", "last_error", "retry_after_ms"].map(|key| json["timeline"][0][key].clone());
    assert_eq!(fields, [json!("circuit_open"), json!("transient"), json!(28_000.0)]);
    let moves = json!([{"at_ms": 1000.0, "to": "open"}]);
    assert_eq!(json["breakers"], json!([{"tool": "flaky", "moves": moves, "more_moves": 0}]));
}

/// ID-3: a call that shares another's run says so.
#[tokio::test(start_paused = true)]
async fn a_shared_result_is_marked() {
    let (_, mut outcomes) = report(0, read(), |builder| builder, vec![call("a"), call("b"), call("c")]).await;
    outcomes[1].dedupe = Dedupe::Joined;
    outcomes[2].dedupe = Dedupe::Replayed;
    // As in their events: they were never started themselves.
    let timeline = Timeline::new(&outcomes, &Default::default());
    let drawn = text::draw(&timeline, &widths(), 200);
    assert_eq!((drawn.matches('○').count(), drawn.matches('×').count()), (3, 0), "{drawn}");
    let remarks: Vec<Vec<String>> = timeline.spans.iter().map(text::remarks).collect();
    assert_eq!(
        remarks,
        [vec![], vec!["joined another call's run".to_owned()], vec!["replayed an earlier result".to_owned()]]
    );
}
