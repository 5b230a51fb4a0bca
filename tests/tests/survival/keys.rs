//! Calls with an idempotency key run only once (ID-1 to ID-8).

use super::{SECOND, no_hang};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use toolyard::{
    BreakerPolicy, Call, CallError, Dedupe, Effect, ErrorKind, ForkPolicy, KeyConflict, Outcome, RetryPolicy,
    ToolClass, ToolSettings, ToolSpec, async_trait,
};
use toolyard_tests::{Yard, call, keyed, scripted, shape, tries, yard};

fn error(outcome: &Outcome) -> &CallError {
    outcome.error().expect("expected a failed call")
}

async fn one(yard: &Yard, call: Call) -> Outcome {
    no_hang(yard.engine.session("s").call(call)).await
}

/// An engine with a tool `write`, which must not run twice, and a tool `again`, which may.
async fn keys() -> Yard {
    yard(|builder, log| {
        builder
            .tool(scripted(ToolSpec::write("write").concurrent(), log))
            .tool(scripted(ToolSpec::write("again").concurrent().idempotent(), log))
            .retry(RetryPolicy::NONE)
    })
    .await
}

/// ID-3: of all calls with one key one runs; the others share its result and hold no permit; each has its own end.
#[tokio::test(start_paused = true)]
async fn a_key_runs_once_and_all_share_its_result() {
    let yard = keys().await;
    yard.engine.resize(ToolClass::Concurrent, 2).await.unwrap();
    let session = yard.engine.session("s");
    let batch: Vec<_> = (0..8).map(|n| keyed("k", call(&format!("c{n}"), "write", 100, "ok"))).collect();
    let renamed = batch.into_iter().map(|mut call| {
        call.arguments = json!({"ms": 100, "end": "ok"}).into();
        call
    });
    let from = Instant::now();
    let outcomes = no_hang(session.dispatch(renamed.collect::<Vec<_>>())).await;
    assert_eq!(from.elapsed(), Duration::from_millis(100));
    assert_eq!(yard.log.started(), ["c0"]);
    assert!(outcomes.iter().all(|outcome| outcome.to_text() == "c0" && outcome.attempts == 1));
    let dedupe: Vec<_> = outcomes.iter().map(|outcome| outcome.dedupe).collect();
    assert_eq!(dedupe[0], Dedupe::Fresh);
    assert!(dedupe[1..].iter().all(|dedupe| *dedupe == Dedupe::Joined));
    yard.events.check();
}

/// ID-1: a key counts per session tree, forks included, and per tool; another tree has its own keys.
#[tokio::test(start_paused = true)]
async fn a_key_is_scoped_to_its_tree() {
    let yard = keys().await;
    let session = yard.engine.session("s");
    let fork = session.fork(ForkPolicy::default()).unwrap();
    let write = |id: &str| keyed("k", call(id, "write", 10, "ok"));
    let (a, b) = no_hang(async { tokio::join!(session.call(write("a")), fork.call(write("b"))) }).await;
    let other = no_hang(yard.engine.session("other").call(write("c"))).await;
    let tool = no_hang(session.call(keyed("k", call("d", "again", 10, "ok")))).await;
    let texts = [&a, &b, &other, &tool].map(|outcome| outcome.to_text());
    assert_eq!(texts, ["a", "a", "c", "d"]);
    yard.events.check();
}

/// T5, ID-4: the leader is cancelled at 10 ms ⇒ one start, and the follower gets the value.
#[tokio::test(start_paused = true)]
async fn t5_a_cancelled_leaders_followers_get_the_value() {
    let yard = keys().await;
    let (one, two) = (yard.engine.session("s"), yard.engine.session("s"));
    let (turn, other) = (one.turn(), two.turn());
    let leader = turn.dispatch(vec![keyed("k", call("leader", "write", 100, "ok"))]);
    let follower = async {
        sleep(Duration::from_millis(1)).await;
        other.dispatch(vec![keyed("k", call("follower", "write", 100, "ok"))]).await
    };
    let cancel = async {
        sleep(Duration::from_millis(10)).await;
        turn.cancel();
    };
    let from = Instant::now();
    let leader = async { (leader.await, from.elapsed()) };
    let ((led, at), followed, ()) = no_hang(async { tokio::join!(leader, follower, cancel) }).await;
    assert_eq!((shape(&led), at), ("leader cancelled".to_owned(), Duration::from_millis(10)));
    assert_eq!(error(&led[0]).effect, Effect::Unknown);
    assert!(followed[0].success() && followed[0].to_text() == "leader");
    assert_eq!(yard.log.spans(), ["leader 0..100"]);
    yard.events.check();
}

