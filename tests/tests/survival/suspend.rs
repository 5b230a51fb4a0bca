//! What a drain suspends if the recorder outlives the engine (SM-10).

use super::{SECOND, no_hang};
use serde_json::{Value, json};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::time::sleep;
use toolyard::{
    Answer, ApprovalRequest, Approver, Batch, Call, ConfirmationMode, Confirmations, Drain, Effect,
    ErrorKind, EventKind, ForkPolicy, KeySource, MemoryRecord, MemoryRecorder, Outcome, Pace, Receipt,
    SessionOptions, SubAgents, Tool, ToolClass, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec,
    async_trait, tool_fn,
};
use toolyard_tests::{Yard, call, event_faults, kinds, tries, yard};

/// Answers after an hour, and keeps what became of its answers.
#[derive(Clone, Default)]
struct Asleep(Arc<Mutex<Vec<Receipt>>>);

#[async_trait]
impl Approver for Asleep {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        sleep(3600 * SECOND).await;
        Answer::allow("ada")
    }

    fn receipt(&self, _: &ApprovalRequest, receipt: Receipt) {
        self.0.lock().unwrap().push(receipt);
    }
}

async fn yard_with(recorder: &MemoryRecorder) -> Yard {
    let recorder = recorder.clone();
    yard(|builder, log| {
        let confirm = Confirmations::auto().tool("asked", ConfirmationMode::Prompt);
        let nests = tool_fn(ToolSpec::write("nests").concurrent(), |(): (), cx: ToolContext| async move {
            let outcomes = cx
                .dispatch(Batch::new(vec![
                    call("inner 1", "serial", 0, "polite"),
                    call("inner 2", "serial", 0, "ok"),
                ]))
                .await;
            Ok(format!("{:?}", kinds(&outcomes)))
        });
        builder
            .tool(toolyard_tests::scripted(ToolSpec::write("asked").concurrent(), log))
            .tool(toolyard_tests::scripted(ToolSpec::write("flaky").concurrent().idempotent(), log))
            .tool(nests)
            .confirmations(confirm)
            .approver(Asleep::default())
            .recorder(recorder)
    })
    .await
}

/// Drains after 50 ms, with a second to finish.
async fn drained<T>(yard: &Yard, dispatched: impl Future<Output = T>) -> T {
    let drain = async {
        sleep(Duration::from_millis(50)).await;
        yard.engine.shutdown(Drain::default().finish(SECOND).grace(SECOND)).await
    };
    no_hang(async { tokio::join!(dispatched, drain) }).await.0
}

fn suspended(outcome: &Outcome) -> Option<u64> {
    outcome.error().and_then(|error| error.suspended)
}

fn has_end(recorder: &MemoryRecorder, id: &str) -> bool {
    let is_end = |record: &MemoryRecord| match record {
        MemoryRecord::Ended { call, .. } => call.call_id.as_str() == id,
        _ => false,
    };
    recorder.given().iter().any(is_end)
}

/// SM-10: calls that have not started and open questions are suspended: their caller hears which turn to resume, and they
/// leave no end. What has started ends as ever.
#[tokio::test(start_paused = true)]
async fn a_drain_suspends_what_has_not_started() {
    let recorder = MemoryRecorder::default().outliving();
    let yard = yard_with(&recorder).await;
    let calls = vec![
        call("runs", "concurrent", 500, "ok"),
        call("asked", "asked", 0, "ok"),
        tries("retries", "flaky", 0, &["transient", "ok"]),
        call("later", "serial", 0, "ok"),
    ];
    let session = yard.engine.session("s");
    let turn = session.turn();
    let outcomes = drained(&yard, turn.dispatch(calls)).await;
    assert_eq!(outcomes.iter().map(suspended).collect::<Vec<_>>(), [None, Some(1), None, Some(1)]);
    assert!(outcomes[0].success());
    assert_eq!(kinds(&outcomes)[2], Some(ErrorKind::ShuttingDown));
    for outcome in [&outcomes[1], &outcomes[3]] {
        let error = outcome.error().unwrap();
        assert_eq!((error.kind, error.effect), (ErrorKind::ShuttingDown, Effect::NotStarted));
        assert!(!error.retryable && error.retry_after.is_none() && outcome.recorded);
        assert!(!has_end(&recorder, outcome.call_id.as_str()));
    }
    assert!(has_end(&recorder, "runs") && has_end(&recorder, "retries"));
    let events = yard.events.events();
    let of = |id: &str, name: &str| {
        let is_it = |event: &&toolyard::Event| {
            event.kind.name() == name && event.call_id.as_ref().is_some_and(|it| it.as_str() == id)
        };
        events.iter().filter(is_it).count()
    };
    assert_eq!((of("asked", "call.suspended"), of("later", "call.suspended")), (1, 1));
    assert_eq!(
        (of("asked", "tool.confirmation_requested"), of("asked", "tool.confirmation_resolved")),
        (1, 0)
    );
    drop((turn, session));
    assert_eq!(event_faults(&yard.events.events(), false), Vec::<String>::new());
}

