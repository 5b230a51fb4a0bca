//! Calls that share a flight: leaving it, taking it over, and what its handler may still do (ID-3, ID-4).

use super::{SECOND, no_hang};
use serde_json::json;
use std::time::Duration;
use tokio::time::{Instant, sleep};
use toolyard::{
    Call, CallError, Dedupe, Effect, ErrorKind, ForkPolicy, Hooks, Outcome, SubAgents, Tool, ToolClass,
    ToolContext, ToolError, ToolOutput, ToolSpec, async_trait, from_fn,
};
use toolyard_tests::{Yard, call, keyed, scripted, shape, tries, yard};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Sets the one key of these tests.
fn error(outcome: &Outcome) -> &CallError {
    outcome.error().expect("expected a failed call")
}

/// An engine with a tool `write`, which must not run twice, and a tool `again`, which may.
async fn keys() -> Yard {
    yard(|builder, log| {
        builder
            .tool(scripted(ToolSpec::write("write").concurrent(), log))
            .tool(scripted(ToolSpec::write("again").concurrent().idempotent(), log))
    })
    .await
}

/// ID-4, SC-4: a leader that is cancelled ends alone; its handler goes on for the followers.
#[tokio::test(start_paused = true)]
async fn cancelling_a_leader_ends_only_the_leader() {
    let yard = keys().await;
    let session = yard.engine.session("s");
    let batch = ["a", "b"].map(|id| keyed("k", call(id, "write", 100, "ok")));
    let cancel = async {
        sleep(ms(10)).await;
        assert!(session.cancel_call("a"));
        sleep(ms(10)).await;
        assert!(!session.cancel_call("a"), "it has ended");
    };
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch.to_vec()), cancel) }).await;
    assert_eq!(shape(&outcomes), "a cancelled, b ok");
    assert_eq!(outcomes[0].ran(), ms(10));
    yard.events.check();
}

/// ID-4, SC-4: the last caller of a flight can still be cancelled by its id; it then waits for the handler to stop.
#[tokio::test(start_paused = true)]
async fn the_last_waiter_can_still_be_cancelled() {
    let yard = keys().await;
    let session = yard.engine.session("s");
    let (one, two) = (session.turn(), session.turn());
    let write = |id: &str| vec![keyed("k", call(id, "write", 0, "stops_late"))];
    let cancel = async {
        sleep(ms(10)).await;
        one.cancel();
        sleep(ms(10)).await;
        assert!(two.cancel_call("b"));
    };
    let (a, b, ()) =
        no_hang(async { tokio::join!(one.dispatch(write("a")), two.dispatch(write("b")), cancel) }).await;
    assert_eq!([shape(&a), shape(&b)], ["a cancelled", "b cancelled"]);
    assert_eq!(yard.log.spans(), ["a 0..40"]);
    yard.events.check();
}

/// ID-4, SC-5: a handler that goes on for others has its whole grace when the last caller leaves, whatever the
/// deadline of an earlier caller, and whether that was cancelled or left at its deadline.
#[tokio::test(start_paused = true)]
async fn earlier_leavers_do_not_shorten_the_grace() {
    for leaves_at in [50, 500] {
        let yard = keys().await;
        let session = yard.engine.session("s");
        let (one, two) = (session.turn(), session.turn());
        let write = |id: &str| keyed("k", call(id, "write", 0, "stops_late"));
        let cancel = async {
            sleep(ms(60)).await;
            one.cancel();
            sleep(ms(30)).await;
            assert!(two.cancel_call("b"));
        };
        let a = write("a").deadline(ms(leaves_at.min(100)));
        let (a, b, ()) =
            no_hang(async { tokio::join!(one.dispatch(vec![a]), two.dispatch(vec![write("b")]), cancel) })
                .await;
        let left = if leaves_at == 50 { "a deadline_exceeded" } else { "a cancelled" };
        assert_eq!([shape(&a), shape(&b)], [left, "b cancelled"]);
        assert_eq!(yard.log.spans(), ["a 0..110"], "it was not given up at 100");
        yard.events.check();
    }
}

/// An engine with a tool `write` that runs once at a time per agent, for at most a second.
async fn narrow(has_hooks: bool) -> Yard {
    struct Quick;
    #[async_trait]
    impl Hooks for Quick {}
    let write = ToolSpec::write("write").concurrent().max_concurrency(1).timeout(SECOND);
    yard(|builder, log| {
        let builder = if has_hooks { builder.hooks(Quick) } else { builder };
        builder.tool(scripted(write, log))
    })
    .await
}

