//! What must be durable before a call starts, and before its result is given (SM-4).

use super::{SECOND, no_hang};
use futures::future::BoxFuture;
use std::{
    collections::BTreeMap,
    future::poll_fn,
    sync::{Arc, Mutex},
    task::Poll,
    time::Duration,
};
use tokio::time::{Instant, sleep};
use toolyard::{
    Answer, ApprovalRequest, Approver, AttemptRecord, Call, Caller, ConfirmationMode, Confirmations, Drain,
    Durable, Effect, EndRecord, ErrorKind, EventKind, ForkPolicy, Hooks, MemoryRecord, MemoryRecorder,
    Outcome, Pace, Reason, Receipt, Recorder, Spawner, ToolContext, ToolSpec, async_trait, tool_fn,
};
use toolyard_tests::{Yard, call, kinds, shape, tries, yard};

/// A recorder in which records of these kinds take so long; the others are durable at once.
fn slow<const N: usize>(kinds: [(&'static str, Pace); N]) -> MemoryRecorder {
    MemoryRecorder::paced(move |record| {
        let pace = kinds.iter().find(|(kind, _)| *kind == record.kind());
        pace.map_or(Pace::After(Duration::ZERO), |(_, pace)| *pace)
    })
}

const fn after(seconds: u64) -> Pace {
    Pace::After(Duration::from_secs(seconds))
}

const FAILS: Pace = Pace::Fails(Duration::ZERO);

async fn recorded(recorder: &MemoryRecorder) -> Yard {
    let recorder = recorder.clone();
    yard(|builder, _| builder.recorder(recorder)).await
}

fn kinds_of(records: &[MemoryRecord]) -> Vec<&'static str> {
    records.iter().map(MemoryRecord::kind).collect()
}

fn keyed(id: &str, ms: u64, end: &str) -> Call {
    let mut call = call(id, "concurrent", ms, end);
    call.idempotency_key = Some("k".into());
    call
}

fn is_unrecorded(outcome: &Outcome) -> bool {
    let error = outcome.error().unwrap();
    (error.kind, error.reason, error.effect, outcome.attempts)
        == (ErrorKind::Internal, Some(Reason::Journal), Effect::NotStarted, 0)
}

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

/// SM-4: no handler starts before the record of its attempt, and that of its batch, is durable. It waits with its
/// permits, and its timeout counts from its start.
#[tokio::test(start_paused = true)]
async fn a_handler_starts_when_its_attempt_is_durable() {
    let recorder = slow([("batch", after(2)), ("attempt", after(5))]);
    let yard = recorded(&recorder).await;
    let timed = call("a", "serial", 9_000, "ok").timeout(10 * SECOND);
    let outcomes =
        no_hang(yard.engine.session("s").dispatch(vec![timed, call("b", "serial", 0, "ok")])).await;
    assert_eq!(shape(&outcomes), "a ok, b ok");
    assert_eq!(yard.log.spans(), ["a 5000..14000", "b 19000..19000"]);
}

/// SM-4: what cannot be recorded does not start; calls that need not wait go on.
#[tokio::test(start_paused = true)]
async fn a_call_that_cannot_be_recorded_does_not_start() {
    let recorder = MemoryRecorder::paced(|record| match record {
        MemoryRecord::Attempt { must_wait: false, .. } | MemoryRecord::Ended { must_wait: false, .. } => {
            Pace::Nothing
        }
        MemoryRecord::Attempt { .. } => FAILS,
        _ => Pace::After(Duration::ZERO),
    });
    let yard = recorded(&recorder).await;
    let calls = vec![call("a", "serial", 0, "ok"), call("b", "read", 0, "ok"), keyed("c", 0, "ok")];
    let outcomes = no_hang(yard.engine.session("s").dispatch(calls)).await;
    assert!(is_unrecorded(&outcomes[0]) && is_unrecorded(&outcomes[2]), "{}", shape(&outcomes));
    assert_eq!(yard.log.started(), ["b"]);
    assert!(outcomes.iter().all(|outcome| outcome.recorded));
    let called = |kind: &EventKind| matches!(kind, EventKind::Called { .. } | EventKind::Attempt);
    assert_eq!(yard.events.events().iter().filter(|event| called(&event.kind)).count(), 2);
}

/// SM-4: a batch whose record fails starts nothing that has to wait.
#[tokio::test(start_paused = true)]
async fn nothing_of_an_unrecorded_batch_starts() {
    let recorder = slow([("batch", FAILS)]);
    let yard = recorded(&recorder).await;
    let outcome = no_hang(yard.engine.session("s").call(call("a", "serial", 0, "ok"))).await;
    assert!(is_unrecorded(&outcome), "{outcome:?}");
    assert!(yard.log.started().is_empty());
}

/// SM-4: a record that is late ends its call after 30 s, not started, and its permits go to the next one.
#[tokio::test(start_paused = true)]
async fn a_late_record_ends_its_call_after_thirty_seconds() {
    let late = Mutex::new(true);
    let recorder = MemoryRecorder::paced(move |record| match record {
        MemoryRecord::Attempt { .. } if std::mem::take(&mut *late.lock().unwrap()) => {
            Pace::Fails(3600 * SECOND)
        }
        _ => Pace::After(Duration::ZERO),
    });
    let yard = recorded(&recorder).await;
    let (calls, began) = (vec![call("a", "serial", 0, "ok"), call("b", "serial", 0, "ok")], Instant::now());
    let outcomes = no_hang(yard.engine.session("s").dispatch(calls)).await;
    assert!(is_unrecorded(&outcomes[0]), "{}", shape(&outcomes));
    assert_eq!((kinds(&outcomes)[1], began.elapsed()), (None, 30 * SECOND));
    assert_eq!(yard.log.spans(), ["b 30000..30000"]);
}

/// SM-4, SC-4: a call that is cancelled while its attempt is being recorded ends at once, not started; so does one whose
/// deadline passes.
#[tokio::test(start_paused = true)]
async fn a_call_that_waits_for_its_record_can_be_cancelled() {
    let recorder = slow([("attempt", after(20))]);
    let yard = recorded(&recorder).await;
    let session = yard.engine.session("s");
    let cancel = async {
        sleep(SECOND).await;
        assert!(session.cancel_call("a"));
    };
    let late = call("late", "concurrent", 0, "ok").deadline(3 * SECOND);
    let began = Instant::now();
    let (a, late, ()) = no_hang(async {
        tokio::join!(session.call(call("a", "concurrent", 0, "ok")), session.call(late), cancel)
    })
    .await;
    let of = |outcome: &Outcome| {
        let error = outcome.error().unwrap();
        (error.kind, error.effect, outcome.attempts)
    };
    assert_eq!(of(&a), (ErrorKind::Cancelled, Effect::NotStarted, 0));
    assert_eq!(of(&late), (ErrorKind::DeadlineExceeded, Effect::NotStarted, 0));
    assert_eq!(began.elapsed(), 20 * SECOND); // the records of their ends come after those of their starts
    assert!(yard.log.started().is_empty());
    let status = yard.engine.status().await.unwrap();
    assert!(status.pools.iter().all(|pool| pool.running == 0), "{status:?}");
}

/// SM-4, ID-3: if the leader of a key is cancelled while its attempt is being recorded, its oldest follower leads.
#[tokio::test(start_paused = true)]
async fn a_follower_takes_over_from_a_leader_that_was_not_recorded() {
    let recorder = slow([("attempt", after(5))]);
    let yard = recorded(&recorder).await;
    let session = yard.engine.session("s");
    let cancel = async {
        sleep(SECOND).await;
        assert!(session.cancel_call("leads"));
    };
    let follow = async {
        sleep(Duration::from_millis(10)).await;
        session.call(keyed("follows", 0, "ok")).await
    };
    let (leads, follows, ()) =
        no_hang(async { tokio::join!(session.call(keyed("leads", 0, "ok")), follow, cancel) }).await;
    assert_eq!(kinds(&[leads, follows]), [Some(ErrorKind::Cancelled), None]);
    assert_eq!(yard.log.started(), ["follows"]);
}

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
    let (hooks, one) = (ends.clone(), 1.try_into().unwrap());
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

/// Answers after a second, and notes when it was asked and what became of its answers.
#[derive(Clone)]
struct Asked {
    began: Instant,
    at: Arc<Mutex<Vec<u64>>>,
    receipts: Arc<Mutex<Vec<(Receipt, u64)>>>,
}

#[async_trait]
impl Approver for Asked {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        self.at.lock().unwrap().push(self.began.elapsed().as_secs());
        sleep(SECOND).await;
        Answer::allow("ada")
    }

    fn receipt(&self, _: &ApprovalRequest, receipt: Receipt) {
        self.receipts.lock().unwrap().push((receipt, self.began.elapsed().as_secs()));
    }
}

