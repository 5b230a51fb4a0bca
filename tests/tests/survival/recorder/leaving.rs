//! Calls that have run, and end where nothing could wait for their record.

use super::*;
use toolyard::{Batch, Blocking};
use toolyard_tests::scripted;

/// Notes when the end of each call is told, in seconds, and whether the result says that it is recorded.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<BTreeMap<String, (u128, bool)>>>, toolyard_tests::Log);

impl Told {
    fn of(&self, id: &str) -> Option<(u128, bool)> {
        self.0.lock().unwrap().get(id).copied()
    }
}

#[async_trait]
impl Hooks for Told {
    async fn on_tool_end(&self, outcome: &Outcome, _: &Caller<'_>) {
        let told = (self.1.now() / 1000, outcome.recorded);
        self.0.lock().unwrap().insert(outcome.call_id.to_string(), told);
    }
}

async fn told(recorder: &MemoryRecorder) -> (Yard, Told) {
    let (told, recorder) = (Told::default(), recorder.clone());
    let hooks = told.clone();
    let yard = yard(|builder, log| {
        let flaky = scripted(ToolSpec::write("flaky").concurrent().idempotent(), log);
        builder.tool(flaky).hooks(hooks).recorder(recorder)
    })
    .await;
    (yard, told)
}

/// The second of the one event that ends a call.
fn ended_at(yard: &Yard, id: &str) -> u64 {
    let events = yard.events.events();
    let mut ends = events.iter().filter(|event| {
        event.kind.is_terminal() && event.call_id.as_ref().is_some_and(|call| call.as_str() == id)
    });
    let end = ends.next().unwrap();
    assert!(ends.next().is_none());
    end.mono_us / 1_000_000
}

/// SM-4: a call that has run and is cancelled between two attempts is told of, by hook, event and result, when the record
/// of its end is durable.
#[tokio::test(start_paused = true)]
async fn the_end_between_two_attempts_waits() {
    for (pace, is_recorded) in [(after(7), true), (Pace::Fails(7 * SECOND), false)] {
        let (yard, told) = told(&slow([("ended", pace)])).await;
        let session = yard.engine.session("s");
        let cancel = async {
            sleep(Duration::from_millis(1)).await;
            session.cancel_call("a");
        };
        let began = Instant::now();
        let call = session.call(tries("a", "flaky", 0, &["transient", "ok"]));
        let (outcome, ()) = no_hang(async { tokio::join!(call, cancel) }).await;
        assert_eq!(
            (kinds(std::slice::from_ref(&outcome)), outcome.attempts),
            (vec![Some(ErrorKind::Cancelled)], 1)
        );
        assert_eq!((outcome.recorded, told.of("a")), (is_recorded, Some((7, is_recorded))));
        assert_eq!((ended_at(&yard, "a"), began.elapsed().as_secs()), (7, 7));
        yard.events.check();
    }
}

/// A recorder in which the end of the leader takes 7 s.
fn with_slow_leader() -> MemoryRecorder {
    MemoryRecorder::paced(|record| match record {
        MemoryRecord::Ended { call, .. } if call.call_id.as_str() == "leads" => after(7),
        _ => Pace::After(Duration::ZERO),
    })
}

/// SM-4, ID-4: the same for a leader that leaves its handler to others.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_leader_that_leaves_waits() {
    let (yard, told) = told(&with_slow_leader()).await;
    let session = yard.engine.session("s");
    let cancel = async {
        sleep(SECOND / 2).await;
        session.cancel_call("leads");
    };
    let follow = async {
        sleep(Duration::from_millis(10)).await;
        session.call(keyed("follows", 1000, "ok")).await
    };
    let (leads, follows, ()) =
        no_hang(async { tokio::join!(session.call(keyed("leads", 1000, "ok")), follow, cancel) }).await;
    assert_eq!(kinds(&[leads, follows]), [Some(ErrorKind::Cancelled), None]);
    assert_eq!((told.of("leads"), ended_at(&yard, "leads")), (Some((7, true)), 7));
    yard.events.check();
}

