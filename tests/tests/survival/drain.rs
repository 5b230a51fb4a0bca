//! Ends a mix of calls at once: by cancelling their turn (T14) or draining the engine (T17, SC-8).

use super::{SECOND, no_hang};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use toolyard::{
    Answer, ApprovalRequest, Approver, Call, Confirmations, Drain, Effect, ErrorKind, EventKind, Outcome,
    ToolSpec, async_trait, event::DrainStep,
};
use toolyard_tests::{Yard, call, scripted, shape, tries, yard};

/// An approver that answers after an hour, which is too late.
struct Asleep;

#[async_trait]
impl Approver for Asleep {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        sleep(3600 * SECOND).await;
        Answer::allow("ada")
    }
}

/// One call in each phase: queued, in backoff, waiting for a token, following a flight, waiting for approval, running
/// and polite, running and deaf. The leader of the flight runs.
fn mix() -> Vec<Call> {
    let keyed = |id: &str| {
        let mut call = call(id, "keyed", 0, "polite");
        call.idempotency_key = Some("k".into());
        call
    };
    vec![
        call("polite", "slow", 0, "stops_late"),
        call("deaf", "slow", 0, "deaf"),
        call("queued", "slow", 0, "ok"),
        tries("backoff", "flaky", 0, &["transient", "ok"]),
        call("token", "rated", 0, "ok"),
        call("waits_for_token", "rated", 0, "ok"),
        keyed("leads"),
        keyed("follows"),
        call("asked", "asked", 0, "ok"),
    ]
}

async fn mixed() -> Yard {
    yard(|builder, log| {
        let slow = ToolSpec::write("slow").concurrent().timeout(600 * SECOND);
        let tool = |name| scripted(ToolSpec::write(name).concurrent(), log);
        builder
            .tool(scripted(slow.max_concurrency(2), log))
            .tool(scripted(ToolSpec::write("flaky").concurrent().idempotent(), log))
            .tool(scripted(ToolSpec::write("rated").concurrent().rate("1/4s"), log))
            .tool(tool("keyed"))
            .tool(tool("asked"))
            .confirmations(Confirmations::auto().tool("asked", toolyard::ConfirmationMode::Prompt))
            .approver(Asleep)
    })
    .await
}

fn kind_of(outcomes: &[Outcome], id: &str) -> Option<ErrorKind> {
    outcomes.iter().find(|outcome| outcome.call_id.as_str() == id).unwrap().error().map(|error| error.kind)
}

/// When a call ended, in milliseconds of the engine's time.
fn ended_at(yard: &Yard, id: &str) -> u64 {
    let events = yard.events.events();
    let is_end = |event: &&toolyard::Event| {
        event.kind.is_terminal() && event.call_id.as_ref().is_some_and(|of| of.as_str() == id)
    };
    events.iter().find(is_end).map(|event| event.mono_us / 1000).unwrap()
}

/// T14, SC-4, SC-5: when a turn is cancelled, waiting calls end in the same instant, the polite one in its own time,
/// and the deaf one is abandoned after 30 s; a sibling session is untouched.
#[tokio::test(start_paused = true)]
async fn t14_a_cancelled_turn_ends_each_call_by_its_phase() {
    let yard = mixed().await;
    let (session, sibling) = (yard.engine.session("s"), yard.engine.session("sibling"));
    let turn = session.turn();
    let cancel = async {
        sleep(Duration::from_millis(50)).await;
        turn.cancel();
    };
    let (outcomes, other, ()) = no_hang(async {
        tokio::join!(turn.dispatch(mix()), sibling.call(call("other", "read", 60_000 - 1, "ok")), cancel)
    })
    .await;
    assert!(other.success());
    for id in ["queued", "backoff", "waits_for_token", "follows", "asked"] {
        assert_eq!((kind_of(&outcomes, id), ended_at(&yard, id)), (Some(ErrorKind::Cancelled), 50), "{id}");
    }
    assert_eq!((kind_of(&outcomes, "polite"), ended_at(&yard, "polite")), (Some(ErrorKind::Cancelled), 70));
    assert_eq!((kind_of(&outcomes, "deaf"), ended_at(&yard, "deaf")), (Some(ErrorKind::Cancelled), 30_050));
    assert_eq!(kind_of(&outcomes, "token"), None);
    let effect = |id: &str| {
        let outcome = outcomes.iter().find(|outcome| outcome.call_id.as_str() == id).unwrap();
        outcome.error().unwrap().effect
    };
    assert_eq!([effect("queued"), effect("waits_for_token"), effect("asked")], [Effect::NotStarted; 3]);
    assert_eq!((effect("backoff"), effect("deaf")), (Effect::Failed, Effect::Unknown));
    yard.events.check();
}