/// SM-10: without a recorder that outlives the engine, all of them end, to be sent again.
#[tokio::test(start_paused = true)]
async fn a_drain_suspends_nothing_if_nothing_outlives_it() {
    let recorder = MemoryRecorder::default();
    let yard = yard_with(&recorder).await;
    let session = yard.engine.session("s");
    let calls = vec![call("runs", "concurrent", 500, "ok"), call("later", "serial", 0, "ok")];
    let outcomes = drained(&yard, session.dispatch(calls)).await;
    assert_eq!((suspended(&outcomes[1]), kinds(&outcomes)[1]), (None, Some(ErrorKind::ShuttingDown)));
    assert!(outcomes[1].error().unwrap().retryable && has_end(&recorder, "later"));
}

/// SM-10: calls whose caller cannot resume them end: a single call without a key, those of a session that says so, those
/// of a handler, and those that come when the drain has begun.
#[tokio::test(start_paused = true)]
async fn what_nobody_can_resume_is_not_suspended() {
    let recorder = MemoryRecorder::default().outliving();
    let yard = yard_with(&recorder).await;
    let session = yard.engine.session("s");
    let never = yard.engine.session_with("never", SessionOptions::default().without_resume());
    let holds = session.call(call("holds", "serial", 500, "ok"));
    let keyed = |id: &str| {
        let mut call = call(id, "serial", 0, "ok");
        call.idempotency_key = Some("k".into());
        call
    };
    let nests = yard.engine.session("nests");
    let late = async {
        sleep(Duration::from_millis(60)).await;
        session.dispatch(vec![call("late", "serial", 0, "ok")]).await
    };
    let (_, single, key, of_never, nested, late) = drained(&yard, async {
        tokio::join!(
            holds,
            session.call(call("single", "serial", 0, "ok")),
            session.call(keyed("key")),
            async {
                let holds = never.call(call("holds too", "serial", 500, "ok"));
                tokio::join!(holds, never.dispatch(vec![keyed("waits")])).1
            },
            nests.call(Call::new("nests", "nests", "{}")),
            late,
        )
    })
    .await;
    assert_eq!((suspended(&single), kinds(&[single])[0]), (None, Some(ErrorKind::ShuttingDown)));
    assert_eq!((suspended(&of_never[0]), kinds(&of_never)[0]), (None, Some(ErrorKind::ShuttingDown)));
    assert_eq!((suspended(&late[0]), kinds(&late)[0]), (None, Some(ErrorKind::ShuttingDown)));
    assert!(suspended(&key).is_some());
    assert!(nested.success(), "{nested:?}");
    assert!(!recorder.given().is_empty() && has_end(&recorder, "inner 2"));
}

/// Pays, or looks at what was paid: by its arguments.
struct Pays;

impl ToolFactory for Pays {
    fn spec(&self) -> ToolSpec {
        ToolSpec::network("pays").key(KeySource::Derive)
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new(Self)
    }

    fn class_for(&self, args: &Value) -> Option<ToolClass> {
        (args["looks"] == true).then_some(ToolClass::Read)
    }
}

#[async_trait]
impl Tool for Pays {
    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        sleep(SECOND / 2).await;
        Ok(ToolOutput::text("done"))
    }
}

/// SM-10, KT-16: a single call that has a key of its tool's can be found by it; one that only reads has none.
#[tokio::test(start_paused = true)]
async fn a_derived_key_is_one_to_be_found_by() {
    let recorder = MemoryRecorder::default().outliving();
    let given = recorder.clone();
    let yard =
        yard(|builder, _| builder.tool(Pays).confirmations(Confirmations::auto()).recorder(given)).await;
    let session = yard.engine.session_with("s", SessionOptions::default().max_in_flight(1));
    let call = |id: &'static str, args: Value| session.call(Call::new(id, "pays", args));
    let (_, pays, looks) = drained(&yard, async {
        tokio::join!(
            call("holds", json!({"to": 1})),
            call("pays", json!({"to": 2})),
            call("looks", json!({"looks": true}))
        )
    })
    .await;
    assert!(suspended(&pays).is_some());
    assert_eq!((suspended(&looks), kinds(&[looks])[0]), (None, Some(ErrorKind::ShuttingDown)));
}

