//! JR-7: the records of the end of an epoch may be lost with the power; keys are known all the same.

use crate::{
    both::{both, life},
    scene::Scene,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::sync::Arc;
use toolyard::{
    Call, Confirmations, Dedupe, Engine, ErrorKind, Outcome, Reconciled, Tool, ToolContext, ToolError,
    ToolFactory, ToolOutput, ToolSpec, async_trait,
};
use toolyard_journal::Journal;
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

/// JR-7, JR-10, ID-9: a call whose attempt was lost, and of which its tool says that it is done, or does not know, is not made
/// again under its key, in this life and in the next one.
#[tokio::test]
async fn the_key_of_a_call_whose_attempt_was_lost_is_known() {
    for (knows, expected) in
        [(Reconciled::Done("paid before".into()), None), (Reconciled::Unknown, Some(ErrorKind::Interrupted))]
    {
        let scene = Scene::new();
        // Session and batch; what came behind them is lost.
        let first = both(&scene, &Ledger::default(), 2);
        let yard = life(&first).await;
        let session = yard.engine.session("s");
        tokio::select! {
            _ = session.dispatch(vec![pay("1")]) => {}
            () = first.cut.notified() => {}
        }
        first.journal.close().unwrap();
        drop(yard);
        let unclean = "UPDATE epoch_rows SET boot_id = 'another', ended_ms = NULL, durability = 'process'";
        scene.sql().execute_batch(unclean).unwrap();

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
