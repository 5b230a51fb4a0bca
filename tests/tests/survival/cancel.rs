//! Cancelling a single call, and all calls of a session.

use super::{SECOND, no_hang};
use std::{future::pending, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep};
use toolyard::{
    Answer, Call, Confirmations, Drain, Effect, ErrorKind, Session, SessionId, Tool, ToolClass, ToolContext,
    ToolError, ToolOutput, ToolSpec, async_trait, from_fn,
};
use toolyard_tests::{call, scripted, shape, yard};

/// Dispatches calls and, a second later, runs `then` beside them.
async fn beside(session: &Session, calls: Vec<Call>, then: impl FnOnce(&Session)) -> Vec<toolyard::Outcome> {
    let aside = async {
        sleep(SECOND).await;
        then(session);
    };
    no_hang(async { tokio::join!(session.dispatch(calls), aside).0 }).await
}

/// SC-1, SC-4: cancelling one call reaches it and no sibling, whether it runs or waits.
#[tokio::test(start_paused = true)]
async fn one_call_is_cancelled_and_its_siblings_continue() {
    let yard = yard(|builder, _| builder).await;
    yard.engine.resize(ToolClass::Read, 2).await.unwrap();
    let session = yard.engine.session("s");
    let calls =
        vec![call("a", "read", 0, "polite"), call("b", "read", 5000, "ok"), call("c", "read", 0, "ok")];
    let from = Instant::now();
    let outcomes = beside(&session, calls, |session| {
        assert!(session.cancel_call("c"), "it waits");
        assert!(session.cancel_call("a"), "it runs");
        assert!(!session.cancel_call("c"), "it has ended");
        assert!(!session.cancel_call("never"));
    })
    .await;
    assert_eq!(shape(&outcomes), "a cancelled, b ok, c cancelled");
    assert_eq!(outcomes[2].error().unwrap().effect, Effect::NotStarted);
    assert_eq!(yard.log.spans(), ["a 0..1000", "b 0..5000"]);
    assert_eq!(from.elapsed(), 5 * SECOND);
    yard.events.check();
}

/// SC-4: cancelling one call withdraws its question and leaves the others open.
#[tokio::test(start_paused = true)]
async fn a_question_about_one_call_is_withdrawn() {
    struct Late;
    #[async_trait]
    impl toolyard::Approver for Late {
        async fn ask(&self, _: &toolyard::ApprovalRequest) -> Answer {
            sleep(10 * SECOND).await;
            Answer::allow("ada")
        }
    }
    let yard = yard(|builder, _| builder.approver(Late).confirmations(Confirmations::default())).await;
    let session = yard.engine.session("s");
    let calls = vec![call("a", "concurrent", 0, "ok"), call("b", "concurrent", 0, "ok")];
    let outcomes = beside(&session, calls, |session| assert!(session.cancel_call("a"))).await;
    assert_eq!(shape(&outcomes), "a cancelled, b ok");
    yard.events.check();
}

/// SC-1: cancelling a call also cancels its nested calls.
#[tokio::test(start_paused = true)]
async fn nested_calls_are_cancelled_with_their_parent() {
    struct Nests;
    #[async_trait]
    impl Tool for Nests {
        async fn execute(&self, _: &serde_json::Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
            let outcomes = cx.dispatch(vec![call("inner", "read", 0, "polite")]).await;
            Ok(shape(&outcomes).into())
        }
    }
    let yard = yard(|builder, _| builder.tool(from_fn(ToolSpec::read("nests"), || Nests))).await;
    let session = yard.engine.session("s");
    let calls = vec![call("a", "nests", 0, ""), call("b", "read", 3000, "ok")];
    let outcomes = beside(&session, calls, |session| assert!(session.cancel_call("a"))).await;
    assert_eq!(shape(&outcomes), "a ok, b ok");
    assert!(outcomes[0].cancel_requested, "it returned within its grace (SC-5)");
    assert_eq!(outcomes[0].to_text(), "inner cancelled");
    yard.events.check();
}

/// SC-5: the cancel of a call shows in its token, in `is_cancelled` and in `Tool::cancel`, also if the handler looks
/// later.
#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_notified_in_every_way() {
    #[derive(Default)]
    struct Listens(tokio::sync::Notify);
    #[async_trait]
    impl Tool for Listens {
        async fn execute(&self, args: &serde_json::Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
            match args["way"].as_str().unwrap() {
                "token" => cx.cancel_token().cancelled().await,
                "late token" => {
                    sleep(2 * SECOND).await;
                    cx.cancel_token().cancelled().await;
                }
                "flag" => {
                    while !cx.is_cancelled() {
                        sleep(Duration::from_millis(100)).await;
                    }
                }
                "tool" => self.0.notified().await,
                _ => pending().await,
            }
            Err(ToolError::cancelled("stopped"))
        }

        async fn cancel(&self) -> bool {
            self.0.notify_one();
            true
        }
    }
    let yard = yard(|builder, _| builder.tool(from_fn(ToolSpec::read("listens"), Listens::default))).await;
    let session = yard.engine.session("s");
    for way in ["token", "late token", "flag", "tool", "deaf"] {
        let calls =
            vec![Call::new("a", "listens", serde_json::json!({"way": way})), call("b", "read", 1, "ok")];
        let from = Instant::now();
        let outcomes = beside(&session, calls, |session| assert!(session.cancel_call("a"))).await;
        assert_eq!(shape(&outcomes), "a cancelled, b ok", "{way}");
        assert_eq!(from.elapsed() > 30 * SECOND, way == "deaf", "{way}");
    }
    yard.events.check();
}

