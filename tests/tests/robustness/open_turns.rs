//! Turns whose batches are opened and written call by call (CL-5, CL-8, SC-1, SC-4, SM-4).

use crate::SECOND;
use std::time::Duration;
use toolyard::{
    Abort, Call, Caller, Dedupe, EventKind, Hooks, MemoryRecord, MemoryRecorder, Outcome, RetryPolicy, Turn,
    async_trait,
};
use toolyard_tests::{Yard, call, shape, yard};

async fn ms(ms: u64) {
    tokio::time::sleep(Duration::from_millis(ms)).await;
}

async fn plain() -> Yard {
    yard(|builder, _| builder.retry(RetryPolicy::NONE)).await
}

fn so_far(turn: &Turn) -> String {
    shape(&turn.finished().into_iter().flatten().collect::<Vec<_>>())
}

fn dedupe(outcomes: &[Outcome]) -> Vec<Dedupe> {
    outcomes.iter().map(|outcome| outcome.dedupe).collect()
}

/// CL-5, CL-8: an open batch belongs to its turn, as a batch that is dispatched does.
#[tokio::test(start_paused = true)]
async fn an_open_batch_has_the_number_of_its_turn() {
    let yard = plain().await;
    let session = yard.engine.session("s");
    let alone = session.open_batch();
    let turn = session.turn();
    let (one, other) = (turn.open_batch(), turn.open_batch_sequential());
    assert_eq!((alone.turn(), one.turn(), other.turn()), (1, 2, 2));
    one.push(call("a", "read", 5, "ok"));
    for id in ["b", "c"] {
        other.push(call(id, "read", 5, "ok"));
    }
    turn.dispatch(vec![call("d", "read", 5, "ok")]).await;
    let ends = tokio::join!(one.finish(), other.finish(), alone.finish());
    assert_eq!((shape(&ends.0), shape(&ends.1), ends.2.len()), ("a ok".into(), "b ok, c ok".into(), 0));
    assert_eq!(yard.log.spans(), ["d 0..5", "a 0..5", "b 0..5", "c 5..10"]);
    let events = yard.events.events();
    assert!(events.iter().filter(|event| event.call_id.is_some()).all(|event| event.turn == Some(2)));
    let started = events.iter().filter_map(|event| match event.kind {
        EventKind::TurnStarted { calls } => Some((event.turn.unwrap(), calls)),
        _ => None,
    });
    assert_eq!(started.collect::<Vec<_>>(), [(1, None), (2, None), (2, None), (2, Some(1))]);
    yard.events.check();
}

/// SC-1: a cancel of the turn reaches the calls of its open batches, those still to come, and batches that are opened
/// later; a cancel of an open batch leaves its turn as it is.
#[tokio::test(start_paused = true)]
async fn a_cancel_of_the_turn_reaches_calls_still_to_come() {
    let yard = plain().await;
    let turn = yard.engine.session("s").turn();
    let own = turn.open_batch();
    own.push(call("x", "read", 0, "polite"));
    ms(1).await;
    own.cancel();
    assert_eq!(shape(&own.finish().await), "x cancelled");
    let batch = turn.open_batch();
    batch.push(call("a", "read", 0, "polite"));
    batch.push(call("b", "serial", 0, "ok"));
    ms(1).await;
    turn.cancel();
    batch.push(call("c", "read", 0, "ok"));
    ms(1).await;
    let later = turn.open_batch();
    later.push(call("d", "read", 0, "ok"));
    assert_eq!(shape(&batch.finish().await), "a cancelled, b cancelled, c cancelled");
    assert_eq!(shape(&later.finish().await), "d cancelled");
    turn.cancel();
    assert_eq!(yard.log.started(), ["x", "a"]);
    let names = yard.events.events().into_iter().filter_map(|event| Some((event.batch?, event.kind.name())));
    let of_turns: Vec<_> = names.filter(|(_, name)| name.starts_with("turn.")).collect();
    let each = |batch| ["turn.started", "turn.cancelled", "turn.ended"].map(|name| (batch, name));
    let (mut sorted, expected) = (of_turns, [each(1), each(2), each(3)].concat());
    sorted.sort_by_key(|(batch, _)| *batch);
    assert_eq!(sorted, expected, "each is reported once");
    yard.events.check();
}

