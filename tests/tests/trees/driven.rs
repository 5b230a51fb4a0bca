//! Open batches that their holders drive (CL-5).

use crate::{
    nested::nesting,
    pieces::{of_every_kind, steady},
};
use futures::{
    FutureExt as _,
    task::{ArcWake, waker},
};
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::Context,
    time::Duration,
};
use tokio::time::{sleep, timeout};
use toolyard::{DrivenBatch, EventKind, Outcome, ToolSpec};
use toolyard_tests::{Yard, call, shape, yard};

async fn plain() -> Yard {
    yard(|builder, log| builder.tool(nesting(ToolSpec::write("nests"), log))).await
}

fn open(yard: &Yard) -> DrivenBatch {
    yard.engine.session("s").turn().without_resend().open_driven()
}

/// The ends of so many calls, at their places.
async fn ends(batch: &mut DrivenBatch, count: usize) -> Vec<Outcome> {
    let mut ends = Vec::new();
    for _ in 0..count {
        ends.push(batch.next_end().await);
    }
    ends.sort_by_key(|(at, _)| *at);
    ends.into_iter().map(|(_, outcome)| outcome).collect()
}

/// CL-5: the results are those of the same batch dispatched at once, refusals, repeats, runs and nested calls included.
#[tokio::test(start_paused = true)]
async fn a_driven_batch_has_the_results_of_the_whole_one() {
    let calls = of_every_kind();
    for pause in [0, 3, 40] {
        let (whole, driven) = (plain().await, plain().await);
        let expected = whole.engine.session("s").dispatch(calls.clone()).await;
        let mut batch = open(&driven);
        let mut ended = Vec::new();
        for call in calls.clone() {
            batch.push(call);
            // What ends meanwhile is heard, and a wait that is given up loses nothing.
            let until = sleep(Duration::from_millis(pause));
            let mut until = pin!(until);
            loop {
                tokio::select! {
                    biased;
                    () = &mut until => break,
                    end = batch.next_end() => ended.push(end),
                }
            }
        }
        while ended.len() < calls.len() {
            ended.push(batch.next_end().await);
        }
        assert_eq!((batch.len(), batch.is_empty()), (calls.len(), false));
        ended.sort_by_key(|(at, _)| *at);
        let ended: Vec<_> = ended.into_iter().map(|(_, outcome)| outcome).collect();
        assert_eq!(steady(&ended), steady(&expected), "{pause} ms between calls");
        batch.let_go();
        driven.events.check();
    }
}

/// CL-5, SM-1: when all has ended there is nothing to wait for, and the turn ends where its batch is let go of.
#[tokio::test(start_paused = true)]
async fn a_batch_that_is_over_ends_at_once() {
    let yard = plain().await;
    let mut batch = open(&yard);
    batch.push(call("a", "read", 5, "ok"));
    batch.push(call("b", "read", 0, "fail"));
    assert_eq!(shape(&ends(&mut batch, 2).await), "a ok, b execution_error");
    assert!(batch.next_end().now_or_never().is_none(), "nothing else ends");
    batch.let_go();
    let ended = EventKind::TurnEnded { ok: 1, failed: 1 };
    assert!(yard.events.events().iter().any(|event| event.kind == ended));
    yard.events.check();
}

/// CL-5: calls that have begun when their batch is let go of end in the background, those that have not been taken in too.
#[tokio::test(start_paused = true)]
async fn a_batch_that_is_let_go_of_goes_on() {
    let yard = plain().await;
    let mut batch = open(&yard);
    batch.push(call("a", "serial", 20, "ok"));
    assert!(timeout(Duration::from_millis(5), batch.next_end()).await.is_err());
    batch.push(call("b", "serial", 20, "ok"));
    batch.let_go();
    sleep(Duration::from_millis(100)).await;
    assert_eq!(yard.log.spans(), ["a 0..20", "b 20..40"]);
    yard.events.check();
}

/// CC-6b: dropping a driven batch cancels it; what runs has its grace in the background, and every call its end.
#[tokio::test(start_paused = true)]
async fn a_driven_batch_that_is_dropped_is_cancelled() {
    let yard = plain().await;
    let mut batch = open(&yard);
    batch.push(call("a", "serial", 0, "stops_late"));
    batch.push(call("b", "serial", 0, "ok"));
    assert!(timeout(Duration::from_millis(5), batch.next_end()).await.is_err());
    batch.push(call("c", "serial", 0, "ok"));
    drop(batch);
    sleep(Duration::from_millis(100)).await;
    assert_eq!((yard.log.started(), yard.log.running()), (vec!["a".to_owned()], 0));
    assert_eq!(yard.events.of_call("c"), ["tool.call.received", "tool.failed"]);
    yard.events.check();
}

/// CL-5: a cancel of the turn reaches a driven batch, the calls that come later included.
#[tokio::test(start_paused = true)]
async fn a_turn_cancels_a_driven_batch() {
    let yard = plain().await;
    let turn = yard.engine.session("s").turn().without_resend();
    let mut batch = turn.open_driven();
    batch.push(call("a", "serial", 0, "polite"));
    assert!(timeout(Duration::from_millis(5), batch.next_end()).await.is_err());
    turn.cancel();
    batch.push(call("b", "read", 0, "ok"));
    assert_eq!(shape(&ends(&mut batch, 2).await), "a cancelled, b cancelled");
    batch.let_go();
    yard.events.check();
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl ArcWake for Wakes {
    fn wake_by_ref(wakes: &Arc<Self>) {
        wakes.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// CL-5: a holder is woken by ends, and not by what it does itself: its task would run once more for nothing.
#[tokio::test(start_paused = true)]
async fn a_holder_does_not_wake_itself() {
    let yard = plain().await;
    let mut batch = open(&yard);
    let wakes = Arc::new(Wakes::default());
    let holder = waker(wakes.clone());
    let mut cx = Context::from_waker(&holder);
    let count = || wakes.0.load(Ordering::Relaxed);
    for id in ["a", "b", "c"] {
        batch.push(call(id, "read", 5, "ok"));
        assert!(pin!(batch.next_end()).poll(&mut cx).is_pending());
        assert_eq!(count(), 0, "{id} was pushed by the holder");
    }
    sleep(Duration::from_millis(10)).await;
    assert!(count() > 0, "calls have ended");
    let before = count();
    assert_eq!(shape(&ends(&mut batch, 3).await), "a ok, b ok, c ok");
    assert!(pin!(batch.next_end()).poll(&mut cx).is_pending());
    batch.let_go();
    assert_eq!(count(), before, "the end of the input was the holder's too");
    yard.events.check();
}