async fn asking(recorder: &MemoryRecorder) -> (Yard, Asked) {
    let asked = Asked { began: Instant::now(), at: Arc::default(), receipts: Arc::default() };
    let (recorder, approver) = (recorder.clone(), asked.clone());
    let confirm = Confirmations::auto().tool("serial", ConfirmationMode::Prompt);
    let yard = yard(|builder, _| builder.recorder(recorder).confirmations(confirm).approver(approver)).await;
    (yard, asked)
}

/// SM-4: a question is shown, to the approver and in its event, when it is durable; an answer counts when that is.
#[tokio::test(start_paused = true)]
async fn a_question_is_shown_and_an_answer_counts_when_it_is_durable() {
    let recorder = slow([("question", after(2)), ("answer", after(4))]);
    let (yard, asked) = asking(&recorder).await;
    let outcome = no_hang(yard.engine.session("s").call(call("a", "serial", 0, "ok"))).await;
    assert!(outcome.success());
    assert_eq!(*asked.at.lock().unwrap(), [2]);
    assert_eq!(*asked.receipts.lock().unwrap(), [(Receipt::Taken, 7)]);
    assert_eq!(yard.log.spans(), ["a 7000..7000"]);
    let events = yard.events.events();
    let at = |name: &str| events.iter().find(|it| it.kind.name() == name).map(|it| it.mono_us / 1_000_000);
    assert_eq!(at("tool.confirmation_requested"), Some(2));
    assert_eq!(at("tool.confirmation_resolved"), Some(7));
    assert_eq!(kinds_of(&recorder.given()), ["session", "batch", "question", "answer", "attempt", "ended"]);
}

