//! A result is given when its record is durable (SM-4).

use super::*;

/// When hooks are told of the ends of calls, in milliseconds.
#[derive(Clone, Default)]
struct Ends(Arc<Mutex<BTreeMap<String, u128>>>, toolyard_tests::Log);

#[async_trait]
impl Hooks for Ends {
    async fn on_tool_end(&self, outcome: &Outcome, _: &Caller<'_>) {
        self.0.lock().unwrap().insert(outcome.call_id.to_string(), self.1.now());
    }
}

/// SM-4: nobody is told of a result before its record is durable: no hook, no event, no caller. The permits are back
/// before that.
#[tokio::test(start_paused = true)]
async fn a_result_is_given_when_it_is_durable() {
    let recorder = slow([("attempt", Pace::Nothing), ("ended", after(7))]);
    let (ends, recording) = (Ends::default(), recorder.clone());
    let (hooks, one) = (ends.clone(), 1);
    let yard = yard(|builder, _| {
        let pools = toolyard::PoolWidths::new(one, one);
        builder.recorder(recording).hooks(hooks).pools(pools)
    })
    .await;
    let began = Instant::now();
    let calls = vec![call("a", "concurrent", 1_000, "ok"), call("b", "concurrent", 1_000, "ok")];
    let outcomes = no_hang(yard.engine.session("s").dispatch(calls)).await;
    assert_eq!((shape(&outcomes).as_str(), began.elapsed()), ("a ok, b ok", 9 * SECOND));
    assert_eq!(yard.log.spans(), ["a 0..1000", "b 1000..2000"]);
    let told = ends.0.lock().unwrap().clone();
    assert_eq!(told.into_values().collect::<Vec<_>>(), [8_000, 9_000]);
    let events = yard.events.events();
    let ended: Vec<_> =
        events.iter().filter(|it| it.kind.is_terminal()).map(|it| it.mono_us / 1000).collect();
    assert_eq!(ended, [8_000, 9_000]);
}

/// SM-4: a result whose record fails, or takes longer than 30 s, is given and says that it is not recorded.
#[tokio::test(start_paused = true)]
async fn a_result_that_is_not_durable_says_so() {
    for (pace, seconds) in [(FAILS, 0), (Pace::Fails(Duration::from_secs(3600)), 30)] {
        let recorder = MemoryRecorder::paced(move |record| match record {
            MemoryRecord::Ended { .. } => pace,
            _ => Pace::After(Duration::ZERO),
        });
        let yard = recorded(&recorder).await;
        let began = Instant::now();
        let outcome = no_hang(yard.engine.session("s").call(call("a", "serial", 0, "ok"))).await;
        assert_eq!((outcome.to_text().as_str(), outcome.recorded), ("a", false));
        assert_eq!(began.elapsed(), seconds * SECOND);
    }
}

/// SM-4, ID-6: the result of a key is kept, and given to those who follow, when it is durable.
#[tokio::test(start_paused = true)]
async fn followers_wait_for_the_record_of_their_leader() {
    let recorder = slow([("ended", after(4))]);
    let yard = recorded(&recorder).await;
    let session = yard.engine.session("s");
    let began = Instant::now();
    let later = |id: &'static str, ms| {
        let session = session.clone();
        async move {
            sleep(Duration::from_millis(ms)).await;
            let outcome = session.call(keyed(id, 1_000, "ok")).await;
            (outcome, began.elapsed().as_secs())
        }
    };
    let (a, b, c) = no_hang(async { tokio::join!(later("a", 0), later("b", 100), later("c", 2_000)) }).await;
    assert_eq!([a.1, b.1, c.1], [5, 9, 9]);
    for (outcome, dedupe) in [(&b.0, toolyard::Dedupe::Joined), (&c.0, toolyard::Dedupe::Joined)] {
        assert_eq!((outcome.to_text().as_str(), outcome.dedupe), ("a", dedupe));
    }
    assert_eq!(yard.log.started(), ["a"]);
}

/// SM-4, ID-4: what a handler ends with whose caller has left is recorded before the others of its key are given it.
#[tokio::test(start_paused = true)]
async fn the_result_of_a_flight_whose_leader_has_left_is_recorded() {
    let recorder = slow([("attempt_ended", after(6))]);
    let yard = recorded(&recorder).await;
    let session = yard.engine.session("s");
    let cancel = async {
        sleep(Duration::from_millis(500)).await;
        assert!(session.cancel_call("leads"));
    };
    let follow = async {
        sleep(Duration::from_millis(10)).await;
        session.call(keyed("follows", 1_000, "ok")).await
    };
    let began = Instant::now();
    let (leads, follows, ()) =
        no_hang(async { tokio::join!(session.call(keyed("leads", 1_000, "ok")), follow, cancel) }).await;
    assert_eq!(kinds(&[leads, follows]), [Some(ErrorKind::Cancelled), None]);
    assert_eq!(began.elapsed(), 7 * SECOND);
    let records = kinds_of(&recorder.given());
    assert_eq!(
        records,
        ["session", "batch", "attempt", "batch", "cancelled", "ended", "attempt_ended", "ended"]
    );
}

