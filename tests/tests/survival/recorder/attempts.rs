//! A call starts when the record of its attempt is durable (SM-4).

use super::*;
use serde_json::{Value, json};
use toolyard::{
    Abort, BatchRecord, EndRecord, Engine, PoolWidths, ToolFactory as _, ToolLayer, testing::ScriptedApprover,
};

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

/// Notes the calls whose attempts it is given.
struct Attempts {
    needs_reads: bool,
    given: Arc<Mutex<Vec<String>>>,
}

impl Recorder for Attempts {
    fn needs_attempts_of_reads(&self) -> bool {
        self.needs_reads
    }

    fn attempt(&self, record: &AttemptRecord<'_>) -> Durable {
        self.given.lock().unwrap().push(record.call.call_id.to_string());
        Durable::Nothing
    }
}

/// SM-4: a recorder that does not need the attempts of reads is not given them, but for those that have a key.
#[tokio::test(start_paused = true)]
async fn attempts_of_reads_are_given_to_whoever_needs_them() {
    for (needs_reads, expected) in [(true, vec!["a", "b", "c", "d"]), (false, vec!["a", "c", "d"])] {
        let given = Arc::<Mutex<Vec<String>>>::default();
        let recorder = Attempts { needs_reads, given: Arc::clone(&given) };
        let yard = yard(|builder, _| builder.recorder(recorder)).await;
        let mut read = call("d", "read", 0, "ok");
        read.idempotency_key = Some("other".into());
        let calls = vec![call("a", "serial", 0, "ok"), call("b", "read", 0, "ok"), keyed("c", 0, "ok"), read];
        let outcomes = no_hang(yard.engine.session("s").dispatch(calls)).await;
        assert_eq!(shape(&outcomes), "a ok, b ok, c ok, d ok");
        let mut given = given.lock().unwrap().clone();
        given.sort();
        assert_eq!(given, expected);
    }
}

/// Lets all ends wait, whether or not it needs the attempts of reads.
struct SlowEnds {
    needs_reads: bool,
}

impl Recorder for SlowEnds {
    fn needs_attempts_of_reads(&self) -> bool {
        self.needs_reads
    }

    fn ended(&self, _: &EndRecord<'_>) -> Durable {
        Durable::when(async {
            sleep(5 * SECOND).await;
            Ok(())
        })
    }
}

/// SM-4, SC-2: what the end of a read has let start does not wait for the record of that end.
#[tokio::test(start_paused = true)]
async fn what_a_read_lets_start_does_not_wait_for_its_record() {
    for needs_reads in [true, false] {
        let pools = PoolWidths::new(1, 1);
        let yard = yard(|builder, _| builder.recorder(SlowEnds { needs_reads }).pools(pools)).await;
        let calls = vec![call("a", "read", 1000, "ok"), call("b", "read", 1000, "ok")];
        let began = Instant::now();
        let outcomes = no_hang(yard.engine.session("s").dispatch(calls)).await;
        assert_eq!((shape(&outcomes).as_str(), began.elapsed()), ("a ok, b ok", 7 * SECOND));
        assert_eq!(yard.log.spans(), ["a 0..1000", "b 1000..2000"]);
    }
}

/// Notes with what calls are recorded and started, and whether that is said to be the same.
#[derive(Clone, Default)]
struct Arguments(Arc<Mutex<Vec<String>>>);

impl Recorder for Arguments {
    fn batch(&self, record: &BatchRecord<'_>) -> Durable {
        let calls = record.calls.iter().map(|call| format!("{} {}", call.id, call.arguments.text()));
        self.0.lock().unwrap().extend(calls);
        Durable::Nothing
    }

    fn attempt(&self, record: &AttemptRecord<'_>) -> Durable {
        let AttemptRecord { call, arguments, is_as_sent, .. } = record;
        let started = match is_as_sent {
            true => format!("{} as sent", call.call_id),
            false => format!("{} as {arguments}", call.call_id),
        };
        self.0.lock().unwrap().push(started);
        Durable::Nothing
    }
}

/// Turns `"n": 2` into 3.
struct Adds;

impl ToolLayer for Adds {
    fn arguments(&self, _: &ToolSpec, _: &Caller<'_>, args: &Value) -> Result<Option<Value>, Abort> {
        Ok((args["n"] == 2).then(|| json!({"n": 3})))
    }
}