/// SM-4, ID-4: when the last caller leaves while the end of a leader that has left is being recorded, the handler is
/// stopped.
#[tokio::test(start_paused = true)]
async fn the_handler_of_callers_that_have_all_left_is_stopped() {
    let (yard, _) = told(&with_slow_leader()).await;
    let session = yard.engine.session("s");
    let hangs = |id: &str| keyed(id, 0, "hang").timeout(3600 * SECOND);
    let follow = async {
        sleep(Duration::from_millis(10)).await;
        session.call(hangs("follows").deadline(2 * SECOND)).await
    };
    let leads = session.call(hangs("leads").deadline(SECOND));
    let (leads, follows) = no_hang(async { tokio::join!(leads, follow) }).await;
    assert_eq!(kinds(&[leads, follows]), [Some(ErrorKind::DeadlineExceeded); 2]);
    sleep(60 * SECOND).await; // longer than its grace, and far from its timeout
    let status = yard.engine.status().await.unwrap();
    assert!(status.pools.iter().all(|pool| pool.running == 0), "{status:?}");
    yard.events.check();
}

/// Runs blocking handlers as tasks, which time may pass for.
struct Tasks;

impl Blocking for Tasks {
    fn spawn(&self, job: BoxFuture<'static, ()>) {
        tokio::spawn(job);
    }
}

/// OB-1, SM-4: what a handler that could not be dropped ends with is told after the end of its call, also if that is
/// still being recorded.
#[tokio::test(start_paused = true)]
async fn a_late_result_waits_for_the_end_of_its_call() {
    // Records that are given later are durable before this one fails.
    let recorder = MemoryRecorder::paced(|record| match record {
        MemoryRecord::Ended { call, .. } if call.call_id.as_str() == "leads" => Pace::Fails(7 * SECOND),
        _ => Pace::After(Duration::ZERO),
    });
    let yard = yard(|builder, log| {
        let deaf = ToolSpec::write("deaf").concurrent().blocking().timeout(2 * SECOND);
        builder.tool(scripted(deaf, log)).blocking(Arc::new(Tasks)).recorder(recorder)
    })
    .await;
    let session = yard.engine.session("s");
    let deaf = |id: &str| {
        let mut call = call(id, "deaf", 4000, "ok");
        call.idempotency_key = Some("k".into());
        call
    };
    let follow = async {
        sleep(Duration::from_millis(10)).await;
        session.call(deaf("follows")).await
    };
    let leads = session.call(deaf("leads").deadline(SECOND));
    let (leads, follows) = no_hang(async { tokio::join!(leads, follow) }).await;
    assert_eq!(kinds(&[leads, follows]), [Some(ErrorKind::DeadlineExceeded), Some(ErrorKind::Timeout)]);
    sleep(10 * SECOND).await;
    let events = yard.events.of_call("leads");
    assert_eq!(events[events.len() - 2..], ["tool.failed", "dispatch.late_result"]);
    yard.events.check();
}

