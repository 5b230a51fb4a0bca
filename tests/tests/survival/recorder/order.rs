//! The records of sessions and batches, and the order of those of a call (SM-4).

use super::*;

/// SM-4: a session and a batch come first, then each call's records, from its start over its attempts to its end.
#[tokio::test(start_paused = true)]
async fn records_come_in_the_order_of_a_calls_life() {
    let recorder = MemoryRecorder::default();
    let flaky = ToolSpec::write("flaky").idempotent();
    let (log, recording) = (toolyard_tests::Log::new(), recorder.clone());
    let yard =
        yard(|builder, _| builder.tool(toolyard_tests::scripted(flaky, &log)).recorder(recording)).await;
    let session = yard.engine.session("s");
    let outcomes = session.dispatch(vec![tries("a", "flaky", 0, &["transient", "ok"])]).await;
    assert_eq!(shape(&outcomes), "a ok");
    let records = recorder.given();
    assert_eq!(kinds_of(&records), ["session", "batch", "attempt", "attempt_ended", "attempt", "ended"]);
    let MemoryRecord::Ended { attempts, code, .. } = &records[5] else { panic!("{records:?}") };
    assert_eq!((*attempts, *code), (2, None));
    session.fork(ForkPolicy::default()).unwrap().call(call("b", "read", 0, "ok")).await;
    assert_eq!(kinds_of(&recorder.given())[6..], ["fork", "batch", "attempt", "ended"]);
    assert_eq!(recorder.given(), recorder.durable());
}

/// SM-4: a batch is recorded with its caller's request and with all its calls as they were sent, also those that do not
/// run.
#[tokio::test(start_paused = true)]
async fn a_batch_is_recorded_as_it_was_sent() {
    let recorder = MemoryRecorder::default();
    let yard = recorded(&recorder).await;
    let batch =
        vec![call("a", "read", 0, "ok"), call("b", "no such tool", 0, "ok"), Call::new("c", "read", "{")];
    yard.engine.session("s").dispatch(toolyard::Batch::new(batch).of_request("req-7")).await;
    let batch = recorder.given().into_iter().find(|record| record.kind() == "batch");
    let Some(MemoryRecord::Batch { request, calls, is_open, .. }) = batch else { panic!("{batch:?}") };
    assert_eq!((request.as_deref(), calls.len(), is_open), (Some("req-7"), 3, false));
}

/// SM-4, CL-5: an open batch leaves each call as it is taken, and its end; its results are given when that is durable.
#[tokio::test(start_paused = true)]
async fn an_open_batch_records_each_call_and_its_end() {
    let recorder = slow([("pushed", after(1)), ("closed", after(9))]);
    let yard = recorded(&recorder).await;
    let batch = yard.engine.session("s").open_batch();
    batch.push(call("a", "serial", 0, "ok"));
    sleep(Duration::from_millis(100)).await;
    batch.push(call("b", "serial", 0, "ok"));
    sleep(3 * SECOND).await;
    let began = Instant::now();
    let outcomes = no_hang(batch.finish()).await;
    assert_eq!((shape(&outcomes).as_str(), began.elapsed()), ("a ok, b ok", 9 * SECOND));
    assert_eq!(yard.log.spans(), ["a 1000..1000", "b 1100..1100"]);
    let records = recorder.given();
    let [MemoryRecord::Batch { is_open: true, .. }, MemoryRecord::Pushed { index: 0, .. }] = &records[1..3]
    else {
        panic!("{records:?}")
    };
    assert!(records.iter().any(|it| matches!(it, MemoryRecord::Pushed { index: 1, .. })), "{records:?}");
    let Some(MemoryRecord::Closed { calls: 2, .. }) = records.last() else { panic!("{records:?}") };
}

/// SM-4, CL-5: if the end of an open batch cannot be recorded, its results are given and say so.
#[tokio::test(start_paused = true)]
async fn results_of_an_open_batch_whose_end_is_not_durable_say_so() {
    for (pace, seconds) in [(FAILS, 0), (Pace::Fails(Duration::from_secs(3600)), 30)] {
        let recorder = slow([("closed", pace)]);
        let yard = recorded(&recorder).await;
        let batch = yard.engine.session("s").open_batch();
        batch.push(call("a", "serial", 0, "ok"));
        sleep(Duration::from_millis(100)).await;
        batch.push(call("b", "no such tool", 0, "ok"));
        let began = Instant::now();
        let outcomes = no_hang(batch.finish()).await;
        assert_eq!(shape(&outcomes), "a ok, b not_found");
        assert!(outcomes.iter().all(|outcome| !outcome.recorded), "{outcomes:?}");
        assert_eq!(began.elapsed(), seconds * SECOND);
    }
}

/// SM-4: an open batch that is dropped has not got all its calls: it is cancelled, and not closed.
#[tokio::test(start_paused = true)]
async fn a_dropped_open_batch_is_cancelled_and_not_closed() {
    let recorder = MemoryRecorder::default();
    let yard = recorded(&recorder).await;
    let batch = yard.engine.session("s").open_batch();
    batch.push(call("a", "serial", 1_000, "ok"));
    sleep(Duration::from_millis(100)).await;
    drop(batch);
    sleep(60 * SECOND).await;
    let records = kinds_of(&recorder.given());
    assert!(records.contains(&"cancelled") && !records.contains(&"closed"), "{records:?}");
}

/// SM-4, CL-4: whoever follows an open batch is told of a call when its end is durable, whether it has run or not, or that
/// it is not; dropping the wait meanwhile loses nothing.
#[tokio::test(start_paused = true)]
async fn an_end_is_told_when_it_is_durable() {
    for (pace, is_recorded) in [(after(2), true), (Pace::Fails(2 * SECOND), false)] {
        let yard = recorded(&slow([("ended", pace), ("attempt_ended", pace)])).await;
        let batch = yard.engine.session("s").open_batch();
        let (mut ends, began) = (batch.ends(), Instant::now());
        for (id, tool) in [("a", "no such tool"), ("b", "serial")] {
            batch.push(call(id, tool, 0, "ok"));
            assert!(tokio::time::timeout(SECOND, ends.next()).await.is_err(), "told before its record");
            let (_, outcome) = no_hang(ends.next()).await;
            assert_eq!((outcome.call_id.as_str(), outcome.recorded), (id, is_recorded));
        }
        assert_eq!(began.elapsed(), 4 * SECOND);
        batch.finish().await;
    }
}
