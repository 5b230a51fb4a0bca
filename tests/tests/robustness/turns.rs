//! Turns with several batches, and turns that are cut off (CL-8, SC-1, SC-4).

use crate::{SECOND, no_hang};
use tokio::time::Instant;
use toolyard::{Abort, Call, Caller, Dedupe, Effect, Hooks, Outcome, RetryPolicy, async_trait};
use toolyard_tests::{Yard, call, shape, yard};

fn dedupe(outcomes: &[Outcome]) -> Vec<Dedupe> {
    outcomes.iter().map(|outcome| outcome.dedupe).collect()
}

/// CL-8: a resend finds calls that ran in any batch of its turn with the same arguments.
#[tokio::test(start_paused = true)]
async fn a_resend_finds_calls_of_every_batch() {
    let yard = yard(|builder, _| builder).await;
    let turn = yard.engine.session("s").turn();
    let (one, two) = (call("c", "serial", 1, "ok"), call("c", "serial", 2, "fail"));
    turn.dispatch(vec![one.clone()]).await;
    let failed = turn.dispatch(vec![two.clone(), call("d", "read", 1, "ok")]).await;
    let again = turn.resend(vec![two, call("d", "read", 1, "ok")]).await;
    assert_eq!(shape(&again), shape(&failed));
    assert_eq!(dedupe(&again), [Dedupe::Replayed; 2]);
    assert_eq!(again[0].error().unwrap().message, "HTTP 404: no such thing", "errors are replayed too");
    assert_eq!(dedupe(&turn.resend(vec![one.clone()]).await), [Dedupe::Replayed]);
    assert_eq!(dedupe(&turn.resend(vec![one]).await), [Dedupe::Replayed], "a resent call is replayed again");
    assert_eq!(yard.log.started(), ["c", "c", "d"]);
    yard.events.check();
}

/// CL-8: a turn that keeps no results has those of a batch that was cut off, and replays none that it has returned.
#[tokio::test(start_paused = true)]
async fn a_turn_that_keeps_nothing_runs_again_what_it_is_resent() {
    let yard = yard(|builder, _| builder).await;
    let turn = yard.engine.session("s").turn().without_resend();
    let one = call("c", "serial", 1, "ok");
    assert_eq!(shape(&turn.dispatch(vec![one.clone()]).await), "c ok");
    assert_eq!(dedupe(&turn.resend(vec![one.clone()]).await), [Dedupe::Fresh]);
    let cut = vec![one, call("d", "serial", 0, "polite")];
    assert!(tokio::time::timeout(SECOND, turn.dispatch(cut)).await.is_err());
    tokio::time::sleep(SECOND).await;
    let finished: Vec<Outcome> = turn.finished().into_iter().flatten().collect();
    assert_eq!(shape(&finished), "c ok, d cancelled");
    assert_eq!(yard.log.started(), ["c", "c", "c", "d"]);
    yard.events.check();
}

/// CL-8: a repeated id in a resent batch is refused again, and the first call with that id is replayed.
#[tokio::test(start_paused = true)]
async fn a_resend_refuses_a_repeated_id_again() {
    let yard = yard(|builder, _| builder).await;
    let turn = yard.engine.session("s").turn();
    let batch = vec![call("c", "serial", 1, "ok"), call("c", "serial", 2, "ok")];
    assert_eq!(shape(&turn.dispatch(batch.clone()).await), "c ok, c invalid_input");
    let again = turn.resend(batch).await;
    assert_eq!(shape(&again), "c ok, c invalid_input");
    assert_eq!(again[0].dedupe, Dedupe::Replayed);
    assert_eq!(yard.log.started(), ["c"]);
    yard.events.check();
}

/// CL-8, CC-6b: after a dropped dispatch, a resend runs only the calls that no handler had answered.
#[tokio::test(start_paused = true)]
async fn a_resend_after_a_dropped_dispatch_runs_the_rest() {
    let yard = yard(|builder, _| builder).await;
    let turn = yard.engine.session("s").turn();
    let batch = vec![
        call("done", "serial", 1, "ok"),
        call("cut off", "serial", 0, "polite"),
        call("not started", "read", 1, "ok"),
    ];
    assert!(tokio::time::timeout(SECOND, turn.dispatch(batch.clone())).await.is_err());
    tokio::time::sleep(SECOND).await;
    let again = turn.resend(batch).await;
    assert_eq!(shape(&again), "done ok, cut off cancelled, not started ok");
    assert_eq!(dedupe(&again), [Dedupe::Replayed, Dedupe::Replayed, Dedupe::Fresh]);
    assert_eq!(again[1].error().unwrap().effect, Effect::Unknown);
    assert_eq!(yard.log.started(), ["done", "cut off", "not started"]);
    yard.events.check();
}

