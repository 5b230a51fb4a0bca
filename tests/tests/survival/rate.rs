//! Rate limits on attempts (RT-10), and pauses that a server asks for (RT-3).

use super::{SECOND, no_hang};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use toolyard::{Call, ErrorKind, ToolSettings, ToolSpec};
use toolyard_tests::{Yard, call, scripted, shape, yard};

async fn limited(rate: &str) -> Yard {
    let settings = ToolSettings { rate: Some(rate.parse().unwrap()), ..ToolSettings::default() };
    yard(|builder, _| builder.tool_config("read", settings)).await
}

fn calls(count: usize) -> Vec<Call> {
    (0..count).map(|n| call(&format!("c{n}"), "read", 0, "ok")).collect()
}

/// RT-10: attempts start no faster than the rate, in order of arrival over all sessions; a call that would wait
/// longer than 5 s is `rate_limited` with a retry hint. Waiting calls hold no permit (CC-5).
#[tokio::test(start_paused = true)]
async fn attempts_wait_for_their_token_in_order() {
    let yard = limited("2/s burst 2").await;
    let from = Instant::now();
    let (one, two) = (yard.engine.session("one"), yard.engine.session("two"));
    let beside = async {
        sleep(Duration::from_millis(10)).await;
        let status = yard.engine.status().await.unwrap();
        assert!(status.pools.iter().all(|pool| pool.running == 0 && pool.queued == 0), "{status:?}");
        two.dispatch(vec![call("late", "read", 0, "ok")]).await
    };
    let (first, second) = no_hang(async { tokio::join!(one.dispatch(calls(12)), beside) }).await;
    assert!(first.iter().all(|outcome| outcome.success()), "{}", shape(&first));
    assert_eq!(from.elapsed(), 5 * SECOND);
    let order: Vec<_> = (0..12).map(|n| format!("c{n}")).collect();
    assert_eq!(yard.log.started(), order);
    let refused = second[0].error().unwrap();
    assert_eq!((refused.kind, refused.attempts), (ErrorKind::RateLimited, 0));
    assert!(refused.retry_after.unwrap() > 5 * SECOND, "{refused:?}");
    assert_eq!(first[4].queued(), Duration::from_millis(1500));
    yard.events.check();
}

/// RT-10, RT-3: an operator sees each rate, how many calls wait for it, and pauses that servers asked for.
#[tokio::test(start_paused = true)]
async fn a_rate_and_its_waiters_are_seen() {
    let yard = limited("1/s").await;
    let session = yard.engine.session("s");
    let look = async {
        sleep(SECOND / 2).await;
        yard.engine.status().await.unwrap().rates
    };
    let (outcomes, seen) = no_hang(async { tokio::join!(session.dispatch(calls(3)), look) }).await;
    assert!(outcomes.iter().all(|outcome| outcome.success()), "{}", shape(&outcomes));
    let rates = json!([{"tool": "read", "rate": "1/s", "waiting": 2, "paused_ms": null}]);
    assert_eq!(json!(seen), rates);
}

/// RT-10, CC-9: a cancelled call leaves the line at once, and those behind it move up.
#[tokio::test(start_paused = true)]
async fn a_cancelled_call_gives_up_its_place() {
    let yard = limited("1/s").await;
    let session = yard.engine.session("s");
    let cancel = async {
        sleep(Duration::from_millis(500)).await;
        assert!(session.cancel_call("c1"));
    };
    let from = Instant::now();
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(calls(3)), cancel) }).await;
    assert_eq!(shape(&outcomes), "c0 ok, c1 cancelled, c2 ok");
    assert_eq!(from.elapsed(), SECOND);
    yard.events.check();
}

/// RT-10: each attempt, not each call, takes a token; V3: waiting for it counts towards queue timeout and deadline.
#[tokio::test(start_paused = true)]
async fn each_attempt_takes_a_token() {
    let settings = ToolSettings { rate: Some("1/s".parse().unwrap()), ..ToolSettings::default() };
    let yard =
        yard(|builder, _| builder.tool_config("read", settings).queue_timeout(Duration::from_millis(2500)))
            .await;
    let session = yard.engine.session("s");
    let from = Instant::now();
    let flaky = Call::new("a", "read", json!({"ends": ["transient", "ok"]}));
    assert!(no_hang(session.call(flaky)).await.success());
    assert_eq!(from.elapsed(), SECOND);
    let batch = vec![
        call("b", "read", 0, "ok"),
        call("c", "read", 0, "ok").deadline(SECOND / 2),
        call("d", "read", 0, "ok"),
    ];
    let outcomes = no_hang(session.dispatch(batch)).await;
    assert_eq!(shape(&outcomes), "b ok, c deadline_exceeded, d ok");
    assert_eq!(from.elapsed(), 3 * SECOND, "d takes the token that c left");
    let outcomes = no_hang(session.dispatch(calls(3))).await;
    assert_eq!(shape(&outcomes), "c0 ok, c1 ok, c2 queue_timeout");
    yard.events.check();
}

/// T10, second half: after a hint of 2 s, the next attempt comes at least 2 s later, and other sessions' calls of
/// that tool wait too; calls of other tools do not.
#[tokio::test(start_paused = true)]
async fn t10_a_hint_pauses_the_tool_for_all_sessions() {
    let yard = yard(|builder, log| builder.tool(scripted(ToolSpec::read("other"), log))).await;
    let (one, two) = (yard.engine.session("one"), yard.engine.session("two"));
    let hinted = Call::new("a", "read", json!({"ends": ["limited", "ok"], "hint_ms": 2000}));
    let beside = async {
        sleep(Duration::from_millis(10)).await;
        let [pause] = &yard.engine.status().await.unwrap().rates[..] else { panic!("the pause is seen") };
        assert_eq!(
            (&*pause.tool, pause.rate, pause.paused),
            ("read", None, Some(Duration::from_millis(1990)))
        );
        let batch = vec![call("b", "read", 0, "ok"), call("c", "other", 0, "ok")];
        two.dispatch(batch).await
    };
    let (a, others) = no_hang(async { tokio::join!(one.call(hinted), beside) }).await;
    assert!(a.success() && a.attempts == 2);
    assert_eq!(shape(&others), "b ok, c ok");
    let spans = yard.log.spans();
    assert_eq!(spans[..2], ["a 0..0", "c 10..10"]);
    assert!(a.ran() >= 2 * SECOND && others[0].queued() >= Duration::from_millis(1990), "{spans:?}");
    yard.events.check();
}