/// I1, ID-4: a cancelled leader has ended: if its deadline passes while its handler goes on for others, it does not
/// end a second time.
#[tokio::test(start_paused = true)]
async fn a_cancelled_leaders_deadline_no_longer_applies() {
    let yard = keys().await;
    let session = yard.engine.session("s");
    let (one, two) = (session.turn(), session.turn());
    let write = |id: &str| keyed("k", call(id, "write", 2000, "ok"));
    let cancel = async {
        sleep(Duration::from_millis(10)).await;
        one.cancel();
    };
    let leader = one.dispatch(vec![write("a").deadline(SECOND)]);
    let (a, b, ()) = no_hang(async { tokio::join!(leader, two.dispatch(vec![write("b")]), cancel) }).await;
    assert_eq!([shape(&a), shape(&b)], ["a cancelled", "b ok"]);
    assert_eq!(yard.log.spans(), ["a 0..2000"]);
    yard.events.check();
}

/// ID-4: the flight is cancelled when its last caller leaves; the handler has its grace, and a caller that joins
/// meanwhile gets the same result.
#[tokio::test(start_paused = true)]
async fn a_flight_ends_with_its_last_caller() {
    let yard = keys().await;
    let session = yard.engine.session("s");
    let (one, two) = (session.turn(), session.turn());
    let write = |id: &str| vec![keyed("k", call(id, "write", 0, "stops_late"))];
    let script = async {
        sleep(Duration::from_millis(10)).await;
        one.cancel();
        sleep(Duration::from_millis(10)).await;
        two.cancel();
        sleep(Duration::from_millis(10)).await;
        session.dispatch(write("c")).await
    };
    let (a, b, c) =
        no_hang(async { tokio::join!(one.dispatch(write("a")), two.dispatch(write("b")), script) }).await;
    assert_eq!([shape(&a), shape(&b), shape(&c)], ["a cancelled", "b cancelled", "c cancelled"]);
    assert_eq!(yard.log.spans(), ["a 0..40"]);
    yard.events.check();
}

/// ID-3: a leader that ends before its first attempt keeps its own result, and the oldest follower becomes the leader.
#[tokio::test(start_paused = true)]
async fn the_oldest_follower_leads_after_a_leader_that_never_started() {
    let yard = keys().await;
    yard.engine.resize(ToolClass::Concurrent, 1).await.unwrap();
    let session = yard.engine.session("s");
    let turns = [session.turn(), session.turn(), session.turn()];
    let write = |id: &str| vec![keyed("k", call(id, "write", 10, "ok"))];
    let busy = session.dispatch(vec![call("busy", "write", 100, "ok")]);
    let cancel = async {
        sleep(Duration::from_millis(50)).await;
        turns[0].cancel();
    };
    let [one, two, three] = &turns;
    let (_, a, b, c, ()) = no_hang(async {
        tokio::join!(
            busy,
            one.dispatch(write("a")),
            two.dispatch(write("b")),
            three.dispatch(write("c")),
            cancel
        )
    })
    .await;
    assert_eq!([shape(&a), shape(&b), shape(&c)], ["a cancelled", "b ok", "c ok"]);
    assert_eq!(error(&a[0]).effect, Effect::NotStarted);
    assert_eq!((b[0].dedupe, c[0].dedupe, c[0].to_text()), (Dedupe::Fresh, Dedupe::Joined, "b".to_owned()));
    yard.events.check();
}

