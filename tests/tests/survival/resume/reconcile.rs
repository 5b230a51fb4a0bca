//! JR-6: tools are asked what became of their calls.

use super::{life_with, resume};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use toolyard::{
    Call, Dedupe, EngineBuilder, ErrorKind, Reconciled, Tool, ToolContext, ToolError, ToolFactory,
    ToolOutput, ToolSpec, async_trait,
};
use toolyard_tests::{Ledger, keyed, kinds};

/// A tool `pay` that takes a second, and knows what it is told to know.
#[derive(Clone)]
struct Pay {
    knows: Option<Reconciled>,
    asked: Arc<Mutex<Vec<String>>>,
    ran: Arc<Mutex<u32>>,
}

impl Pay {
    fn knowing(knows: Option<Reconciled>) -> Self {
        Self { knows, asked: Arc::default(), ran: Arc::default() }
    }

    fn in_engine(&self) -> impl FnOnce(EngineBuilder, &toolyard_tests::Log) -> EngineBuilder + use<> {
        let pay = self.clone();
        move |builder, _| builder.tool(pay)
    }
}

impl ToolFactory for Pay {
    fn spec(&self) -> ToolSpec {
        ToolSpec::network("pay").concurrent().timeout(Duration::from_secs(10))
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new(self.clone())
    }
}

#[async_trait]
impl Tool for Pay {
    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        *self.ran.lock() += 1;
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok("paid now".into())
    }

    async fn reconcile(&self, args: &Value, key: Option<&str>, cx: &ToolContext) -> Reconciled {
        self.asked.lock().push(format!("{args} {} {}", key.unwrap_or("-"), cx.call_id()));
        match &self.knows {
            Some(found) => found.clone(),
            None => panic!("it does not know"),
        }
    }
}

fn pay(id: &str) -> Call {
    keyed("k", Call::new(id, "pay", json!({"euros": 5})))
}

/// What an engine leaves that ends half a second after the start of a payment.
async fn left() -> Ledger {
    let ledger = Ledger::default();
    let yard = life_with(&ledger, Pay::knowing(None).in_engine()).await;
    let session = yard.engine.session("s");
    tokio::spawn(
        async move { session.dispatch(vec![pay("a"), Call::new("b", "read", json!({"ms": 1}))]).await },
    );
    tokio::time::sleep(Duration::from_millis(500)).await;
    ledger.crashed()
}

/// A call that had done its work has its result, and its key too; what is behind it runs.
#[tokio::test(start_paused = true)]
async fn what_has_done_its_work_is_completed() {
    let left = left().await;
    let tool = Pay::knowing(Some(Reconciled::Done("paid before".into())));
    let yard = life_with(&left, tool.in_engine()).await;
    let outcomes = resume(&yard.engine).await;
    assert_eq!(kinds(&outcomes), [None, None]);
    assert_eq!((outcomes[0].to_text(), outcomes[0].dedupe), ("paid before".to_owned(), Dedupe::Reconciled));
    assert_eq!(*tool.asked.lock(), [r#"{"euros":5} k a"#]);
    let again = yard.engine.session("s").call(pay("c")).await;
    assert_eq!((again.to_text(), again.dedupe), ("paid before".to_owned(), Dedupe::Replayed));
    assert_eq!(*tool.ran.lock(), 0);
    yard.events.check();
}

/// A call that has done nothing runs; one that might still be under way is interrupted, unless its tool is certain.
#[tokio::test(start_paused = true)]
async fn what_has_done_nothing_runs_once_it_is_certain() {
    let interrupted = Some(ErrorKind::Interrupted);
    for (is_final, waits, expected) in [(false, 0, interrupted), (false, 10, None), (true, 0, None)] {
        let left = left().await;
        tokio::time::sleep(Duration::from_secs(waits)).await;
        let tool = Pay::knowing(Some(Reconciled::NotDone { is_final }));
        let yard = life_with(&left, tool.in_engine()).await;
        let outcomes = resume(&yard.engine).await;
        assert_eq!(kinds(&outcomes)[0], expected, "{is_final} {waits}");
        assert_eq!(*tool.ran.lock(), u32::from(expected.is_none()));
    }
}

/// A panic, and no knowledge, are the same; nobody is asked more than three times.
#[tokio::test(start_paused = true)]
async fn nobody_is_asked_for_ever() {
    let mut left = left().await;
    let tool = Pay::knowing(None);
    for life in 1..=4 {
        let yard = life_with(&left, tool.in_engine()).await;
        // The engine's life ends before it is recorded that the turn is taken up: all but the verdict is lost.
        let before = left.len();
        let resumed = yard.engine.session("s").resume(1).await;
        assert!(resumed.is_ok());
        assert_eq!(tool.asked.lock().len(), life.min(3));
        let verdicts = usize::from(life <= 3);
        // The session, the verdict.
        left = left.cut(before + 1 + verdicts);
    }
}

/// PO-7: a result that a tool finds has no secret in it, like any other.
#[tokio::test(start_paused = true)]
async fn a_result_that_is_found_is_redacted() {
    let left = left().await;
    let pay = Pay::knowing(Some(Reconciled::Done("paid with hunter2-hunter2".into())));
    let redactor = toolyard::Redactor::new().with_secret("hunter2-hunter2").unwrap();
    let yard = life_with(&left, |builder, log| pay.in_engine()(builder, log).redact(redactor)).await;
    let outcomes = resume(&yard.engine).await;
    assert_eq!(outcomes[0].to_text(), "paid with [redacted]");
}