/// SM-4: a question that cannot be recorded is not shown, and an answer that cannot be recorded does not count. Either
/// ends its call, not started.
#[tokio::test(start_paused = true)]
async fn a_question_or_an_answer_that_is_not_durable_ends_its_call() {
    for (kind, asked_at, receipts) in
        [("question", vec![], vec![]), ("answer", vec![0], vec![(Receipt::Withdrawn, 1)])]
    {
        let recorder = MemoryRecorder::paced(move |record| match record.kind() == kind {
            true => FAILS,
            false => Pace::After(Duration::ZERO),
        });
        let (yard, asked) = asking(&recorder).await;
        let outcome = no_hang(yard.engine.session("s").call(call("a", "serial", 0, "ok"))).await;
        assert!(is_unrecorded(&outcome), "{kind}: {outcome:?}");
        assert_eq!(*asked.at.lock().unwrap(), asked_at, "{kind}");
        assert_eq!(*asked.receipts.lock().unwrap(), receipts, "{kind}");
        assert!(yard.log.started().is_empty());
    }
}

/// SM-4: a call can be cancelled while its question is being recorded; nobody is asked.
#[tokio::test(start_paused = true)]
async fn a_call_whose_question_is_not_shown_yet_can_be_cancelled() {
    let recorder = slow([("question", after(5))]);
    let (yard, asked) = asking(&recorder).await;
    let session = yard.engine.session("s");
    let cancel = async {
        sleep(SECOND).await;
        assert!(session.cancel_call("a"));
    };
    let (outcome, ()) =
        no_hang(async { tokio::join!(session.call(call("a", "serial", 0, "ok")), cancel) }).await;
    assert_eq!(kinds(&[outcome]), [Some(ErrorKind::Cancelled)]);
    sleep(60 * SECOND).await;
    assert!(asked.at.lock().unwrap().is_empty());
    assert!(yard.events.events().iter().all(|event| !event.kind.name().starts_with("tool.confirmation")));
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

/// SM-4: when the policy denies a call while its start is being recorded, it does not start.
#[tokio::test(start_paused = true)]
async fn a_policy_that_changes_during_a_record_is_asked() {
    let recorder = slow([("attempt", after(5))]);
    let yard = recorded(&recorder).await;
    let session = yard.engine.session("s");
    let change = async {
        sleep(SECOND).await;
        yard.engine.set_policy(toolyard::PolicyRules::new(toolyard::Rule::Deny));
    };
    let (outcome, ()) =
        no_hang(async { tokio::join!(session.call(call("a", "serial", 0, "ok")), change) }).await;
    assert_eq!(kinds(&[outcome]), [Some(ErrorKind::PermissionDenied)]);
    assert!(yard.log.started().is_empty());
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