/// SC-1: all calls in flight of a session are cancelled, including those of its forks; the session and others go on.
#[tokio::test(start_paused = true)]
async fn cancel_calls_leaves_the_session_open() {
    let yard = yard(|builder, log| builder.tool(scripted(ToolSpec::network("slow").concurrent(), log))).await;
    let (session, other) = (yard.engine.session("s"), yard.engine.session("other"));
    let fork = session.fork(toolyard::ForkPolicy::default()).unwrap();
    let engine = yard.engine.clone();
    let aside = async {
        sleep(SECOND).await;
        assert_eq!(engine.cancel_session_tools(&SessionId::from("s")), 3);
        assert_eq!(engine.cancel_session_tools(&SessionId::from("nobody")), 0);
    };
    let (a, b, c, ()) = no_hang(async {
        tokio::join!(
            session.dispatch(vec![call("a", "slow", 0, "polite"), call("z", "serial", 0, "ok")]),
            fork.dispatch(vec![call("b", "slow", 0, "polite")]),
            other.dispatch(vec![call("c", "slow", 4000, "ok")]),
            aside
        )
    })
    .await;
    assert_eq!(shape(&a), "a cancelled, z cancelled");
    assert_eq!((shape(&b), shape(&c)), ("b cancelled".to_owned(), "c ok".to_owned()));
    let outcome = no_hang(session.call(call("d", "serial", 0, "ok"))).await;
    assert!(outcome.success());
    yard.engine.shutdown(Drain::default()).await;
    yard.events.check();
}

/// SC-4: a turn cancels its own call and not one with the same id in another turn.
#[tokio::test(start_paused = true)]
async fn a_turn_cancels_its_own_call() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let (one, two) = (Arc::new(session.turn()), session.turn());
    let aside = async {
        sleep(SECOND).await;
        assert!(one.cancel_call("a"));
        assert!(!one.cancel_call("b"));
    };
    let calls = || vec![call("a", "read", 2000, "ok")];
    let (first, second, ()) =
        no_hang(async { tokio::join!(one.dispatch(calls()), two.dispatch(calls()), aside) }).await;
    assert_eq!((shape(&first), shape(&second)), ("a ok".to_owned(), "a ok".to_owned()));
    assert!(first[0].cancel_requested && !second[0].cancel_requested);
    assert_eq!(first[0].error().map(|error| error.kind), None::<ErrorKind>);
    yard.events.check();
}

/// SC-7: if several things happen in one instant, the handler's own end wins over a cancel and over its timeout.
#[tokio::test(start_paused = true)]
async fn a_call_done_at_the_instant_of_its_cancel_is_done() {
    let yard = yard(|builder, _| builder).await;
    let session = yard.engine.session("s");
    let calls = vec![call("a", "read", 1000, "ok"), call("b", "read", 1000, "ok").timeout(SECOND)];
    let outcomes = beside(&session, calls, |session| {
        let _ = session.cancel_call("a");
    })
    .await;
    assert_eq!(shape(&outcomes), "a ok, b ok");
    yard.events.check();
}

/// Blocking threads of which one is free at once and the others after two seconds.
#[derive(Default)]
struct OneFree(std::sync::atomic::AtomicBool);

impl toolyard::Blocking for OneFree {
    fn spawn(&self, job: futures::future::BoxFuture<'static, ()>) {
        let is_busy = self.0.swap(true, std::sync::atomic::Ordering::Relaxed);
        tokio::spawn(async move {
            if is_busy {
                sleep(2 * SECOND).await;
            }
            job.await;
        });
    }
}

/// RT-11, V5: an attempt that no thread had taken up when its call was cancelled did not start: a call without
/// another attempt costs nothing, and one with an earlier attempt reports that one.
#[tokio::test(start_paused = true)]
async fn a_job_no_thread_picked_up_did_not_start() {
    let yard = yard(|builder, log| {
        builder
            .blocking(Arc::new(OneFree::default()))
            .tool(scripted(ToolSpec::read("slow").blocking(), log))
            .budgets(toolyard::Budgets::default().session(toolyard::Budget::calls(2)))
    })
    .await;
    let session = yard.engine.session("s");
    let calls = vec![toolyard_tests::tries("a", "slow", 0, &["transient", "ok"]), call("b", "slow", 0, "ok")];
    let outcomes = beside(&session, calls, |session| assert_eq!(session.cancel_calls(), 2)).await;
    assert_eq!(shape(&outcomes), "a cancelled, b cancelled");
    let errors: Vec<_> = outcomes.iter().map(|outcome| outcome.error().unwrap()).collect();
    assert_eq!((errors[0].attempts, errors[0].effect), (1, Effect::Failed));
    assert_eq!(errors[0].last_error.as_ref().unwrap().kind, ErrorKind::Transient);
    assert_eq!((errors[1].attempts, errors[1].effect), (0, Effect::NotStarted));
    assert_eq!(yard.log.started(), ["a"]);
    assert_eq!(session.budget_left(), toolyard::Budget::calls(1));
    yard.events.check();
}
