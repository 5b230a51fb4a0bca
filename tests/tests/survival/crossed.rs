//! Keyed calls whose wait would be circular are refused instead of waiting (ID-3a).

use super::no_hang;
use serde_json::json;
use std::{sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use toolyard::{Call, Outcome, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, async_trait, from_fn};
use toolyard_tests::{Yard, keyed, scripted, shape, yard};

async fn one(yard: &Yard, call: Call) -> Outcome {
    no_hang(yard.engine.session("s").call(call)).await
}

/// A tool that dispatches the call in its arguments.
struct Nests;

#[async_trait]
impl Tool for Nests {
    async fn execute(&self, args: &serde_json::Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        if let Some(ms) = args["before_ms"].as_u64() {
            sleep(Duration::from_millis(ms)).await;
        }
        let inner = &args["inner"];
        let mut call = Call::new("inner", inner["tool"].as_str().unwrap(), inner["args"].clone());
        call.idempotency_key = inner["key"].as_str().map(Arc::from);
        let outcomes = cx.dispatch(vec![call]).await;
        let reason = outcomes[0].error().and_then(|error| error.reason);
        Ok(format!("{} {reason:?}", shape(&outcomes)).into())
    }
}

async fn nests() -> Yard {
    yard(|builder, log| {
        builder
            .tool(scripted(ToolSpec::write("write").concurrent(), log))
            .tool(from_fn(ToolSpec::read("nests"), || Nests))
            .tool(from_fn(ToolSpec::write("serial_nests"), || Nests))
    })
    .await
}

const REFUSED: &str = "inner key_in_progress Some(WouldDeadlock)";

/// ID-3a: a call under a flight waits for no flight, neither the one above it nor another.
#[tokio::test(start_paused = true)]
async fn a_call_does_not_wait_for_the_flight_above_it() {
    let yard = nests().await;
    let args =
        json!({"inner": {"tool": "nests", "args": {"inner": {"tool": "read", "args": {}}}, "key": "k"}});
    // Arguments cannot contain themselves, so a nested call under its ancestor's key has other arguments: the
    // mismatch comes first.
    let call = keyed("k", Call::new("outer", "nests", args.clone()));
    let outcome = one(&yard, call).await;
    assert_eq!(outcome.to_text(), "inner key_mismatch None");
    let outer = keyed(
        "x",
        Call::new("outer", "nests", json!({"inner": {"tool": "write", "args": {"ms": 10}, "key": "y"}})),
    );
    let (first, second) = no_hang(async {
        let session = yard.engine.session("s");
        let busy = session.clone();
        tokio::join!(busy.call(keyed("y", Call::new("w", "write", json!({"ms": 10})))), session.call(outer))
    })
    .await;
    assert!(first.success());
    assert_eq!(second.to_text(), REFUSED, "under a flight of its own it does not wait for another");
    yard.events.check();
}

/// Calls itself under the key in its arguments and passes its own key on, so that two such calls call each other.
struct Crosses;

#[async_trait]
impl Tool for Crosses {
    async fn execute(&self, args: &serde_json::Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        sleep(Duration::from_millis(10)).await;
        let own = cx.idempotency_key().unwrap();
        let inner = keyed(args["other"].as_str().unwrap(), crossing("inner", own));
        let outcomes = cx.dispatch(vec![inner]).await;
        // The other call must find this one in flight.
        sleep(Duration::from_millis(10)).await;
        let reason = outcomes[0].error().and_then(|error| error.reason);
        Ok(format!("{} {reason:?}", shape(&outcomes)).into())
    }
}

fn crossing(id: &str, other: &str) -> Call {
    Call::new(id, "crosses", json!({"other": other}))
}

/// ID-3a: two agents cross two keys: each is refused the other's key at once, and both end.
#[tokio::test(start_paused = true)]
async fn two_agents_that_cross_two_keys_do_not_wait_for_each_other() {
    let yard = yard(|builder, _| builder.tool(from_fn(ToolSpec::read("crosses"), || Crosses))).await;
    let session = yard.engine.session("s");
    let fork = session.fork(toolyard::ForkPolicy::default()).unwrap();
    let from = Instant::now();
    let (a, b) = (keyed("a", crossing("a", "b")), keyed("b", crossing("b", "a")));
    let (a, b) = no_hang(async { tokio::join!(session.call(a), fork.call(b)) }).await;
    assert_eq!((a.to_text().as_str(), b.to_text().as_str()), (REFUSED, REFUSED));
    assert_eq!(from.elapsed(), Duration::from_millis(20));
    yard.events.check();
}

/// ID-3a: a call under a serial handler does not join a flight whose leader waits for that handler's lease.
#[tokio::test(start_paused = true)]
async fn a_joiner_under_a_serial_handler_does_not_wait() {
    let yard = nests().await;
    let session = yard.engine.session("s");
    let serial = json!({"ms": 10, "end": "ok"});
    let outer = Call::new(
        "outer",
        "serial_nests",
        json!({"before_ms": 10, "inner": {"tool": "serial", "args": serial, "key": "k"}}),
    );
    let leader = async {
        sleep(Duration::from_millis(5)).await;
        session.call(keyed("k", Call::new("leader", "serial", serial.clone()))).await
    };
    let (outer, leader) = no_hang(async { tokio::join!(session.call(outer), leader) }).await;
    assert_eq!(outer.to_text(), REFUSED);
    assert!(leader.success());
    yard.events.check();
}

/// ID-3a: a leader under a serial handler leaves between two attempts; the call that takes over needs the lease of that
/// handler, which ends without waiting for it.
#[tokio::test(start_paused = true)]
async fn a_lease_does_not_wait_for_a_flight_that_was_passed_on() {
    let yard = yard(|builder, log| {
        let again = ToolSpec::write("again").idempotent();
        builder.tool(from_fn(ToolSpec::write("serial_nests"), || Nests)).tool(scripted(again, log))
    })
    .await;
    let session = yard.engine.session("s");
    let flaky = json!({"ms": 10, "ends": ["transient", "ok"]});
    let inner = json!({"tool": "again", "args": flaky, "key": "k"});
    let outer = Call::new("outer", "serial_nests", json!({"before_ms": 0, "inner": inner}));
    let successor = async {
        sleep(Duration::from_millis(5)).await;
        session.call(keyed("k", Call::new("successor", "again", flaky.clone()))).await
    };
    let turn = session.turn();
    let outer = async {
        let dropped = tokio::time::timeout(Duration::from_millis(7), turn.dispatch(vec![outer])).await;
        assert!(dropped.is_err(), "the turn is given up while its inner call runs");
    };
    let ((), successor) = no_hang(async { tokio::join!(outer, successor) }).await;
    assert_eq!((successor.to_text().as_str(), successor.attempts), ("successor", 2));
    yard.events.check();
}
