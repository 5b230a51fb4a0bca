//! JR-7: the records of the end of an epoch may be lost with the power; keys are known all the same.

use crate::{
    both::{both, life},
    scene::{Scene, end},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use toolyard::{
    Call, Confirmations, Dedupe, Engine, ErrorKind, Outcome, Reason, Reconciled, Tool, ToolContext,
    ToolError, ToolFactory, ToolOutput, ToolSpec, async_trait,
};
use toolyard_journal::{Journal, Keep, Settings, prune};
use toolyard_tests::Ledger;

/// A tool that changes something, and knows what it is told to know.
#[derive(Clone)]
struct Pay {
    knows: Reconciled,
    ran: Arc<Mutex<u32>>,
}

impl ToolFactory for Pay {
    fn spec(&self) -> ToolSpec {
        ToolSpec::write("pay")
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new(self.clone())
    }
}

#[async_trait]
impl Tool for Pay {
    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        *self.ran.lock() += 1;
        Ok("paid now".into())
    }

    async fn reconcile(&self, _: &Value, _: Option<&str>, _: &ToolContext) -> Reconciled {
        self.knows.clone()
    }
}

fn pay(id: &str) -> Call {
    Call::new(id, "pay", json!({"euros": 5})).idempotency_key("k")
}

async fn engine(journal: &Journal, pay: &Pay) -> Engine {
    let builder = Engine::builder().tool(pay.clone()).confirmations(Confirmations::auto());
    builder.recorder(journal.clone()).build().await.unwrap()
}

fn kind(outcome: &Outcome) -> Option<ErrorKind> {
    outcome.error().map(|error| error.kind)
}

/// Leaves this call, and nothing of what came behind its batch: the power went.
async fn lost(scene: &Scene, call: Call) {
    left(scene, call).await;
    unclean(scene, 1);
}

/// Leaves this call, not started, in an epoch that was closed.
async fn left(scene: &Scene, call: Call) {
    let first = both(scene, &Ledger::default(), 2);
    let yard = life(&first).await;
    let session = yard.engine.session("s");
    tokio::select! {
        _ = session.dispatch(vec![call]) => {}
        () = first.cut.notified() => {}
    }
    first.journal.close().unwrap();
    drop(yard);
}

/// As if the machine had gone down in this epoch.
fn unclean(scene: &Scene, epoch: i64) {
    let unclean =
        "UPDATE epoch_rows SET boot_id = 'another', ended_ms = NULL, durability = 'process' WHERE id = ?1";
    scene.sql().execute(unclean, [epoch]).unwrap();
}

/// JR-7: until its turn is resumed, the key of such a call is `interrupted`, and nothing runs under it.
#[tokio::test]
async fn its_key_is_known_before_its_turn_is_resumed() {
    let scene = Scene::new();
    lost(&scene, pay("1")).await;
    let pays = Pay { knows: Reconciled::Unknown, ran: Arc::default() };
    let second = scene.open();
    let next = engine(&second, &pays).await;
    let again = next.session("s").call(pay("2")).await;
    assert_eq!((kind(&again), *pays.ran.lock()), (Some(ErrorKind::Interrupted), 0), "{again:?}");
}

/// JR-7, CL-8: a call without a key whose attempt was lost counts as started: sent again, it is answered as it was.
#[tokio::test]
async fn what_may_have_been_started_is_not_made_again() {
    let scene = Scene::new();
    let call = Call::new("1", "pay", json!({"euros": 5}));
    lost(&scene, call.clone()).await;
    let pays = Pay { knows: Reconciled::Unknown, ran: Arc::default() };
    let second = scene.open();
    let next = engine(&second, &pays).await;
    assert_eq!(scene.reader().started_calls("s").unwrap()[0].call_id.as_str(), "1");
    let resumed = next.session("s").resume(1).await.unwrap();
    let turn = resumed.turn().clone();
    let ended = resumed.finish().await.concat();
    assert_eq!((kind(&ended[0]), ended[0].attempts), (Some(ErrorKind::Interrupted), 1));
    let again = turn.resend(vec![call]).await;
    assert_eq!((kind(&again[0]), *pays.ran.lock()), (Some(ErrorKind::Interrupted), 0), "{again:?}");
    second.close().unwrap();
    assert_eq!(scene.reader().started_calls("s").unwrap()[0].call_id.as_str(), "1");
    assert_eq!(toolyard_journal::verify(scene.path()).unwrap().findings, []);
}

/// JR-7, JR-10: so does one that nobody resumes in time, and its key is known then.
#[tokio::test]
async fn what_expires_may_have_been_started() {
    let scene = Scene::new();
    lost(&scene, pay("1")).await;
    scene.open().close().unwrap();
    let last = Journal::open(scene.path(), Settings::default().keep_open(Duration::ZERO)).unwrap();
    let turn = scene.reader().turn("s", 1).unwrap().unwrap();
    let ended = end(&turn.batches[0].calls[0].state);
    let error = ended.status.as_ref().unwrap_err();
    assert_eq!((error.kind, error.reason, ended.started), (ErrorKind::Interrupted, Some(Reason::Expired), 1));
    last.close().unwrap();
    // In this life and in the next one.
    for id in ["2", "3"] {
        let journal = scene.open();
        let pays = Pay { knows: Reconciled::Unknown, ran: Arc::default() };
        let again = engine(&journal, &pays).await.session("s").call(pay(id)).await;
        assert_eq!((kind(&again), *pays.ran.lock()), (Some(ErrorKind::Interrupted), 0), "{again:?}");
        journal.close().unwrap();
    }
    assert_eq!(toolyard_journal::verify(scene.path()).unwrap().findings, []);
}

