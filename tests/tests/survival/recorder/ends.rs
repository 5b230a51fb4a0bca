//! Cancels, drops, panics and a drain, with a recorder (SM-4).

use super::*;

/// SM-4: cancels are recorded before they take effect, and a session says when they, and its options, are durable.
#[tokio::test(start_paused = true)]
async fn a_session_says_when_its_cancels_are_durable() {
    let recorder = slow([("session", after(1)), ("cancelled", after(2))]);
    let yard = recorded(&recorder).await;
    let session = yard.engine.session("s");
    let began = Instant::now();
    session.recorded().await.unwrap();
    assert_eq!(began.elapsed(), SECOND);
    session.turn().cancel();
    assert!(!session.cancel_call("nobody"));
    session.cancel_calls();
    session.cancel();
    session.recorded().await.unwrap();
    assert_eq!(began.elapsed(), 3 * SECOND);
    let told = |record: &MemoryRecord| match record {
        MemoryRecord::Cancelled { what, .. } => Some(what.clone()),
        _ => None,
    };
    let told: Vec<_> = recorder.given().iter().filter_map(told).collect();
    assert_eq!(told, ["Turn(1)", "Calls { turn: None, id: \"nobody\" }", "InFlight", "Session"]);
    let failing = slow([("cancelled", FAILS)]);
    let session = recorded(&failing).await.engine.session("s");
    session.cancel();
    assert!(session.recorded().await.is_err());
}

/// SM-4: a cancel that could not be recorded is reported once; one that is repeated, and durable, may be acknowledged.
#[tokio::test(start_paused = true)]
async fn a_cancel_that_failed_is_reported_once() {
    let fails = Mutex::new(true);
    let recorder = MemoryRecorder::paced(move |record| match record {
        MemoryRecord::Cancelled { .. } if std::mem::take(&mut *fails.lock().unwrap()) => FAILS,
        _ => Pace::After(Duration::ZERO),
    });
    let session = recorded(&recorder).await.engine.session("s");
    session.cancel_calls();
    assert!(session.recorded().await.is_err());
    session.cancel_calls();
    session.recorded().await.unwrap();
}

/// SM-4: a dispatch whose future is dropped is recorded as cancelled, unless it had its results.
#[tokio::test(start_paused = true)]
async fn a_dropped_dispatch_is_recorded_as_cancelled() {
    let recorder = MemoryRecorder::default();
    let yard = recorded(&recorder).await;
    let session = yard.engine.session("s");
    session.call(call("a", "serial", 0, "ok")).await;
    let dropped = tokio::time::timeout(SECOND, session.call(call("b", "serial", 10_000, "polite"))).await;
    assert!(dropped.is_err());
    sleep(60 * SECOND).await;
    let cancels = recorder.given().iter().filter(|it| it.kind() == "cancelled").count();
    assert_eq!(cancels, 1);
}

/// A recorder whose code panics: at once, or when it is waited for.
struct Panics {
    at_once: bool,
}

impl Recorder for Panics {
    fn attempt(&self, _: &AttemptRecord<'_>) -> Durable {
        assert!(!self.at_once, "on purpose");
        Durable::when(async { panic!("on purpose") })
    }

    fn ended(&self, _: &EndRecord<'_>) -> Durable {
        panic!("on purpose")
    }
}

/// SM-4: a recorder that panics has failed, and nothing else comes of it.
#[tokio::test(start_paused = true)]
async fn a_recorder_that_panics_has_failed() {
    for at_once in [true, false] {
        let yard = yard(|builder, _| builder.recorder(Panics { at_once })).await;
        let outcome = no_hang(yard.engine.session("s").call(call("a", "serial", 0, "ok"))).await;
        assert!(is_unrecorded(&outcome) && !outcome.recorded, "{outcome:?}");
    }
}

/// SM-4, SC-8: a drain ends calls that wait for their records, and waits for what the recorder has left to do.
#[tokio::test(start_paused = true)]
async fn a_drain_waits_for_records_for_a_bounded_time() {
    let recorder = MemoryRecorder::paced(|record| match record {
        MemoryRecord::Attempt { call, .. } if call.call_id.as_str() == "starts" => Pace::Fails(3600 * SECOND),
        MemoryRecord::Ended { call, .. } if call.call_id.as_str() == "ends" => Pace::Fails(3600 * SECOND),
        _ => Pace::After(Duration::ZERO),
    });
    let yard = recorded(&recorder).await;
    let session = yard.engine.session("s");
    let drain = async {
        sleep(Duration::from_millis(100)).await;
        yard.engine.shutdown(Drain::default().finish(SECOND).grace(SECOND)).await
    };
    let began = Instant::now();
    let calls = vec![call("starts", "concurrent", 0, "ok"), call("ends", "concurrent", 0, "ok")];
    let (outcomes, _) = no_hang(async { tokio::join!(session.dispatch(calls), drain) }).await;
    assert_eq!(kinds(&outcomes), [Some(ErrorKind::ShuttingDown), None]);
    assert!(outcomes[0].recorded && !outcomes[1].recorded);
    assert_eq!(began.elapsed(), Duration::from_millis(100) + 7 * SECOND);
}

/// Drops every task when it is woken for the first time.
struct Forgetful;

impl Spawner for Forgetful {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let (mut task, mut polls) = (Some(task), 0);
        tokio::spawn(poll_fn(move |cx| {
            polls += 1;
            if polls > 1 {
                task = None;
            }
            task.as_mut().map_or(Poll::Ready(()), |task| task.as_mut().poll(cx))
        }));
    }
}

/// SM-4, SC-3: if the task of a call is dropped while it waits for a record, the call has not started, or has the result
/// that its handler gave; nothing waits for its record.
#[tokio::test(start_paused = true)]
async fn what_the_drop_of_a_task_records_is_not_waited_for() {
    for (kind, is_started) in [("attempt", false), ("ended", true)] {
        let recorder = MemoryRecorder::paced(move |record| match record.kind() == kind {
            true => Pace::After(SECOND),
            false => Pace::Nothing,
        });
        let recording = recorder.clone();
        let now = tool_fn(ToolSpec::write("now"), |(): (), _: ToolContext| async { Ok("done") });
        let yard =
            yard(|builder, _| builder.tool(now).recorder(recording).spawner(Arc::new(Forgetful))).await;
        let began = Instant::now();
        let outcome = no_hang(yard.engine.session("s").call(Call::new("a", "now", "{}"))).await;
        match is_started {
            true => assert_eq!((outcome.to_text().as_str(), outcome.attempts), ("done", 1)),
            false => {
                let error = outcome.error().unwrap();
                let found = (error.kind, error.effect, outcome.attempts);
                assert_eq!(found, (ErrorKind::Internal, Effect::NotStarted, 0));
            }
        }
        assert_eq!(began.elapsed(), SECOND, "{kind}");
        assert_eq!(kinds_of(&recorder.given()), ["session", "batch", "attempt", "ended"]);
    }
}