/// SC-1: a cancel of a turn reaches each of its batches and no other turn of the session.
#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_every_batch_of_its_turn() {
    let yard = yard(|builder, _| builder.retry(RetryPolicy::NONE)).await;
    let session = yard.engine.session("s");
    let (turn, sibling) = (session.turn(), session.turn());
    let cancel = async {
        tokio::time::sleep(SECOND).await;
        turn.cancel();
    };
    let from = Instant::now();
    let (one, two, other, ()) = tokio::join!(
        turn.dispatch(vec![call("a", "read", 0, "polite"), call("a2", "serial", 0, "ok")]),
        turn.dispatch_sequential(vec![call("b", "read", 0, "polite"), call("b2", "read", 0, "ok")]),
        sibling.dispatch(vec![call("o", "read", 500, "finishes").timeout(3 * SECOND)]),
        cancel
    );
    assert_eq!(shape(&one), "a cancelled, a2 cancelled");
    assert_eq!(shape(&two), "b cancelled, b2 cancelled");
    assert_eq!(shape(&other), "o timeout", "nobody told it to stop");
    assert_eq!(yard.log.spans(), ["a 0..1000", "b 0..1000", "o 0..3000"]);
    assert_eq!(from.elapsed(), 3 * SECOND);
    assert_eq!(shape(&no_hang(turn.resend(vec![call("c", "read", 0, "ok")])).await), "c cancelled");
    yard.events.check();
}

/// SC-4, V1: a cancel while the hooks before a batch run ends the batch without calling the remaining hooks.
#[tokio::test(start_paused = true)]
async fn a_cancel_does_not_wait_for_hooks_of_later_calls() {
    struct Slow;
    #[async_trait]
    impl Hooks for Slow {
        async fn on_tool_call(&self, _: &Call, _: &Caller<'_>) -> Result<(), Abort> {
            tokio::time::sleep(4 * SECOND).await;
            Ok(())
        }
    }
    let batch = || (0..40).map(|n| call(&format!("c{n}"), "read", 10, "ok")).collect::<Vec<_>>();
    for by_turn in [true, false] {
        let yard = yard(|builder, _| builder.hooks(Slow)).await;
        let session = yard.engine.session("s");
        let turn = session.turn();
        let cancel = async {
            tokio::time::sleep(SECOND).await;
            if by_turn { turn.cancel() } else { session.cancel() }
        };
        let from = Instant::now();
        let (outcomes, ()) = tokio::join!(turn.dispatch(batch()), cancel);
        assert_eq!(from.elapsed(), 4 * SECOND, "the running hook has its timeout");
        assert_eq!(outcomes.len(), 40);
        assert!(outcomes.iter().all(|outcome| shape(std::slice::from_ref(outcome)).ends_with(" cancelled")));
        assert!(yard.log.started().is_empty());
        yard.events.check();
    }
}

/// OB-1, SC-4: a turn that is cut off while it has calls open is reported once as cancelled, before its end, however it
/// is cut off; a turn that is over, and one that only loses a single call, is not.
#[tokio::test(start_paused = true)]
async fn a_cancelled_turn_is_reported_once() {
    let calls = || vec![call("a", "read", 0, "polite"), call("b", "serial", 0, "ok")];
    let turn_events = |yard: &Yard| -> Vec<_> {
        let events = yard.events.events();
        let of_turns = events.iter().filter(|event| event.kind.name().starts_with("turn."));
        of_turns.map(|event| (event.turn.unwrap(), event.kind.name())).collect()
    };
    for way in ["turn", "session", "all calls", "drop", "stream", "dropped stream", "one call", "late"] {
        let yard = yard(|builder, _| builder).await;
        let session = yard.engine.session("s");
        let turn = session.turn();
        let stream = way.ends_with("stream").then(|| session.open_batch());
        match stream {
            Some(stream) => {
                calls().into_iter().for_each(|call| stream.push(call));
                tokio::time::sleep(SECOND).await;
                stream.cancel();
                stream.cancel();
                if way == "stream" {
                    assert_eq!(shape(&stream.finish().await), "a cancelled, b cancelled");
                }
            }
            None => {
                let cut = async {
                    tokio::time::sleep(SECOND).await;
                    match way {
                        "turn" => (turn.cancel(), turn.cancel()).0,
                        "session" => session.cancel(),
                        "all calls" => drop(session.cancel_calls()),
                        "one call" | "late" => drop(session.cancel_call("a")),
                        _ => {}
                    }
                };
                tokio::select! {
                    (outcomes, ()) = async { tokio::join!(turn.dispatch(calls()), cut) } => assert_eq!(outcomes.len(), 2),
                    () = tokio::time::sleep(2 * SECOND), if way == "drop" => {}
                }
            }
        }
        if way == "late" {
            turn.cancel();
        }
        tokio::time::sleep(60 * SECOND).await;
        let events = turn_events(&yard);
        let number = events[0].0;
        let expected = match way {
            "one call" | "late" => vec![(number, "turn.started"), (number, "turn.ended")],
            _ => vec![(number, "turn.started"), (number, "turn.cancelled"), (number, "turn.ended")],
        };
        assert_eq!(events, expected, "{way}");
        yard.events.check();
    }
}
