//! Questions, answers and verdicts (JR-1).

use crate::scene::{Scene, engine, text};
use serde_json::json;
use toolyard::{
    AgentPath, Answer, ApprovalDesk, Call, CallId, CallPlace, Confirmations, Decision, Drain, Durable,
    ForkPolicy, Recorder, Recovered, SessionId, SubAgents, ToolContext, ToolOutput, ToolSpec, VerdictRecord,
    tool_fn,
};

/// JR-1: a question is in the file before it is shown, and an answer, with what it changes, before its call starts.
#[tokio::test]
async fn questions_and_answers_are_kept() {
    let scene = Scene::new();
    let desk = ApprovalDesk::default();
    let confirmations = Confirmations::default();
    let engine =
        engine(&scene.open()).confirmations(confirmations).approver(desk.clone()).build().await.unwrap();
    let session = engine.session("demo");
    let person = async {
        let shown = desk.next().await.unwrap();
        let asked = scene.turn(1).batches[0].calls[0].questions[0].clone();
        assert_eq!((asked.request, &asked.digest, asked.answer), (shown.id(), shown.digest(), None));
        let answer = Answer::edit("ada", "null").because("it is smaller");
        let _ = desk.answer(shown.id(), shown.digest(), answer).await;
        desk.answer(shown.id(), shown.digest(), Answer::allow("ada").because("it is small")).await
    };
    let (outcome, answered) = tokio::join!(session.call(Call::new("call_1", "save", "{}")), person);
    assert!(answered.is_ok() && outcome.status.is_ok());
    let turn = scene.turn(1);
    let call = &turn.batches[0].calls[0];
    let answer = call.questions[0].answer.as_ref().unwrap();
    assert_eq!((answer.decision, answer.who.as_deref()), (Decision::Allow, Some("ada")));
    assert_eq!((answer.reason.as_deref(), answer.digest), (Some("it is small"), call.questions[0].digest));
    assert_eq!(text(&call.state), "saved");
}

/// SM-10, JR-1: what a drain suspends is open afterwards, with its question; a verdict about it is kept, and one about a call
/// that nobody has left open is refused.
#[tokio::test]
async fn what_a_drain_suspends_is_open_afterwards() {
    let scene = Scene::new();
    let (journal, desk) = (scene.open(), ApprovalDesk::default());
    let confirmations = Confirmations::default();
    let engine = engine(&journal).confirmations(confirmations).approver(desk.clone()).build().await.unwrap();
    let call = Call::new("call_1", "save", "{}").idempotency_key("order-17");
    let session = engine.session("demo");
    let stops = async {
        desk.next().await.unwrap();
        engine.shutdown(Drain::default()).await;
    };
    let (outcome, ()) = tokio::join!(session.call(call), stops);
    assert_eq!(outcome.status.unwrap_err().suspended, Some(1));
    journal.close().unwrap();
    let open = scene.reader().open_turns().unwrap();
    assert_eq!((open.len(), open[0].turn, open[0].open_calls, open[0].epoch), (1, 1, 1, 1));
    let kept = scene.turn(1).batches[0].calls[0].clone();
    assert!(
        matches!(kept.state, toolyard_journal::CallState::NotStarted) && kept.questions[0].answer.is_none()
    );

    let next = scene.open();
    let (session, agent, call_id) = (SessionId::from("demo"), AgentPath::root(), CallId::from("call_1"));
    let output = ToolOutput::text("found");
    let verdict = |index| {
        let call = CallPlace::new(&session, &agent, 1, 1, index, &call_id);
        let Durable::When(given) = next.verdict(&VerdictRecord { call, found: Recovered::Done(&output) })
        else {
            panic!("a verdict is waited for")
        };
        given
    };
    verdict(0).await.unwrap();
    verdict(1).await.unwrap_err();
    let kept = scene.turn(1).batches[0].calls[0].verdict.clone();
    assert_eq!(kept, Some(toolyard_journal::Verdict::Done(output.clone())));
}