/// ID-3, RT-9: if a leader is cancelled between two attempts, a follower makes the next one: the attempts of a flight
/// count as those of one call.
#[tokio::test(start_paused = true)]
async fn a_flight_continues_with_its_next_attempt() {
    let yard =
        yard(|builder, log| builder.tool(scripted(ToolSpec::write("again").concurrent().idempotent(), log)))
            .await;
    let session = yard.engine.session("s");
    let (one, two) = (session.turn(), session.turn());
    let flaky = |id: &str| vec![keyed("k", tries(id, "again", 10, &["transient", "transient", "ok"]))];
    let cancel = async {
        sleep(Duration::from_millis(50)).await;
        one.cancel();
    };
    let (a, b, ()) =
        no_hang(async { tokio::join!(one.dispatch(flaky("a")), two.dispatch(flaky("b")), cancel) }).await;
    assert_eq!([shape(&a), shape(&b)], ["a cancelled", "b ok"]);
    assert_eq!(error(&a[0]).last_error.as_ref().unwrap().kind, ErrorKind::Transient);
    assert_eq!((b[0].attempts, yard.log.started()), (3, vec!["a".to_owned(), "b".into(), "b".into()]));
    yard.events.check();
}

/// ID-2: another fingerprint under the same key is `key_mismatch` at any time; the formatting of equal arguments does
/// not matter.
#[tokio::test(start_paused = true)]
async fn other_arguments_under_a_key_are_refused() {
    let yard = keys().await;
    let _open = yard.engine.session("s"); // keeps the session and its keys alive
    let write = |id: &str, text: &str| keyed("k", Call::new(id, "write", text));
    let first = one(&yard, write("a", r#"{"ms": 10, "end": "ok"}"#)).await;
    let same = one(&yard, write("b", r#"{ "end":"ok", "ms":1e1 }"#)).await;
    let other = one(&yard, write("c", r#"{"ms": 11, "end": "ok"}"#)).await;
    assert_eq!((first.to_text(), same.to_text(), same.dedupe), ("a".into(), "a".into(), Dedupe::Replayed));
    assert_eq!((error(&other).kind, error(&other).effect), (ErrorKind::KeyMismatch, Effect::NotStarted));
    assert_eq!(yard.log.started(), ["a"]);
    yard.events.check();
}

/// T6, ID-6: a key that must not run twice is replayed for 60 s and then answers `already_executed`; one that may run
/// twice runs again; other arguments are a mismatch at any time.
#[tokio::test(start_paused = true)]
async fn t6_results_are_kept_for_a_minute() {
    let yard = keys().await;
    let session = yard.engine.session("s");
    let at = |id: &str, tool: &str, ms| keyed("k", call(id, tool, ms, "ok"));
    for tool in ["write", "again"] {
        no_hang(session.call(at("first", tool, 10))).await;
        sleep(59 * SECOND).await;
        let kept = no_hang(session.call(at("second", tool, 10))).await;
        assert_eq!((kept.to_text(), kept.dedupe), ("first".to_owned(), Dedupe::Replayed));
        sleep(2 * SECOND).await;
        let later = no_hang(session.call(at("third", tool, 10))).await;
        match tool {
            "write" => {
                assert_eq!(error(&later).kind, ErrorKind::AlreadyExecuted);
                let other = no_hang(session.call(at("fourth", tool, 11))).await;
                assert_eq!(error(&other).kind, ErrorKind::KeyMismatch);
            }
            _ => assert_eq!((later.to_text(), later.dedupe), ("third".to_owned(), Dedupe::Fresh)),
        }
    }
    assert_eq!(yard.log.started(), ["first", "first", "third"]);
    yard.events.check();
}

/// V4, ID-5: which failures are kept for replay depends on the error and on whether the tool may run twice.
#[tokio::test(start_paused = true)]
async fn failures_are_kept_if_they_may_have_taken_effect() {
    let yard = yard(|builder, log| {
        builder
            .tool(scripted(ToolSpec::write("write").concurrent().timeout(SECOND), log))
            .tool(scripted(ToolSpec::write("again").concurrent().idempotent().timeout(SECOND), log))
            .retry(RetryPolicy::NONE)
            .breaker(BreakerPolicy::DISABLED)
    })
    .await;
    let session = yard.engine.session("s");
    let ends_with = ["fail", "no", "transient", "harmless", "limited", "panic", "hang"];
    for (tool, kept) in [
        ("write", ["fail", "no", "transient", "limited", "panic", "hang"].as_slice()),
        ("again", ["fail", "no"].as_slice()),
    ] {
        for end in ends_with {
            let write = |id: &str| keyed(&format!("{tool} {end}").replace(' ', "-"), call(id, tool, 0, end));
            let first = no_hang(session.call(write("a"))).await;
            let second = no_hang(session.call(write("b"))).await;
            let expected = if kept.contains(&end) { Dedupe::Replayed } else { Dedupe::Fresh };
            assert_eq!(second.dedupe, expected, "{tool} {end}");
            assert_eq!(error(&first).kind, error(&second).kind, "{tool} {end}");
        }
    }
    yard.events.check();
}

/// T7, ID-7: the leader panics with three waiters ⇒ four `panic` results, one start, one breaker failure.
#[tokio::test(start_paused = true)]
async fn t7_a_panic_reaches_every_caller() {
    let yard = keys().await;
    let batch: Vec<_> = (0..4).map(|n| keyed("k", call(&format!("c{n}"), "write", 10, "panic"))).collect();
    let outcomes = no_hang(yard.engine.session("s").dispatch(batch)).await;
    assert_eq!(shape(&outcomes), "c0 panic, c1 panic, c2 panic, c3 panic");
    assert_eq!(yard.log.started(), ["c0"]);
    let failures = yard.engine.breakers().into_iter().map(|breaker| breaker.failures).sum::<u64>();
    assert_eq!(failures, 1);
    yard.events.check();
}

/// ID-3: a call reserves its key when its run begins, even if the pool is full; a call in a later run does not
/// reserve it before.
#[tokio::test(start_paused = true)]
async fn a_key_runs_once_although_the_pool_is_full() {
    let yard = keys().await;
    yard.engine.resize(ToolClass::Concurrent, 1).await.unwrap();
    let session = yard.engine.session("s");
    let mut batch = vec![call("busy", "write", 50, "ok")];
    batch.extend((0..3).map(|n| keyed("k", call(&format!("c{n}"), "write", 10, "ok"))));
    batch.push(call("read", "read", 10, "ok"));
    batch.push(keyed("later", call("late", "write", 10, "ok")));
    let other = async {
        sleep(Duration::from_millis(5)).await;
        session.call(keyed("later", call("first", "write", 10, "ok"))).await
    };
    let (outcomes, first) = no_hang(async { tokio::join!(session.dispatch(batch), other) }).await;
    assert!(outcomes.iter().all(Outcome::success));
    assert_eq!((first.dedupe, outcomes[5].dedupe), (Dedupe::Fresh, Dedupe::Replayed));
    assert_eq!(yard.log.started(), ["busy", "c0", "first", "read"]);
    yard.events.check();
}

/// ID-3: a tool may choose to answer `key_in_progress` instead of waiting.
#[tokio::test(start_paused = true)]
async fn a_conflict_may_be_an_error() {
    let settings = ToolSettings { key_conflict: Some(KeyConflict::Fail), ..ToolSettings::default() };
    let yard = yard(|builder, log| {
        builder.tool(scripted(ToolSpec::write("write").concurrent(), log)).tool_config("write", settings)
    })
    .await;
    let batch = ["a", "b"].map(|id| keyed("k", call(id, "write", 10, "ok")));
    let outcomes = no_hang(yard.engine.session("s").dispatch(batch.to_vec())).await;
    assert_eq!(shape(&outcomes), "a ok, b key_in_progress");
    yard.events.check();
}

/// ID-4, V3: a deadline ends only its own caller: the others get the result, and the flight ends with its last caller.
#[tokio::test(start_paused = true)]
async fn a_deadline_ends_its_own_caller() {
    let yard = keys().await;
    let session = yard.engine.session("s");
    let write = |id: &str, within: u64| {
        keyed("k", call(id, "write", 1000, "ok")).deadline(Duration::from_millis(within))
    };
    let batch = vec![write("a", 100), write("b", 200), write("c", 5000)];
    let outcomes = no_hang(session.dispatch(batch)).await;
    assert_eq!(shape(&outcomes), "a deadline_exceeded, b deadline_exceeded, c ok");
    assert_eq!(yard.log.spans(), ["a 0..1000"]);
    let deaf = |id: &str, within: u64| {
        keyed("d", call(id, "write", 0, "polite")).deadline(Duration::from_millis(within))
    };
    let from = Instant::now();
    let outcomes = no_hang(session.dispatch(vec![deaf("a", 100), deaf("b", 300)])).await;
    assert_eq!(shape(&outcomes), "a deadline_exceeded, b deadline_exceeded");
    assert_eq!(from.elapsed(), Duration::from_millis(300));
    sleep(SECOND).await;
    assert_eq!(yard.log.running(), 0, "no caller waits for it any more");
    yard.events.check();
}

/// V2, CL-3: if a call leaves a flight, the next run still waits until the flight is quiescent.
#[tokio::test(start_paused = true)]
async fn a_caller_that_left_is_quiescent_with_its_flight() {
    let yard = keys().await;
    let session = yard.engine.session("s");
    let leader = session.call(keyed("k", call("leader", "write", 1000, "ok")));
    let follower = keyed("k", call("follower", "write", 1000, "ok")).deadline(Duration::from_millis(100));
    let batch = vec![follower, call("behind", "read", 0, "ok")];
    let (leader, outcomes) = no_hang(async { tokio::join!(leader, session.dispatch(batch)) }).await;
    assert!(leader.success());
    assert_eq!(shape(&outcomes), "follower deadline_exceeded, behind ok");
    assert_eq!(yard.log.spans(), ["leader 0..1000", "behind 1000..1000"]);
    yard.events.check();
}

/// ID-2: an invalid key is refused together with its call.
#[tokio::test(start_paused = true)]
async fn an_invalid_key_is_refused() {
    let yard = keys().await;
    for bad in ["", "a b", "a\n", "schlüssel", &"k".repeat(256)] {
        let outcome = one(&yard, keyed(bad, call("a", "write", 0, "ok"))).await;
        assert_eq!(error(&outcome).kind, ErrorKind::InvalidInput, "{bad:?}");
    }
    assert!(one(&yard, keyed(&"k".repeat(255), call("a", "write", 0, "ok"))).await.success());
    assert_eq!(yard.log.started().len(), 1);
}

/// V1, CB-7: the result of a key is replayed even if its tool's breaker is open.
#[tokio::test(start_paused = true)]
async fn a_result_is_replayed_although_the_circuit_is_open() {
    let yard = keys().await;
    let _open = yard.engine.session("s");
    let write = || keyed("k", call("a", "write", 0, "ok"));
    one(&yard, write()).await;
    yard.engine.force_open(&toolyard::BreakerOf::tool("write"));
    assert_eq!(one(&yard, write()).await.dedupe, Dedupe::Replayed);
    assert_eq!(error(&one(&yard, call("b", "write", 0, "ok")).await).kind, ErrorKind::CircuitOpen);
    yard.events.check();
}

/// V1, PO-3: a caller of a key needs an approval of its own digest to share the result: an answer to another agent's
/// call with other arguments is none.
#[tokio::test(start_paused = true)]
async fn callers_of_a_key_with_other_arguments_need_their_own_approval() {
    struct NotTheLast;
    #[async_trait]
    impl toolyard::Approver for NotTheLast {
        async fn ask(&self, request: &toolyard::ApprovalRequest) -> toolyard::Answer {
            match request.call_id().as_str() {
                "c2" => toolyard::Answer::deny("ada"),
                _ => toolyard::Answer::allow("ada"),
            }
        }
    }
    let yard = yard(|builder, log| {
        builder
            .tool(scripted(ToolSpec::write("write").concurrent(), log))
            .confirmations(toolyard::Confirmations::default())
            .approver(NotTheLast)
    })
    .await;
    let batch: Vec<_> = [10, 10, 20]
        .iter()
        .zip(0..)
        .map(|(ms, n)| keyed("k", call(&format!("c{n}"), "write", *ms, "ok")))
        .collect();
    let outcomes = no_hang(yard.engine.session("s").dispatch(batch)).await;
    assert_eq!(shape(&outcomes), "c0 ok, c1 ok, c2 user_denied");
    assert_eq!((outcomes[1].dedupe, yard.log.started().len()), (Dedupe::Joined, 1));
    yard.events.check();
}