/// T17, SC-8: when the engine drains with the same mix, waiting calls are answered, running ones may finish, then are
/// cancelled, then given up; at the end no handler runs and no call is open.
#[tokio::test(start_paused = true)]
async fn t17_a_drain_ends_each_call_by_its_phase() {
    let yard = mixed().await;
    let session = yard.engine.session("s");
    let mut batch = mix();
    batch.push(call("finishes", "read", 20_000, "ok"));
    let drain = async {
        sleep(Duration::from_millis(50)).await;
        yard.engine.shutdown(Drain::default()).await
    };
    let from = Instant::now();
    let (outcomes, report) = no_hang(async { tokio::join!(session.dispatch(batch), drain) }).await;
    for id in ["queued", "backoff", "waits_for_token", "asked", "finishes"] {
        assert_eq!(kind_of(&outcomes, id), Some(ErrorKind::ShuttingDown), "{id}, {}", shape(&outcomes));
    }
    assert_eq!(ended_at(&yard, "queued"), 50);
    // The flight runs, so its callers are given the same time to finish and are then cancelled with it.
    for id in ["leads", "follows", "polite", "deaf"] {
        assert_eq!(kind_of(&outcomes, id), Some(ErrorKind::Cancelled), "{id}");
    }
    assert_eq!((ended_at(&yard, "leads"), ended_at(&yard, "deaf")), (30_050, 60_050));
    assert_eq!((report.abandoned, from.elapsed()), (1, Duration::from_millis(60_050)));
    let steps: Vec<_> = yard
        .events
        .events()
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::EngineDrain { step } => Some(step),
            _ => None,
        })
        .collect();
    use DrainStep as D;
    assert_eq!(steps, [D::Refuse, D::ClearQueue, D::Finish, D::Cancel, D::Abandon, D::Stopped]);
    assert_eq!(yard.log.running(), 0);
    yard.events.check();
}

/// RT-7, PO-3: an approval or a retry never runs a finished sibling again, and a failure cancels no sibling.
#[tokio::test(start_paused = true)]
async fn an_approval_or_retry_never_runs_a_finished_sibling_again() {
    struct Soon;
    #[async_trait]
    impl Approver for Soon {
        async fn ask(&self, _: &ApprovalRequest) -> Answer {
            sleep(SECOND).await;
            Answer::allow("ada")
        }
    }
    let yard = yard(|builder, _| {
        let confirmations = Confirmations::auto().tool("concurrent", toolyard::ConfirmationMode::Prompt);
        builder.confirmations(confirmations).approver(Soon)
    })
    .await;
    let batch = vec![
        call("done", "read", 0, "ok"),
        call("fails", "read", 0, "fail"),
        tries("flaky", "read", 0, &["transient", "transient", "ok"]),
        call("panics", "read", 0, "panic"),
        call("slow", "read", 2000, "ok"),
        call("asked", "concurrent", 0, "ok"),
    ];
    let outcomes = no_hang(yard.engine.session("s").dispatch(batch)).await;
    assert_eq!(shape(&outcomes), "done ok, fails execution_error, flaky ok, panics panic, slow ok, asked ok");
    let started = yard.log.started();
    let count = |id: &str| started.iter().filter(|call| *call == id).count();
    assert_eq!(["done", "fails", "panics", "slow", "asked"].map(count), [1; 5], "{started:?}");
    assert_eq!(count("flaky"), 3);
    yard.events.check();
}

/// SC-8, I10: a drain waits for a handler that goes on after the last of its callers has left, and gives it up when its
/// own time is over.
#[tokio::test(start_paused = true)]
async fn a_drain_ends_a_handler_whose_callers_have_left() {
    let yard = yard(|builder, log| builder.tool(scripted(ToolSpec::write("keyed").concurrent(), log))).await;
    let session = yard.engine.session("s");
    let batch = ["leads", "follows"].map(|id| {
        let mut call = call(id, "keyed", 0, "deaf");
        (call.idempotency_key, call.deadline) = (Some("k".into()), Some(Duration::from_millis(200)));
        call
    });
    let from = Instant::now();
    let outcomes = no_hang(session.dispatch(batch.to_vec())).await;
    assert_eq!(shape(&outcomes), "leads deadline_exceeded, follows deadline_exceeded");
    let drain = Drain::default().finish(Duration::from_millis(50)).grace(Duration::from_millis(50));
    assert_eq!(no_hang(yard.engine.shutdown(drain)).await.abandoned, 1);
    assert_eq!(from.elapsed(), Duration::from_millis(300));
    assert_eq!(yard.log.spans(), ["leads 0..300"]);
    yard.events.check();
}
