//! Calls that share a flight: who leaves it, who takes it over, and what its handler may still do (ID-3, ID-4).

use super::ends;
use std::time::Duration;
use tokio::time::sleep;
use toolyard::{Call, CallError, Outcome, ToolSpec};
use toolyard_tests::{Yard, call, scripted, shape, yard};

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A call under the one key of these tests.
fn keyed(mut call: Call) -> Call {
    call.idempotency_key = Some("k".into());
    call
}

fn error(outcome: &Outcome) -> &CallError {
    outcome.error().expect("it has failed")
}

/// An engine whose tool `write` must not run twice and whose tool `again` may.
async fn keys() -> Yard {
    yard(|builder, log| {
        builder
            .tool(scripted(ToolSpec::write("write").concurrent(), log))
            .tool(scripted(ToolSpec::write("again").concurrent().idempotent(), log))
    })
    .await
}

/// ID-4, SC-4: a leader that is cancelled alone leaves its handler to who waits for it.
#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cancelled_alone_ends_alone() {
    let yard = keys().await;
    let session = yard.engine.session("s");
    let batch = ["a", "b"].map(|id| keyed(call(id, "write", 100, "ok")));
    let cancel = async {
        sleep(ms(10)).await;
        assert!(session.cancel_call("a"));
        sleep(ms(10)).await;
        assert!(!session.cancel_call("a"), "it has ended");
    };
    let (outcomes, ()) = ends(async { tokio::join!(session.dispatch(batch.to_vec()), cancel) }).await;
    assert_eq!(shape(&outcomes), "a cancelled, b ok");
    assert_eq!(outcomes[0].ran, ms(10));
    yard.events.check();
}

/// ID-4, SC-4: cancelling the last one who waits for a flight finds it, though it stays for what comes of that.
#[tokio::test(start_paused = true)]
async fn the_last_who_waits_is_there_to_be_cancelled() {
    let yard = keys().await;
    let session = yard.engine.session("s");
    let (one, two) = (session.turn(), session.turn());
    let write = |id: &str| vec![keyed(call(id, "write", 0, "stops_late"))];
    let cancel = async {
        sleep(ms(10)).await;
        one.cancel();
        sleep(ms(10)).await;
        assert!(two.cancel_call("b"));
    };
    let (a, b, ()) =
        ends(async { tokio::join!(one.dispatch(write("a")), two.dispatch(write("b")), cancel) }).await;
    assert_eq!([shape(&a), shape(&b)], ["a cancelled", "b cancelled"]);
    assert_eq!(yard.log.spans(), ["a 0..40"]);
    yard.events.check();
}