/// SM-10: nor are those of a batch that comes while the pools are still being told of the drain.
#[tokio::test(start_paused = true)]
async fn a_batch_that_comes_as_the_drain_begins_is_not_suspended() {
    let recorder = MemoryRecorder::default().outliving();
    let yard = yard_with(&recorder).await;
    let session = yard.engine.session("s");
    let calls = vec![call("runs", "serial", 500, "ok"), call("later", "serial", 0, "ok")];
    // Polled in this order: the batch comes when the drain waits for the first time.
    let drained = async { tokio::join!(yard.engine.shutdown(Drain::default()), session.dispatch(calls)) };
    let (_, outcomes) = no_hang(drained).await;
    assert_eq!(kinds(&outcomes), [None, Some(ErrorKind::ShuttingDown)]);
    assert_eq!((suspended(&outcomes[1]), has_end(&recorder, "later")), (None, true));
}

/// SM-10: a call whose attempt was recorded has begun: it ends, not started, so that nobody takes it for interrupted.
#[tokio::test(start_paused = true)]
async fn a_call_whose_start_was_recorded_is_not_suspended() {
    let late = |record: &MemoryRecord| match record {
        MemoryRecord::Attempt { .. } => Pace::Fails(3600 * SECOND),
        _ => Pace::After(Duration::ZERO),
    };
    let recorder = MemoryRecorder::paced(late).outliving();
    let yard = yard_with(&recorder).await;
    let session = yard.engine.session("s");
    let outcomes = drained(&yard, session.dispatch(vec![call("starts", "serial", 0, "ok")])).await;
    assert_eq!((suspended(&outcomes[0]), kinds(&outcomes)[0]), (None, Some(ErrorKind::ShuttingDown)));
    assert!(has_end(&recorder, "starts"));
}

/// SM-10: who hears that a call is suspended hears it when its batch is durable, or hears that it is not.
#[tokio::test(start_paused = true)]
async fn a_suspended_call_says_whether_its_batch_is_durable() {
    for (pace, is_recorded) in [(Pace::After(SECOND), true), (Pace::Fails(Duration::ZERO), false)] {
        let recorder = MemoryRecorder::paced(move |record| match record {
            MemoryRecord::Batch { .. } => pace,
            _ => Pace::Nothing,
        });
        let yard = yard_with(&recorder.outliving()).await;
        let session = yard.engine.session("s");
        let calls = vec![call("runs", "concurrent", 200, "ok"), call("later", "serial", 0, "ok")];
        let began = tokio::time::Instant::now();
        let outcomes = drained(&yard, session.dispatch(calls)).await;
        assert_eq!((suspended(&outcomes[1]), outcomes[1].recorded), (Some(1), is_recorded));
        assert!(!is_recorded || began.elapsed() >= SECOND);
    }
}

/// SM-10, CL-5: so are the calls of an open batch.
#[tokio::test(start_paused = true)]
async fn calls_of_an_open_batch_are_suspended() {
    let recorder = MemoryRecorder::default().outliving();
    let yard = yard_with(&recorder).await;
    let batch = yard.engine.session("s").open_batch();
    batch.push(call("runs", "concurrent", 500, "ok"));
    batch.push(call("later", "serial", 0, "ok"));
    let outcomes = drained(&yard, batch.finish()).await;
    assert_eq!(outcomes.iter().map(suspended).collect::<Vec<_>>(), [None, Some(1)]);
}

/// SM-10: a cancel of a suspended turn is recorded, so that the turn ends.
#[tokio::test(start_paused = true)]
async fn a_cancel_ends_a_suspended_turn() {
    let recorder = MemoryRecorder::default().outliving();
    let yard = yard_with(&recorder).await;
    let session = yard.engine.session("s");
    let turn = session.turn();
    let outcomes = drained(&yard, turn.dispatch(vec![call("asked", "asked", 0, "ok")])).await;
    assert_eq!(suspended(&outcomes[0]), Some(turn.number()));
    turn.cancel();
    session.recorded().await.unwrap();
    let last = recorder.durable().pop();
    assert!(matches!(&last, Some(MemoryRecord::Cancelled { what, .. }) if what == "Turn(1)"), "{last:?}");
    let answered = |kind: &EventKind| matches!(kind, EventKind::ConfirmationResolved(_));
    assert!(!yard.events.events().iter().any(|event| answered(&event.kind)));
}