/// CL-8: after a stream that broke, the whole response is taken up again: what ran is replayed, the rest runs.
#[tokio::test(start_paused = true)]
async fn a_response_whose_stream_broke_is_taken_up_again() {
    let yard = plain().await;
    let turn = yard.engine.session("s").turn();
    let whole = vec![
        call("a", "serial", 5, "ok"),
        call("b", "read", 5, "fail"),
        call("c", "nothing", 0, "ok"),
        call("a", "read", 5, "ok"),
        call("d", "serial", 5, "ok"),
    ];
    let batch = turn.open_batch();
    for call in &whole[..4] {
        batch.push(call.clone());
        ms(3).await;
    }
    batch.push(Call::new("d", "serial", r#"{"ms": 5, "en"#));
    let first = batch.finish().await;
    assert_eq!(shape(&first[..2]), "a ok, b execution_error");
    assert_eq!(turn.finished().len(), 5, "they are kept");
    let again = turn.resend(whole.clone()).await;
    assert_eq!(shape(&again[..4]), shape(&first[..4]));
    let (replayed, fresh) = (Dedupe::Replayed, Dedupe::Fresh);
    assert_eq!(dedupe(&again), [replayed, replayed, fresh, fresh, fresh]);
    assert_eq!(shape(&again[4..]), "d ok", "its first half was refused, and never ran");
    assert_eq!(dedupe(&turn.resend(whole).await)[4], replayed);
    assert_eq!(yard.log.started(), ["a", "b", "d"]);
    yard.events.check();
}

/// CL-8, CC-6b: an open batch that was dropped is over when its calls have had their grace: what was running has a result
/// then, and what was waiting runs when it is sent again. A call that is sent while it is in its grace runs again.
#[tokio::test(start_paused = true)]
async fn a_resend_after_a_dropped_open_batch_runs_the_rest() {
    let calls = || {
        vec![
            call("done", "read", 1, "ok"),
            call("cut off", "read", 500, "finishes"),
            call("not started", "serial", 1, "ok"),
        ]
    };
    for (waits, is_open) in [(true, true), (false, true), (true, false), (false, false)] {
        let yard = plain().await;
        let turn = yard.engine.session("s").turn();
        if is_open {
            let batch = turn.open_batch();
            calls().into_iter().for_each(|call| batch.push(call));
            ms(100).await;
        } else {
            assert!(tokio::time::timeout(Duration::from_millis(100), turn.dispatch(calls())).await.is_err());
        }
        let finished = turn.finished();
        assert_eq!(finished.iter().map(Option::is_some).collect::<Vec<_>>(), [true, false, true]);
        if waits {
            tokio::time::sleep(2 * SECOND).await;
            assert_eq!(turn.finished().iter().flatten().count(), 3);
        }
        let again = turn.resend(calls()).await;
        let (replayed, fresh) = (Dedupe::Replayed, Dedupe::Fresh);
        assert_eq!(dedupe(&again), [replayed, if waits { replayed } else { fresh }, fresh]);
        let mut started = vec!["done", "cut off", "cut off", "not started"];
        if waits {
            started.remove(1);
        }
        let mut ran = yard.log.started();
        ran.sort_by_key(|id| started.iter().position(|it| it == id));
        assert_eq!(ran, started, "a whole batch and an open one are alike");
        yard.events.check();
    }
}

/// CL-8: a turn that keeps nothing has what became of an open batch that was dropped, and lets go of one that was finished.
#[tokio::test(start_paused = true)]
async fn a_turn_that_keeps_nothing_lets_go_of_its_open_batches() {
    let yard = plain().await;
    let turn = yard.engine.session("s").turn().without_resend();
    let one = call("c", "serial", 1, "ok");
    let batch = turn.open_batch();
    batch.push(one.clone());
    ms(10).await;
    assert_eq!(so_far(&turn), "c ok");
    assert_eq!(shape(&batch.finish().await), "c ok");
    assert!(turn.finished().is_empty());
    assert_eq!(dedupe(&turn.resend(vec![one.clone()]).await), [Dedupe::Fresh]);
    let cut = turn.open_batch();
    cut.push(one);
    cut.push(call("d", "serial", 0, "polite"));
    ms(10).await;
    drop(cut);
    tokio::time::sleep(SECOND).await;
    assert_eq!(so_far(&turn), "c ok, d cancelled");
    assert_eq!(yard.log.started(), ["c", "c", "c", "d"]);
    yard.events.check();
}

/// CL-8: an open batch outlives its turn: it takes calls and gives all results, and then nothing of them is kept.
#[tokio::test(start_paused = true)]
async fn an_open_batch_outlives_its_turn() {
    let yard = plain().await;
    let turn = yard.engine.session("s").turn();
    let batch = turn.open_batch();
    batch.push(call("a", "read", 5, "ok"));
    ms(10).await;
    drop(turn);
    batch.push(call("b", "read", 5, "ok"));
    assert_eq!(shape(&batch.finish().await), "a ok, b ok");
    yard.events.check();
}

/// SC-4: one call is cancelled by its place in the latest batch, also if its id is another's, and if it has been pushed and
/// not taken in yet; what has ended, has no such place or is still to be written is not.
#[tokio::test(start_paused = true)]
async fn a_call_is_cancelled_by_its_place() {
    let yard = plain().await;
    let turn = yard.engine.session("s").turn();
    assert!(!turn.cancel_call_at(0), "there is no batch");
    let batch = turn.open_batch();
    batch.push(call("a", "read", 0, "polite"));
    ms(1).await;
    batch.push(call("b", "read", 0, "polite"));
    batch.push(call("c", "serial", 0, "ok"));
    ms(1).await;
    batch.push(call("a", "read", 0, "ok"));
    batch.push(call("e", "read", 0, "ok"));
    batch.push(call("f", "serial", 0, "ok"));
    for (at, is_in_flight) in [(1, true), (2, true), (2, false), (4, true), (6, false), (usize::MAX, false)] {
        assert_eq!(turn.cancel_call_at(at), is_in_flight, "call {at}");
    }
    assert!(turn.cancel_call("f"), "an id of a call that has not been taken in");
    assert!(!turn.cancel_call("nobody"));
    ms(1).await;
    assert_eq!(
        batch.finished().iter().map(Option::is_some).collect::<Vec<_>>(),
        [false, true, true, true, true, true]
    );
    assert!(turn.cancel_call_at(0) && !turn.cancel_call_at(3), "the second of an id was refused");
    let outcomes = batch.finish().await;
    let cancelled = "a cancelled, b cancelled, c cancelled, a invalid_input, e cancelled, f cancelled";
    assert_eq!(shape(&outcomes), cancelled);
    assert!(!turn.cancel_call_at(0));
    assert_eq!(yard.log.started(), ["a", "b"]);
    let cancel = async {
        ms(1).await;
        assert!(turn.cancel_call_at(1) && !turn.cancel_call_at(2));
    };
    let whole = turn.dispatch(vec![call("a", "read", 5, "ok"), call("b", "read", 0, "polite")]);
    let (outcomes, ()) = tokio::join!(whole, cancel);
    assert_eq!(shape(&outcomes), "a ok, b cancelled");
    yard.events.check();
}

/// SM-4: what is cancelled of a turn is recorded: all of it, an open batch of it, a call by its place.
#[tokio::test(start_paused = true)]
async fn cancels_within_a_turn_are_recorded() {
    let recorder = MemoryRecorder::default();
    let given = recorder.clone();
    let yard = yard(|builder, _| builder.recorder(given)).await;
    let turn = yard.engine.session("s").turn();
    turn.cancel_call_at(3);
    let batch = turn.open_batch();
    batch.push(call("a", "read", 0, "polite"));
    ms(1).await;
    turn.cancel_call_at(0);
    batch.cancel();
    batch.finish().await;
    drop(turn.open_batch());
    turn.cancel();
    ms(1).await;
    let told = |record: &MemoryRecord| match record {
        MemoryRecord::Cancelled { what, .. } => Some(what.clone()),
        MemoryRecord::Batch { batch, is_open: true, .. } => Some(format!("batch {batch}")),
        MemoryRecord::Pushed { batch, calls, .. } => Some(format!("pushed {batch} {}", calls.len())),
        MemoryRecord::Closed { batch, calls, .. } => Some(format!("closed {batch} {calls}")),
        MemoryRecord::Attempt { call, .. } => Some(format!("attempt of turn {}", call.turn)),
        _ => None,
    };
    assert_eq!(
        recorder.given().iter().filter_map(told).collect::<Vec<_>>(),
        [
            "batch 1",
            "pushed 1 1",
            "attempt of turn 1",
            "Call { turn: 1, batch: 1, index: 0 }",
            "Batch(1)",
            "closed 1 1",
            "batch 2",
            "Batch(2)",
            "Turn(1)",
        ]
    );
}

/// V1, SC-4: a call that is cancelled by its place while the hook of an earlier one runs ends without having started.
#[tokio::test(start_paused = true)]
async fn a_call_is_cancelled_while_it_is_taken_in() {
    struct Slow;
    #[async_trait]
    impl Hooks for Slow {
        async fn on_tool_call(&self, _: &Call, _: &Caller<'_>) -> Result<(), Abort> {
            ms(100).await;
            Ok(())
        }
    }
    let yard = yard(|builder, _| builder.hooks(Slow)).await;
    let turn = yard.engine.session("s").turn();
    let batch = turn.open_batch();
    (0..3).for_each(|n| batch.push(call(&format!("c{n}"), "read", 5, "ok")));
    ms(50).await;
    assert!(turn.cancel_call_at(1));
    assert_eq!(turn.finished().iter().flatten().count(), 0);
    assert_eq!(shape(&batch.finish().await), "c0 ok, c1 cancelled, c2 ok");
    assert_eq!(yard.log.started(), ["c0", "c2"]);
    yard.events.check();
}