/// JR-1, JR-10: two epochs have left calls of equal names open, in turns of their own; a verdict is about one of them.
#[tokio::test]
async fn a_verdict_is_about_one_call() {
    let scene = Scene::new();
    for _ in 0..2 {
        let (journal, desk) = (scene.open(), ApprovalDesk::default());
        let asks = Confirmations::default();
        let engine = engine(&journal).confirmations(asks).approver(desk.clone()).build().await.unwrap();
        let stops = async {
            desk.next().await.unwrap();
            engine.shutdown(Drain::default()).await;
        };
        let session = engine.session("demo");
        tokio::join!(session.dispatch(vec![Call::new("call_1", "save", "{}")]), stops);
        journal.close().unwrap();
    }
    let open: Vec<_> = scene.reader().open_turns().unwrap().iter().map(|turn| turn.epoch).collect();
    assert_eq!(open, [1, 2]);

    let next = scene.open();
    let (session, agent, call_id) = (SessionId::from("demo"), AgentPath::root(), CallId::from("call_1"));
    let found_about = |turn, batch| {
        let call = CallPlace::new(&session, &agent, turn, batch, 0, &call_id);
        match next.verdict(&VerdictRecord { call, found: Recovered::NotDone }) {
            Durable::When(given) => given,
            Durable::Nothing => panic!("a verdict is waited for"),
        }
    };
    found_about(1, 1).await.unwrap();
    found_about(2, 2).await.unwrap();
    let refused = found_about(2, 1).await.unwrap_err().to_string();
    assert!(refused.starts_with("no earlier epoch"), "{refused}");
}

/// A call whose handler's agent has an open call is one open turn, not two.
#[tokio::test]
async fn what_a_handler_has_dispatched_is_no_turn_of_its_own() {
    let scene = Scene::new();
    let (journal, desk) = (scene.open(), ApprovalDesk::default());
    let delegate = tool_fn(ToolSpec::read("delegate").recursive(), |(): (), cx: ToolContext| async move {
        let agent = cx.fork(ForkPolicy::default())?;
        Ok(agent.dispatch(vec![Call::new("inner", "save", "{}")]).await[0].to_text())
    });
    let asks = Confirmations::default();
    let builder = engine(&journal).tool(delegate).confirmations(asks).approver(desk.clone());
    let engine = builder.build().await.unwrap();
    let session = engine.session("demo");
    let looks = async {
        desk.next().await.unwrap(); // about the inner call: both are in the file
        let open = scene.reader().open_turns().unwrap();
        assert_eq!(
            open.iter().map(|turn| (turn.agent.as_str(), turn.open_calls)).collect::<Vec<_>>(),
            [("root", 1)]
        );
        session.cancel();
    };
    tokio::join!(session.call(Call::new("call_1", "delegate", "{}")), looks);
}

/// SM-5, JR-8: a result that another life gives again says which arguments a person has changed it to.
#[tokio::test]
async fn a_result_is_given_again_with_what_was_changed() {
    let scene = Scene::new();
    let (journal, desk) = (scene.open(), ApprovalDesk::default());
    let first = engine(&journal).confirmations(Confirmations::default()).approver(desk.clone());
    let first = first.build().await.unwrap();
    let session = first.session("demo");
    let stops = async {
        let shown = desk.next().await.unwrap();
        desk.answer(shown.id(), shown.digest(), Answer::edit("ada", json!({"n": 1}))).await.unwrap();
        while matches!(scene.turn(1).batches[0].calls[0].state, toolyard_journal::CallState::NotStarted) {
            tokio::task::yield_now().await;
        }
        first.shutdown(Drain::default()).await;
    };
    let calls = vec![Call::new("call_1", "save", "{}"), Call::new("call_2", "save", "{}")];
    let (outcomes, ()) = tokio::join!(session.dispatch(calls), stops);
    assert_eq!((outcomes[0].edited(), outcomes[0].success()), (Some(&json!({"n": 1})), true));
    journal.close().unwrap();
    let journal = scene.open();
    let second = engine(&journal).build().await.unwrap();
    let resumed = second.session("demo").resume(1).await.unwrap().finish().await.concat();
    assert_eq!(resumed[0].edited(), Some(&json!({"n": 1})), "{resumed:?}");
    assert_eq!((resumed[1].edited(), resumed[1].success()), (None, true), "{resumed:?}");
}
