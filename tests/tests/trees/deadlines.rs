//! Queue timeouts and call deadlines (V3).

use crate::nested::{nest, nesting};
use std::time::Duration;
use toolyard::{BuildError, Call, Effect, Engine, ToolSpec};
use toolyard_tests::{Yard, call, kinds, shape, yard};

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// When each call ended, in milliseconds.
fn ends(yard: &Yard) -> Vec<String> {
    let events = yard.events.events();
    let began = events.iter().find(|event| event.kind.name() == "turn.started").unwrap().mono_us;
    let ended = events.iter().filter(|event| event.kind.is_terminal());
    ended
        .map(|event| format!("{} {}", event.call_id.as_ref().unwrap(), (event.mono_us - began) / 1000))
        .collect()
}

/// V3, CC-9: a call that waits longer than the queue timeout is answered at that instant, not started; the time spent
/// in earlier runs does not count.
#[tokio::test(start_paused = true)]
async fn a_call_waits_no_longer_than_the_queue_timeout() {
    let yard = yard(|builder, _| builder.queue_timeout(ms(30))).await;
    let session = yard.engine.session("s");
    let other = yard.engine.session("t");
    let blocker = session.dispatch(vec![call("blocker", "serial", 100, "ok")]);
    let batch =
        vec![call("read", "read", 50, "ok"), call("waits", "serial", 0, "ok"), call("last", "read", 0, "ok")];
    let (_, outcomes, _) =
        tokio::join!(blocker, session.dispatch(batch), other.dispatch(vec![call("free", "serial", 0, "ok")]));
    assert_eq!(shape(&outcomes), "read ok, waits queue_timeout, last ok");
    let error = outcomes[1].error().unwrap();
    assert_eq!((error.effect, error.attempts), (Effect::NotStarted, 0));
    assert!(error.message.contains("30ms"), "{}", error.message);
    assert_eq!(ends(&yard), ["free 0", "read 50", "waits 80", "last 80", "blocker 100"]);
    yard.events.check();
}

/// V3: if attempt timeout and call deadline fall on the same instant, the deadline wins, because no retry may follow.
#[tokio::test(start_paused = true)]
async fn a_deadline_counts_before_a_timeout_of_the_same_moment() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let hangs = |id: &str, timeout, deadline| call(id, "read", 100, "ok").timeout(timeout).deadline(deadline);
    let batch =
        vec![hangs("first", ms(40), ms(50)), hangs("both", ms(40), ms(40)), hangs("last", ms(50), ms(40))];
    let outcomes = session.dispatch(batch).await;
    assert_eq!(shape(&outcomes), "first timeout, both deadline_exceeded, last deadline_exceeded");
    yard.events.check();
}

/// V3: a call ends by its deadline, waiting or running; the engine's deadline is for calls without their own.
#[tokio::test(start_paused = true)]
async fn a_call_ends_by_its_deadline() {
    let yard = yard(|builder, _| builder.call_deadline(ms(200))).await;
    let session = yard.engine.session("s");
    let batch = vec![
        call("runs", "serial", 100, "ok").deadline(ms(40)),
        call("slow", "serial", 300, "ok"),
        call("in_time", "serial", 10, "ok").deadline(ms(40)),
    ];
    let waits = session.dispatch(vec![call("waits", "serial", 0, "ok").deadline(ms(70))]);
    let (outcomes, waited) = tokio::join!(session.dispatch(batch), async {
        tokio::time::sleep(ms(50)).await;
        waits.await
    });
    assert_eq!(shape(&outcomes), "runs deadline_exceeded, slow deadline_exceeded, in_time ok");
    assert_eq!(shape(&waited), "waits deadline_exceeded");
    let effects = [&outcomes[0], &waited[0]].map(|outcome| outcome.error().unwrap().effect);
    assert_eq!(effects, [Effect::Unknown, Effect::NotStarted]);
    assert_eq!(ends(&yard), ["runs 40", "waits 120", "slow 240", "in_time 250"]);
    yard.events.check();
}

/// V3: a parent's deadline caps its children's, and keeps running while the parent is parked.
#[tokio::test(start_paused = true)]
async fn a_parents_deadline_caps_its_childrens() {
    let yard = yard(|builder, log| builder.tool(nesting(ToolSpec::write("nests"), log))).await;
    let children = vec![
        call("quick", "serial", 10, "ok"),
        call("slow", "serial", 90, "ok"),
        call("late", "serial", 0, "ok"),
    ];
    let deep = nest("b", "nests", children);
    let outcomes =
        yard.engine.session("s").dispatch(vec![nest("a", "nests", vec![deep]).deadline(ms(60))]).await;
    assert_eq!(shape(&outcomes), "a deadline_exceeded");
    // The calls above are cut off in the same instant and cancel the calls below them.
    let mut ends = ends(&yard);
    ends.sort_unstable();
    assert_eq!(ends, ["a 60", "b 60", "late 60", "quick 10", "slow 60"]);
    assert_eq!(yard.log.started(), ["quick", "slow"]);
    yard.events.check();
}

/// V3: many waiting calls with different deadlines each end at their own.
#[tokio::test(start_paused = true)]
async fn each_call_ends_at_its_own_limit() {
    let yard = yard(|builder, _| builder.max_in_flight(1)).await;
    let waiting = (0..20u64).map(|n| call(&format!("c{n:02}"), "read", 0, "ok").deadline(ms(400 - 10 * n)));
    let batch: Vec<_> = std::iter::once(call("blocker", "read", 1000, "ok")).chain(waiting).collect();
    let outcomes = yard.engine.session("s").dispatch(batch).await;
    assert_eq!(kinds(&outcomes).into_iter().flatten().count(), 20);
    let expected: Vec<_> = (0..20u64).rev().map(|n| format!("c{n:02} {}", 400 - 10 * n)).collect();
    assert_eq!(ends(&yard)[..20], expected);
    yard.events.check();
}

/// V3: limits of zero are refused where they are configured.
#[tokio::test(start_paused = true)]
async fn limits_of_zero_are_refused() {
    let builders = [Engine::builder().queue_timeout(ms(0)), Engine::builder().call_deadline(ms(0))];
    for builder in builders {
        assert!(matches!(builder.build().await, Err(BuildError::Zero { .. })));
    }
    let yard = yard(|builder, _| builder).await;
    let outcomes =
        yard.engine.session("s").dispatch(vec![Call::new("a", "read", "{}").deadline(ms(0))]).await;
    assert_eq!(shape(&outcomes), "a invalid_input");
}