/// V3: a caller that takes over a flight has the full attempt timeout from its start, however long it waited before.
#[tokio::test(start_paused = true)]
async fn a_successor_has_a_full_attempt_timeout() {
    let yard = narrow(false).await;
    let session = yard.engine.session("s");
    let (turn, fork) = (session.turn(), session.fork(ForkPolicy::default()).unwrap());
    let write = |id: &str| vec![keyed("k", call(id, "write", 500, "ok"))];
    let busy: Vec<_> = (0..10).map(|n| call(&format!("busy{n}"), "write", 900, "ok")).collect();
    let cancel = async {
        sleep(5 * SECOND).await;
        turn.cancel();
    };
    let all = async {
        tokio::join!(session.dispatch(busy), turn.dispatch(write("a")), fork.dispatch(write("b")), cancel)
    };
    let (_, a, b, ()) = no_hang(all).await;
    assert_eq!([shape(&a), shape(&b)], ["a cancelled", "b ok"]);
    assert_eq!((b[0].queued(), b[0].ran()), (5 * SECOND, ms(500)));
    yard.events.check();
}

/// V3: a caller that takes over a flight has its own deadline from when it was ready, with or without hooks.
#[tokio::test(start_paused = true)]
async fn a_successor_keeps_its_deadline() {
    for has_hooks in [false, true] {
        let yard = narrow(has_hooks).await;
        let session = yard.engine.session("s");
        let (turn, fork) = (session.turn(), session.fork(ForkPolicy::default()).unwrap());
        let write = |id: &str| keyed("k", call(id, "write", 500, "ok"));
        let cancel = async {
            sleep(ms(400)).await;
            turn.cancel();
        };
        let from = Instant::now();
        let follower = async { (fork.call(write("b").deadline(ms(600))).await, from.elapsed()) };
        let busy = session.dispatch(vec![call("busy", "write", 900, "ok")]);
        let all = async { tokio::join!(busy, turn.dispatch(vec![write("a")]), follower, cancel) };
        let (_, a, (b, at), ()) = no_hang(all).await;
        assert_eq!([shape(&a), shape(&[b])], ["a cancelled", "b deadline_exceeded"]);
        assert_eq!(at, ms(600), "with hooks: {has_hooks}");
        yard.events.check();
    }
}

/// ID-3, SC-3, V2: if the nested calls of a handler are quiescent before its own end is recorded, nobody is left
/// waiting and its key has a result.
#[tokio::test(start_paused = true)]
async fn a_handlers_leftovers_may_quiesce_before_it_ends() {
    struct Leaves;
    #[async_trait]
    impl Tool for Leaves {
        async fn execute(&self, _: &serde_json::Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
            let own = cx.clone();
            tokio::spawn(async move { own.dispatch(vec![call("inner", "read", 0, "ok")]).await });
            sleep(ms(50)).await;
            Ok("left".into())
        }
    }
    let leaves = ToolSpec::write("leaves").concurrent();
    let yard = yard(|builder, _| builder.tool(from_fn(leaves, || Leaves))).await;
    yard.engine.pause(ToolClass::Read).await.unwrap();
    let session = yard.engine.session("s");
    let leaves = |id: &str| keyed("k", Call::new(id, "leaves", json!({})));
    let batch = vec![leaves("a"), leaves("b"), call("behind", "serial", 0, "ok")];
    let outcomes = no_hang(session.dispatch(batch)).await;
    assert_eq!(shape(&outcomes), "a ok, b ok, behind ok");
    let again = no_hang(session.call(leaves("c"))).await;
    assert_eq!((again.to_text(), again.dedupe), ("left".to_owned(), Dedupe::Replayed));
    yard.events.check();
}

/// ID-4, RT-4: there is time for another attempt as long as one of a flight's callers has time, whether the leader
/// leaves before or after the decision.
#[tokio::test(start_paused = true)]
async fn a_flight_has_the_latest_deadline_of_its_callers() {
    for (takes, led) in [(50, ms(120)), (150, ms(120))] {
        let yard = keys().await;
        let session = yard.engine.session("s");
        let again = |id: &str| keyed("k", tries(id, "again", takes, &["transient", "ok"]));
        let from = Instant::now();
        let leader = async { (session.call(again("a").deadline(led)).await, from.elapsed()) };
        let ((a, at), b) = no_hang(async { tokio::join!(leader, session.call(again("b"))) }).await;
        assert_eq!(shape(&[a, b]), "a deadline_exceeded, b ok", "{takes} ms");
        assert_eq!(at, led);
        assert!(from.elapsed() >= ms(2 * takes + 100), "RT-2: the backoff is that of the flight");
        yard.events.check();
    }
}

/// V3: a follower has its own deadline but no queue timeout, because it is in no queue.
#[tokio::test(start_paused = true)]
async fn a_follower_has_a_deadline_but_no_queue_timeout() {
    let yard = yard(|builder, log| {
        builder.tool(scripted(ToolSpec::write("write").concurrent(), log)).queue_timeout(SECOND)
    })
    .await;
    let session = yard.engine.session("s");
    let write = |id: &str| keyed("k", call(id, "write", 10_000, "ok"));
    let from = Instant::now();
    let short = async { (session.call(write("b").deadline(3 * SECOND)).await, from.elapsed()) };
    let all = async { tokio::join!(session.call(write("a")), short, session.call(write("c"))) };
    let (a, (b, at), c) = no_hang(all).await;
    assert_eq!((error(&b).kind, at), (ErrorKind::DeadlineExceeded, 3 * SECOND));
    assert_eq!(shape(&[a, c]), "a ok, c ok");
    yard.events.check();
}