/// SM-4: a result that a handler gets of a call that it has dispatched says whether its record is durable.
#[tokio::test(start_paused = true)]
async fn a_handler_is_told_what_is_not_recorded() {
    let recorder = MemoryRecorder::paced(|record| match record {
        MemoryRecord::Ended { call, .. } if call.call_id.as_str() != "outer" => FAILS,
        _ => Pace::After(Duration::ZERO),
    });
    let yard = yard(|builder, log| {
        let outer = tool_fn(ToolSpec::write("outer").concurrent(), |(): (), cx: ToolContext| async move {
            let calls =
                vec![tries("retried", "flaky", 0, &["transient", "ok"]), call("refused", "none", 0, "ok")];
            let outcomes = cx.dispatch(Batch::new(calls)).await;
            Ok(outcomes.iter().map(|it| format!("{} {} ", it.attempts, it.recorded)).collect::<String>())
        });
        let flaky = scripted(ToolSpec::write("flaky").concurrent().idempotent(), log);
        builder.tool(flaky).tool(outer).recorder(recorder)
    })
    .await;
    let session = yard.engine.session("s");
    let cancel = async {
        sleep(Duration::from_millis(1)).await;
        session.cancel_call("retried");
    };
    let outer = session.call(Call::new("outer", "outer", "{}"));
    let (outcome, ()) = no_hang(async { tokio::join!(outer, cancel) }).await;
    assert_eq!((outcome.to_text().as_ref(), outcome.recorded), ("1 false 0 false ", true));
    yard.events.check();
}

/// Drops each task when it is polled again.
struct Forgetful;

impl Spawner for Forgetful {
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let mut task = Some(task);
        let mut polled = false;
        tokio::spawn(poll_fn(move |cx| {
            if std::mem::replace(&mut polled, true) {
                task = None;
            }
            task.as_mut().map_or(Poll::Ready(()), |task| task.as_mut().poll(cx))
        }));
    }
}

/// SM-4: a result whose record nobody could wait for does not say that it is recorded.
#[tokio::test(start_paused = true)]
async fn a_result_that_nobody_waited_for_is_not_recorded() {
    let recorder = MemoryRecorder::paced(|record| match record {
        MemoryRecord::Ended { .. } => after(1),
        _ => Pace::Nothing,
    });
    let yard = yard(|builder, _| {
        let now = tool_fn(ToolSpec::write("now"), |(): (), _: ToolContext| async { Ok("done") });
        builder.tool(now).recorder(recorder).spawner(Arc::new(Forgetful))
    })
    .await;
    let outcome = no_hang(yard.engine.session("s").call(Call::new("a", "now", "{}"))).await;
    assert_eq!((outcome.to_text().as_ref(), outcome.recorded), ("done", false));
}

/// SM-4: the reply of an open batch waits for the records of all its pieces at once, at most 30 s.
#[tokio::test(start_paused = true)]
async fn a_reply_waits_for_all_its_records_at_once() {
    let never = Pace::Fails(3600 * SECOND);
    let yard = recorded(&slow([("ended", never), ("closed", never)])).await;
    let batch = yard.engine.session("s").open_batch();
    for id in ["a", "b", "c", "d"] {
        batch.push(call(id, "none", 0, "ok"));
        sleep(Duration::from_millis(10)).await;
    }
    let began = Instant::now();
    let outcomes = no_hang(batch.finish()).await;
    assert_eq!(shape(&outcomes), "a not_found, b not_found, c not_found, d not_found");
    assert!(outcomes.iter().all(|outcome| !outcome.recorded));
    assert_eq!(began.elapsed(), 30 * SECOND);
}

/// SM-4, SC-8: once a drain gives up, records have 5 s more, all together.
#[tokio::test(start_paused = true)]
async fn a_drain_that_gives_up_waits_once() {
    let yard = recorded(&slow([("ended", Pace::Fails(3600 * SECOND))])).await;
    let session = yard.engine.session("s");
    let began = Instant::now();
    let dispatch = async {
        let calls = (0..6).map(|call_id| call(&call_id.to_string(), "none", 0, "ok")).collect::<Vec<_>>();
        session.dispatch(calls).await;
        began.elapsed()
    };
    let drain = async {
        sleep(SECOND).await;
        yard.engine.shutdown(Drain::default().finish(SECOND).grace(SECOND)).await;
    };
    let deaf = session.call(call("deaf", "concurrent", 0, "deaf"));
    let (replied, _, ()) = no_hang(async { tokio::join!(dispatch, deaf, drain) }).await;
    assert_eq!(replied, 8 * SECOND, "the drain has given up at 3 s");
}
