//! Cancels of turns of an earlier life that are about to be taken up (HT-13, SC-4).

use crate::{
    restarts::{result, save, text},
    yard::{CALLER, Yard, call},
};
use async_trait::async_trait;
use reqwest::Method;
use serde_json::{Value, json};
use std::sync::{Arc, atomic::Ordering};
use tokio::sync::Semaphore;
use toolyard::{
    ConfirmationMode, Confirmations, Reconciled, Tool, ToolContext, ToolError, ToolFactory, ToolOutput,
    ToolSpec,
};
use toolyard_tests::Ledger;

/// How many turns are taken up at once.
const AT_ONCE: usize = 16;

/// A tool whose calls end when they are cancelled, and which takes its time to say what became of one.
#[derive(Clone)]
struct Pay {
    started: Arc<Semaphore>,
    tells: Arc<Semaphore>,
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
    async fn execute(&self, _: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.started.add_permits(1);
        cx.cancelled().await;
        Err(ToolError::cancelled("nobody waits for it"))
    }

    async fn reconcile(&self, _: &Value, _: Option<&str>, _: &ToolContext) -> Reconciled {
        self.tells.acquire().await.expect("it is never closed").forget();
        Reconciled::Unknown
    }
}

/// HT-13, SC-4: a turn that is taken up because somebody cancels it, or one of its calls, before its time has come, is cancelled
/// before anything of it starts.
#[tokio::test]
async fn nothing_starts_of_what_is_taken_up_to_be_cancelled() {
    let (ledger, pay) =
        (Ledger::default(), Pay { started: Semaphore::new(0).into(), tells: Semaphore::new(0).into() });
    let over = async |ledger: &Ledger, confirmations: Confirmations| {
        let (ledger, pay) = (ledger.clone(), pay.clone());
        Yard::over(
            |builder| builder.recorder(ledger).tool(pay),
            |options| options.confirmations(confirmations),
        )
        .await
    };
    let yard = over(&ledger, Confirmations::default().tool("pay", ConfirmationMode::Auto)).await;
    for session in ["a", "b", "c"] {
        yard.session(session).await;
    }
    for _ in 0..AT_ONCE {
        yard.turn("a", json!([call("1", "pay", json!({}))])).await;
    }
    pay.started.acquire().await.unwrap().forget();
    for session in ["b", "c"] {
        yard.turn(session, json!([save("1", "x"), save("2", "y")])).await;
    }

    // Nobody is asked in this life: what is taken up runs at once. The first ones are not there yet.
    let next = over(&ledger.crashed(), Confirmations::auto()).await;
    let recovered = next.server.recover().unwrap();
    assert_eq!(recovered.turns, AT_ONCE + 2);
    for path in ["/sessions/b/turns/1/cancel", "/sessions/c/turns/1/calls/0/cancel"] {
        next.sent(next.request(CALLER, Method::POST, path)).await.with(202);
    }
    let ended = next.ended("b", 1).await;
    for at in 0..2 {
        assert_eq!(result(&ended, at)["error"]["code"], "cancelled", "{ended}");
    }
    let ended = next.ended("c", 1).await;
    assert_eq!(result(&ended, 0)["error"]["code"], "cancelled", "{ended}");
    assert_eq!((text(&ended, 1), next.saved.load(Ordering::Relaxed)), ("saved y", 1));
    let first = next.get(CALLER, "/turns?session=a").await.with(200);
    assert_eq!(first["turns"], json!([]), "none of them is taken up yet");
    pay.tells.add_permits(AT_ONCE);
    assert_eq!(recovered.settled().await, Vec::<String>::new());
    next.delete(CALLER, "/sessions/a").await.with(202);
    next.close().await;
}