/// A tool that dispatches the call in its arguments at 50 ms.
struct Nests;

#[async_trait]
impl Tool for Nests {
    async fn execute(&self, args: &serde_json::Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        if args["twice"] == true {
            cx.dispatch(vec![call("before", "read", 1, "ok")]).await;
        }
        sleep(ms(50)).await;
        let inner = vec![call("inner", args["tool"].as_str().unwrap(), 100, "ok")];
        let outcomes = match args["as_agent"] == true {
            true => cx.fork(ForkPolicy::default())?.dispatch(inner).await,
            false => cx.dispatch(inner).await,
        };
        Ok(shape(&outcomes).into())
    }
}

/// ID-4, CC-7: a handler that goes on for others still makes nested calls, under its lease and within its callers'
/// time, whether its own caller left before or leaves during those calls.
#[tokio::test(start_paused = true)]
async fn a_handler_kept_for_others_can_still_dispatch() {
    for (n, (outer, inner)) in (0..).zip([("nests", "read"), ("serial_nests", "serial")].repeat(8)) {
        let (as_agent, twice, has_deadline, at) = (n & 2 > 0, n & 4 > 0, n & 8 > 0, [10, 100][n / 2 % 2]);
        let yard = yard(|builder, _| {
            builder
                .tool(from_fn(ToolSpec::write("nests").concurrent(), || Nests))
                .tool(from_fn(ToolSpec::write("serial_nests"), || Nests))
        })
        .await;
        let session = yard.engine.session("s");
        let (one, two) = (session.turn(), session.turn());
        let args = json!({"tool": inner, "as_agent": as_agent, "twice": twice});
        let mut leader = keyed("k", Call::new("a", outer, args.clone()));
        leader.deadline = has_deadline.then(|| ms(at));
        let cancel = async {
            sleep(ms(at)).await;
            if !has_deadline {
                one.cancel();
            }
        };
        let follower = keyed("k", Call::new("b", outer, args));
        let all = async { tokio::join!(one.dispatch(vec![leader]), two.dispatch(vec![follower]), cancel) };
        let (a, b, ()) = no_hang(all).await;
        assert!(!a[0].success());
        assert_eq!(b[0].to_text(), "inner ok", "{outer} {as_agent} {twice} {has_deadline} {at}");
        yard.events.check();
    }
}

/// V5: a caller that leaves a read handler knows that nothing was changed.
#[tokio::test(start_paused = true)]
async fn a_caller_leaving_a_read_knows_nothing_changed() {
    let yard = keys().await;
    let session = yard.engine.session("s");
    let read = |id: &str| keyed("k", call(id, "read", 100, "ok"));
    let outcomes = no_hang(session.dispatch(vec![read("a").deadline(ms(50)), read("b")])).await;
    assert_eq!(shape(&outcomes), "a deadline_exceeded, b ok");
    assert_eq!(error(&outcomes[0]).effect, Effect::Failed);
    yard.events.check();
}

/// ID-4, SC-1: when a cancelled sub-agent's handler goes on for another agent, so do its nested calls.
#[tokio::test(start_paused = true)]
async fn a_cancelled_agents_flight_continues_with_its_nested_calls() {
    struct Nests;
    #[async_trait]
    impl Tool for Nests {
        async fn execute(&self, _: &serde_json::Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
            let first = cx.dispatch(vec![call("first", "read", 50, "ok")]).await;
            let second = cx.dispatch(vec![call("second", "read", 50, "ok")]).await;
            Ok(format!("{}, {}", shape(&first), shape(&second)).into())
        }
    }
    let yard =
        yard(|builder, _| builder.tool(from_fn(ToolSpec::write("nests").concurrent(), || Nests))).await;
    let session = yard.engine.session("s");
    let fork = session.fork(ForkPolicy::default()).unwrap();
    let nests = |id: &str| keyed("k", Call::new(id, "nests", "{}"));
    let cancel = async {
        sleep(ms(10)).await;
        fork.cancel();
    };
    let (a, b, ()) =
        no_hang(async { tokio::join!(fork.call(nests("a")), session.call(nests("b")), cancel) }).await;
    assert_eq!(shape(&[a]), "a cancelled");
    assert_eq!(b.to_text(), "first ok, second ok");
    // Cancelled by both agents, the flight ends with all its nested calls.
    let fork = session.fork(ForkPolicy::default()).unwrap();
    let again = |id: &str| {
        let mut call = nests(id);
        call.idempotency_key = Some("again".into());
        call
    };
    let cancel = async {
        sleep(ms(10)).await;
        session.cancel();
    };
    let (a, b, ()) =
        no_hang(async { tokio::join!(fork.call(again("a")), session.call(again("b")), cancel) }).await;
    assert_eq!(shape(&[a, b]), "a ok, b cancelled", "the last one has its handler's grace");
    assert_eq!(yard.log.running(), 0);
    yard.events.check();
}