/// SM-4: a call that ends without having run leaves its record too, and the reply of its batch waits for it.
#[tokio::test(start_paused = true)]
async fn a_reply_waits_for_the_records_of_refused_calls() {
    for (pace, seconds, is_recorded) in [(after(3), 3, true), (FAILS, 0, false)] {
        let recorder = MemoryRecorder::paced(move |record| match record {
            MemoryRecord::Ended { .. } => pace,
            _ => Pace::After(Duration::ZERO),
        });
        let yard = recorded(&recorder).await;
        let began = Instant::now();
        let outcome = no_hang(yard.engine.session("s").call(call("a", "no such tool", 0, "ok"))).await;
        assert_eq!(
            (outcome.error().map(|error| error.kind), outcome.recorded),
            (Some(ErrorKind::NotFound), is_recorded)
        );
        assert_eq!(began.elapsed(), seconds * SECOND);
    }
}

/// SM-4, SC-6: a handler that was given up and stops while the result of its call is being recorded keeps nothing until
/// that is done.
#[tokio::test(start_paused = true)]
async fn a_zombie_that_stops_during_a_record_keeps_nothing() {
    let recorder = MemoryRecorder::paced(|record| match record {
        MemoryRecord::Ended { call, .. } if call.call_id.as_str() == "given up" => Pace::Fails(3600 * SECOND),
        _ => Pace::After(Duration::ZERO),
    });
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (begin, begun) = tokio::sync::oneshot::channel::<()>();
    let (begin, released) = (Arc::new(Mutex::new(Some(begin))), Arc::new(Mutex::new(released)));
    let blocks =
        tool_fn(ToolSpec::write("blocks").blocking().timeout(SECOND), move |(): (), _: ToolContext| {
            let (begin, released) = (begin.lock().unwrap().take(), released.clone());
            async move {
                begin.into_iter().for_each(|begin| begin.send(()).unwrap());
                let _ = released.lock().unwrap().recv();
                Ok("too late")
            }
        });
    let recording = recorder.clone();
    let yard = yard(|builder, _| builder.tool(blocks).recorder(recording)).await;
    let session = yard.engine.session("s");
    let began = Instant::now();
    let free = async {
        begun.await.unwrap();
        // Time stands still while a thread runs, unless it is moved.
        for _ in 0..20 {
            tokio::time::advance(SECOND / 10).await;
        }
        release.send(()).unwrap();
        let outcome = session.call(call("next", "serial", 0, "ok")).await;
        (outcome, began.elapsed())
    };
    let (given_up, (next, at)) =
        no_hang(async { tokio::join!(session.call(Call::new("given up", "blocks", "{}")), free) }).await;
    assert_eq!((kinds(&[given_up]), next.success()), (vec![Some(ErrorKind::Timeout)], true));
    assert!(at < 10 * SECOND, "the next call waited for {at:?}");
    let events = yard.events.events();
    assert!(events.iter().any(|event| event.kind == EventKind::LateResult { ok: true }));
}

/// SM-4, ID-4: what a retry ends with for the others of its key, its own caller having left, is recorded as that attempt.
#[tokio::test(start_paused = true)]
async fn a_retry_that_goes_on_for_others_is_recorded_by_its_number() {
    let recorder = MemoryRecorder::default();
    let (log, recording) = (toolyard_tests::Log::new(), recorder.clone());
    let flaky = toolyard_tests::scripted(ToolSpec::write("flaky").concurrent().idempotent(), &log);
    let yard = yard(|builder, _| builder.tool(flaky).recorder(recording)).await;
    let session = yard.engine.session("s");
    let with_key = |id: &str| {
        let mut call = tries(id, "flaky", 1_000, &["transient", "ok"]);
        call.idempotency_key = Some("k".into());
        call
    };
    let leader = with_key("leader").deadline(2 * SECOND);
    let outcomes =
        no_hang(async { tokio::join!(session.call(leader), session.call(with_key("follower"))) }).await;
    assert_eq!(kinds(&[outcomes.0, outcomes.1]), [Some(ErrorKind::DeadlineExceeded), None]);
    let records = recorder.given();
    let attempts = records.iter().filter_map(|record| match record {
        MemoryRecord::Attempt { attempt, .. } => Some(("starts", *attempt)),
        MemoryRecord::AttemptEnded { attempt, .. } => Some(("ends", *attempt)),
        _ => None,
    });
    assert_eq!(attempts.collect::<Vec<_>>(), [("starts", 1), ("ends", 1), ("starts", 2), ("ends", 2)]);
}