/// SM-4: an attempt says whether it runs with the JSON that its call was recorded with: not if that was text, was changed by a
/// layer, or by whoever approved it.
#[tokio::test(start_paused = true)]
async fn an_attempt_says_whether_it_runs_as_sent() {
    let recorder = Arguments::default();
    let save = |name| tool_fn(ToolSpec::write(name), |_: Value, _: ToolContext| async { Ok("") });
    let allowed = || Answer::allow("ada");
    let answers = [allowed(), allowed(), Answer::edit("ada", json!({"n": 5})), allowed()];
    let approver = ScriptedApprover::new(answers);
    let builder = Engine::builder().recorder(recorder.clone()).tool(save("plain")).approver(approver);
    let engine = builder.tool(save("layered").layer(Adds)).build().await.unwrap();
    let session = engine.session("s");
    let calls = [
        Call::new("a", "plain", json!({"n": 1})),
        Call::new("b", "plain", r#"{"n": 1}"#),
        Call::new("c", "plain", json!({"n": 4})),
        Call::new("d", "layered", json!({"n": 1})),
        Call::new("e", "layered", json!({"n": 2})),
    ];
    for call in calls {
        assert!(no_hang(session.call(call)).await.success());
    }
    let expected = [
        r#"a {"n":1}"#,
        "a as sent",
        r#"b {"n": 1}"#,
        r#"b as {"n":1}"#,
        r#"c {"n":4}"#,
        r#"c as {"n":5}"#,
        r#"d {"n":1}"#,
        "d as sent",
        r#"e {"n":2}"#,
        r#"e as {"n":3}"#,
    ];
    assert_eq!(*recorder.0.lock().unwrap(), expected);
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

/// SM-4: the next attempt of a call waits for the record of the end of the last one, also where it need not wait for its
/// own.
#[tokio::test(start_paused = true)]
async fn an_attempt_waits_for_the_end_of_the_one_before() {
    let waits = (after(5), None, &["a 0..0", "a 5000..5000"][..]);
    let fails = (FAILS, Some(ErrorKind::Internal), &["a 0..0"][..]);
    for (pace, code, spans) in [waits, fails] {
        let recorder = slow([("attempt", Pace::Nothing), ("attempt_ended", pace)]);
        let yard = recorded(&recorder).await;
        let call = tries("a", "read", 0, &["transient", "ok"]);
        let outcome = no_hang(yard.engine.session("s").call(call)).await;
        assert_eq!(kinds(&[outcome]), [code]);
        assert_eq!(yard.log.spans(), spans);
    }
}

/// SM-4, V1: a call whose start is being recorded does not run with another grant than the one that was recorded.
#[tokio::test(start_paused = true)]
async fn a_grant_that_changes_during_a_record_ends_the_call() {
    let recorder = slow([("attempt", after(5))]);
    let yard = recorded(&recorder).await;
    let session = yard.engine.session("s");
    let change = after_a_second(&yard, within_time(SECOND));
    let (outcome, ()) =
        no_hang(async { tokio::join!(session.call(call("a", "serial", 0, "ok")), change) }).await;
    let error = outcome.error().unwrap();
    assert_eq!((error.kind, error.retryable), (ErrorKind::PermissionDenied, true));
    assert_eq!(error.message, "The policy changed what this call may do when it was about to start.");
    assert!(yard.log.started().is_empty());
}

/// SM-4: when the policy denies a call while its start is being recorded, it does not start.
#[tokio::test(start_paused = true)]
async fn a_policy_that_changes_during_a_record_is_asked() {
    let recorder = slow([("attempt", after(5))]);
    let yard = recorded(&recorder).await;
    let session = yard.engine.session("s");
    let change = after_a_second(&yard, Rule::Deny);
    let (outcome, ()) =
        no_hang(async { tokio::join!(session.call(call("a", "serial", 0, "ok")), change) }).await;
    assert_eq!(kinds(&[outcome]), [Some(ErrorKind::PermissionDenied)]);
    assert!(yard.log.started().is_empty());
}

/// SM-4, V1: what is recorded is what the policy in force grants, also if it changed after the call had its permits.
#[tokio::test(start_paused = true)]
async fn a_start_is_recorded_under_the_policy_in_force() {
    let recorder = slow([("attempt", after(5))]);
    let yard = recorded(&recorder).await;
    let session = yard.engine.session("s");
    let change = async {
        // The call has its permits, and its task has not begun.
        yard.engine.set_policy(PolicyRules::new(within_time(60 * SECOND)));
        assert_eq!(
            recorder.given().iter().filter(|it| matches!(it, MemoryRecord::Attempt { .. })).count(),
            0
        );
    };
    let (outcome, ()) =
        no_hang(async { tokio::join!(session.call(call("a", "serial", 0, "ok")), change) }).await;
    assert!(outcome.success(), "{outcome:?}");
    assert_eq!(yard.log.started(), ["a"]);
}