/// JR-6, JR-7: such a call of which its tool says that it was not done runs, under its key.
#[tokio::test]
async fn what_was_not_done_is_done() {
    let scene = Scene::new();
    lost(&scene, pay("1")).await;
    let pays = Pay { knows: Reconciled::NotDone { is_final: true }, ran: Arc::default() };
    let second = scene.open();
    let next = engine(&second, &pays).await;
    let session = next.session("s");
    let resumed = session.resume(1).await.unwrap().finish().await.concat();
    assert_eq!((kind(&resumed[0]), *pays.ran.lock()), (None, 1), "{resumed:?}");
    let again = session.call(pay("2")).await;
    assert_eq!((kind(&again), again.dedupe, *pays.ran.lock()), (None, Dedupe::Replayed, 1), "{again:?}");
}

/// JR-7: one whose arguments are no JSON has not passed the gate, and closes nobody's session.
#[tokio::test]
async fn arguments_that_cannot_be_read_close_no_session() {
    let scene = Scene::new();
    lost(&scene, Call::new("1", "pay", "{bad").idempotency_key("k")).await;
    let pays = Pay { knows: Reconciled::Unknown, ran: Arc::default() };
    let second = scene.open();
    let next = engine(&second, &pays).await;
    let paid = next.session("s").call(pay("2")).await;
    assert_eq!((kind(&paid), *pays.ran.lock()), (None, 1), "{paid:?}");
}

/// JR-7, JR-10, ID-9: a call whose attempt was lost, and of which its tool says that it is done, or does not know, is not made
/// again under its key, in this life and in the next one.
#[tokio::test]
async fn the_key_of_a_call_whose_attempt_was_lost_is_known() {
    for (knows, expected) in
        [(Reconciled::Done("paid before".into()), None), (Reconciled::Unknown, Some(ErrorKind::Interrupted))]
    {
        let scene = Scene::new();
        lost(&scene, pay("1")).await;
        let pays = Pay { knows, ran: Arc::default() };
        let second = scene.open();
        let next = engine(&second, &pays).await;
        let session = next.session("s");
        let resumed = session.resume(1).await.unwrap().finish().await;
        assert_eq!(kind(&resumed[0][0]), expected);
        let again = session.call(pay("2")).await;
        assert_eq!((kind(&again), again.dedupe), (expected, Dedupe::Replayed), "{again:?}");
        second.close().unwrap();

        let third = scene.open();
        let last = engine(&third, &pays).await;
        let again = last.session("s").call(pay("3")).await;
        assert_eq!((kind(&again), *pays.ran.lock()), (expected, 0), "{again:?}");
        third.close().unwrap();
    }
}

/// Leaves a call in the first epoch, which was closed; the second one has taken it up, and only that it began is left of it:
/// the power went. Pruning has come between, before the machine started again and after that.
async fn taken_up_and_lost(scene: &Scene) {
    left(scene, pay("1")).await;
    scene.open().close().unwrap();
    let sql = "UPDATE epoch_rows SET ended_ms = NULL, durability = 'process' WHERE id = 2";
    scene.sql().execute(sql, []).unwrap();
    scene.open().close().unwrap();
    prune(scene.path(), Keep::default().at_most(0)).unwrap();
    unclean(scene, 2);
    prune(scene.path(), Keep::default().at_most(0)).unwrap();
    let gaps: Vec<_> = scene.reader().gaps().unwrap().iter().map(|gap| gap.epoch).collect();
    assert_eq!(gaps, [2]);
}

/// JR-7: a call that an earlier epoch has left counts as started if an epoch that may have taken it up may lack its end; so
/// does its key.
#[tokio::test]
async fn what_a_lost_epoch_may_have_taken_up_is_not_made_again() {
    for is_resumed in [true, false] {
        let scene = Scene::new();
        taken_up_and_lost(&scene).await;
        let pays = Pay { knows: Reconciled::Unknown, ran: Arc::default() };
        let last = scene.open();
        let next = engine(&last, &pays).await;
        assert_eq!(scene.reader().started_calls("s").unwrap().len(), 1);
        let session = next.session("s");
        if is_resumed {
            let resumed = session.resume(1).await.unwrap().finish().await.concat();
            assert_eq!((kind(&resumed[0]), resumed[0].attempts), (Some(ErrorKind::Interrupted), 1));
        }
        let again = session.call(pay("2")).await;
        assert_eq!((kind(&again), *pays.ran.lock()), (Some(ErrorKind::Interrupted), 0), "{again:?}");
        last.close().unwrap();
        assert_eq!(toolyard_journal::verify(scene.path()).unwrap().findings, []);
    }
}

/// JR-7, JR-10: so does one that nobody resumes in time.
#[tokio::test]
async fn what_a_lost_epoch_may_have_taken_up_expires_as_started() {
    let scene = Scene::new();
    taken_up_and_lost(&scene).await;
    Journal::open(scene.path(), Settings::default().keep_open(Duration::ZERO)).unwrap().close().unwrap();
    let turn = scene.reader().turn("s", 1).unwrap().unwrap();
    let ended = end(&turn.batches[0].calls[0].state);
    assert_eq!((ended.status.as_ref().unwrap_err().kind, ended.started), (ErrorKind::Interrupted, 1));
}

/// JR-7: a call that comes after the epoch that may lack its end is sure.
#[tokio::test]
async fn what_comes_after_a_lost_epoch_is_sure() {
    let scene = Scene::new();
    scene.open().close().unwrap();
    unclean(&scene, 1);
    left(&scene, pay("1")).await;
    let pays = Pay { knows: Reconciled::Unknown, ran: Arc::default() };
    let last = scene.open();
    let next = engine(&last, &pays).await;
    let resumed = next.session("s").resume(1).await.unwrap().finish().await.concat();
    assert_eq!((kind(&resumed[0]), *pays.ran.lock()), (None, 1));
}