/// SM-10, CL-7: not those of an open batch whose handler is gone: nobody can resume it.
#[tokio::test(start_paused = true)]
async fn calls_below_a_handler_that_has_ended_are_not_suspended() {
    let recorder = MemoryRecorder::default().outliving();
    let kept = Arc::new(Mutex::new(None));
    let (recording, keeps) = (recorder.clone(), kept.clone());
    let keeps = tool_fn(ToolSpec::read("keeps"), move |(): (), cx: ToolContext| {
        let agent = cx.fork(ForkPolicy::default());
        *keeps.lock().unwrap() = Some(agent.unwrap());
        async { Ok("kept") }
    });
    let yard = yard(|builder, _| builder.tool(keeps).recorder(recording)).await;
    let session = yard.engine.session("s");
    assert!(session.call(Call::new("above", "keeps", "{}")).await.success());
    let agent = kept.lock().unwrap().take().unwrap();
    let batch = agent.open_batch();
    let late = async {
        sleep(Duration::from_millis(60)).await;
        batch.push(call("late", "serial", 0, "ok"));
        batch.finish().await
    };
    let runs = session.call(call("runs", "concurrent", 500, "ok"));
    let (_, outcomes) = drained(&yard, async { tokio::join!(runs, late) }).await;
    assert_eq!((suspended(&outcomes[0]), has_end(&recorder, "late")), (None, true));
}

/// Answers at once, and keeps what became of its answer, in milliseconds.
#[derive(Clone)]
struct Answers(Answer, tokio::time::Instant, Arc<Mutex<Vec<(Receipt, u128)>>>);

#[async_trait]
impl Approver for Answers {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        self.0.clone()
    }

    fn receipt(&self, _: &ApprovalRequest, receipt: Receipt) {
        self.2.lock().unwrap().push((receipt, self.1.elapsed().as_millis()));
    }
}

/// SM-10, SM-6: an answer that is being recorded when its call is suspended holds if it becomes durable. Its giver is told
/// so then, and the drain waits for that.
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_being_recorded_holds_for_a_suspended_call() {
    let edit = Answer::edit("ada", serde_json::json!({"ms": 1, "end": "ok"}));
    for answer in [Answer::allow("ada"), Answer::deny("ada"), edit] {
        for (pace, told, drained_ms) in [
            (Pace::After(2 * SECOND), Receipt::Taken, 2_000),
            (Pace::Fails(2 * SECOND), Receipt::Withdrawn, 2_000),
            // It finishes for 1 s, has a grace of 1 s, and then 5 s for what is being recorded.
            (Pace::Fails(3600 * SECOND), Receipt::Withdrawn, 7_050),
        ] {
            let paced = move |record: &MemoryRecord| match record {
                MemoryRecord::Answer { .. } => pace,
                _ => Pace::After(Duration::ZERO),
            };
            let recorder = MemoryRecorder::paced(paced).outliving();
            let answers = Answers(answer.clone(), tokio::time::Instant::now(), Arc::default());
            let (recording, approver) = (recorder.clone(), answers.clone());
            let confirm = Confirmations::auto().tool("serial", ConfirmationMode::Prompt);
            let yard =
                yard(|builder, _| builder.recorder(recording).confirmations(confirm).approver(approver))
                    .await;
            let session = yard.engine.session("s");
            let began = tokio::time::Instant::now();
            let outcomes = drained(&yard, session.dispatch(vec![call("a", "serial", 0, "ok")])).await;
            assert_eq!(suspended(&outcomes[0]), Some(1));
            assert_eq!(began.elapsed().as_millis(), drained_ms);
            assert_eq!(*answers.2.lock().unwrap(), [(told.clone(), drained_ms)]);
            let is_answer = |record: &MemoryRecord| matches!(record, MemoryRecord::Answer { .. });
            assert_eq!(recorder.durable().iter().any(is_answer), told == Receipt::Taken);
            assert!(!has_end(&recorder, "a") && yard.log.started().is_empty());
            drop(session);
            assert_eq!(event_faults(&yard.events.events(), false), Vec::<String>::new());
        }
    }
}
