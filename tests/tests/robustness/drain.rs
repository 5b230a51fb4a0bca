//! Shutdowns at awkward moments, and durations at the ends of their range (SC-5, SC-8).

use crate::{SECOND, no_hang};
use std::time::Duration;
use toolyard::{Confirmations, Drain};
use toolyard_tests::{call, shape, yard};

/// SC-8: with an unlimited grace, the shutdown waits for the handler and no longer.
#[tokio::test(start_paused = true)]
async fn a_drain_may_have_an_unlimited_grace() {
    let yard = yard(|builder, _| builder.grace(Duration::MAX)).await;
    let session = yard.engine.session("s");
    let shutdown = async {
        tokio::time::sleep(SECOND).await;
        yard.engine.shutdown(Drain::default().finish(Duration::ZERO).grace(Duration::MAX)).await
    };
    let (outcome, report) =
        tokio::join!(no_hang(session.call(call("a", "read", 0, "polite"))), no_hang(shutdown));
    assert_eq!(shape(&[outcome]), "a cancelled");
    assert_eq!(report.abandoned, 0);
    assert_eq!(yard.log.spans(), ["a 0..1000"]);
    yard.events.check();
}

/// SC-8: a drain during the grace of an earlier cancel gives the handler up at the end of its own grace, and every
/// call has its result when the shutdown returns.
#[tokio::test(start_paused = true)]
async fn a_drain_shortens_the_grace_of_an_earlier_cancel() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let calls = {
        let session = session.clone();
        tokio::spawn(async move { session.call(call("a", "read", 0, "deaf")).await })
    };
    tokio::time::sleep(SECOND).await;
    session.cancel();
    let report = no_hang(yard.engine.shutdown(Drain::default().finish(Duration::ZERO).grace(SECOND))).await;
    assert_eq!(report.abandoned, 1);
    assert_eq!(yard.log.spans(), ["a 0..2000"]);
    assert_eq!(yard.events.ended(), ["a"]);
    assert_eq!(shape(&[no_hang(calls).await.unwrap()]), "a cancelled");
    yard.events.check();
}

/// V4: a call refused by an engine that is shutting down is retryable on the next engine, and its error says when.
#[tokio::test(start_paused = true)]
async fn shutting_down_has_a_retry_after() {
    let yard = yard(|builder, _| builder).await;
    yard.engine.shutdown(Drain::default()).await;
    let outcome = no_hang(yard.engine.session("s").call(call("a", "read", 0, "ok"))).await;
    assert_eq!(shape(std::slice::from_ref(&outcome)), "a shutting_down");
    let error = outcome.error().unwrap();
    assert!(error.retryable);
    assert!(error.retry_after.is_some_and(|after| !after.is_zero()), "{:?}", error.retry_after);
    yard.events.check();
}

/// V3, SC-5: timeouts and graces at the ends of their range neither overflow nor end a call early.
#[tokio::test(start_paused = true)]
async fn durations_may_be_maximal() {
    let long = [
        Duration::MAX,
        Duration::MAX / 2,
        Duration::from_secs(u64::MAX >> 2),
        Duration::from_millis(u64::MAX),
    ];
    for time in long.into_iter().chain([Duration::ZERO]) {
        let yard =
            yard(|builder, _| builder.grace(time).confirmations(Confirmations::default().timeout(time)))
                .await;
        let session = yard.engine.session("s");
        if !time.is_zero() {
            let slow = session.call(call("slow", "serial", 3_600_000 - 1, "ok").timeout(time));
            assert!(no_hang(slow).await.success(), "{time:?}");
        }
        let cancel = async {
            tokio::time::sleep(SECOND).await;
            session.cancel();
        };
        let (outcome, ()) = tokio::join!(no_hang(session.call(call("a", "read", 0, "polite"))), cancel);
        assert_eq!(shape(&[outcome]), "a cancelled", "{time:?}");
        yard.events.check();
    }
}
