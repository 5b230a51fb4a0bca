//! PO-4, T13: an answer binds to one question, and the first answer counts.

use super::{no_hang, questions};
use serde_json::Value;
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::{runtime::Builder, time::timeout};
use toolyard::{
    Answer, AnswerError, ApprovalDesk, ApprovalRequest, Call, CallDigest, Confirmations, Drain, ErrorKind,
    RequestId, SessionId, Tool, ToolContext, ToolError, ToolOutput, ToolSpec, async_trait, from_fn,
};
use toolyard_tests::{Yard, call, shape, yard};

async fn asking(desk: &ApprovalDesk) -> Yard {
    yard(|builder, _| builder.confirmations(Confirmations::default()).approver(desk.clone())).await
}

/// T13: while a question is open, no permit is in use; an answer with another digest, to an answered or to an unknown
/// id is refused and changes nothing; the first of two answers counts.
#[tokio::test(start_paused = true)]
async fn t13_an_answer_binds_its_question() {
    let desk = ApprovalDesk::default();
    let yard = asking(&desk).await;
    let session = yard.engine.session("s");
    let person = async {
        let [a, b] = questions(&desk).await;
        let status = yard.engine.status().await.unwrap();
        assert!(status.pools.iter().all(|pool| pool.running == 0 && pool.queued == 0), "{status:?}");
        assert_eq!(
            desk.answer(a.id(), b.digest(), Answer::allow("ada")).await,
            Err(AnswerError::Digest(a.id()))
        );
        let forged = CallDigest::of_text("serial", "{}", &SessionId::from("s"));
        assert_eq!(
            desk.answer(a.id(), &forged, Answer::allow("ada")).await,
            Err(AnswerError::Digest(a.id()))
        );
        assert_eq!(desk.pending().len(), 2);
        let nobody = RequestId::new(a.id().epoch(), 77, 0);
        assert_eq!(
            desk.answer(nobody, a.digest(), Answer::allow("ada")).await,
            Err(AnswerError::Unknown(nobody))
        );
        desk.answer(a.id(), a.digest(), Answer::deny("ada")).await.unwrap();
        assert_eq!(
            desk.answer(a.id(), a.digest(), Answer::allow("ada")).await,
            Err(AnswerError::Answered(a.id()))
        );
        desk.answer(b.id(), b.digest(), Answer::allow("ada")).await.unwrap();
    };
    let batch = vec![call("a", "concurrent", 0, "ok"), call("b", "concurrent", 1, "ok")];
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
    assert_eq!(shape(&outcomes), "a user_denied, b ok");
    assert_eq!(yard.log.started(), ["b"]);
    yard.events.check();
}

/// T13: a question without an answer ends in `confirmation_timeout`; an answer after that is refused.
#[tokio::test(start_paused = true)]
async fn t13_an_expired_question_takes_no_answer() {
    let desk = ApprovalDesk::default();
    let yard = asking(&desk).await;
    let session = yard.engine.session("s");
    let (outcomes, question) =
        no_hang(async { tokio::join!(session.dispatch(vec![call("a", "serial", 0, "ok")]), desk.next()) })
            .await;
    assert_eq!(shape(&outcomes), "a confirmation_timeout");
    let question = question.unwrap();
    let id = question.id();
    assert_eq!(
        desk.answer(id, question.digest(), Answer::allow("ada")).await,
        Err(AnswerError::Withdrawn(id))
    );
    assert_eq!((desk.pending().len(), yard.log.started().len()), (0, 0));
    yard.events.check();
}

/// PO-4: the time of a question counts from when it is shown; a held question waits for that, at most a day.
#[tokio::test(start_paused = true)]
async fn time_counts_from_when_a_question_is_shown() {
    let desk = ApprovalDesk::default();
    let yard = asking(&desk).await;
    let session = yard.engine.session("s");
    let from = tokio::time::Instant::now();
    let person = async {
        let [a, b, c] = questions(&desk).await;
        [&a, &b, &c].into_iter().for_each(|question| question.showing().hold());
        a.showing().shown();
        tokio::time::sleep(Duration::from_secs(299)).await;
        desk.answer(a.id(), a.digest(), Answer::allow("ada")).await.unwrap();
        b.showing().shown();
        tokio::time::sleep(Duration::from_secs(200)).await;
        b.showing().shown(); // showing it again gives no more time
        b.showing().hold();
    };
    let batch = ["a", "b", "c"].map(|id| call(id, "concurrent", 0, "ok")).to_vec();
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
    assert_eq!(shape(&outcomes), "a ok, b confirmation_timeout, c confirmation_timeout");
    assert_eq!(from.elapsed(), toolyard::Showing::HELD_MAX);
    yard.events.check();
}

/// CC-5, PO-4: fifty questions at once, answered in another order: every call gets its own answer, and reads of other
/// sessions are not slowed down.
#[tokio::test(start_paused = true)]
async fn fifty_questions_are_answered_in_any_order() {
    let desk = ApprovalDesk::default();
    let yard = asking(&desk).await;
    let (session, other) = (yard.engine.session("s"), yard.engine.session("other"));
    let batch: Vec<_> = (0..50).map(|at| call(&format!("w{at:02}"), "concurrent", at, "ok")).collect();
    let person = async {
        let mut open = questions::<50>(&desk).await.to_vec();
        let mut at = 7_usize;
        while !open.is_empty() {
            at = (at * 31 + 11) % open.len();
            let question = open.swap_remove(at);
            let number: usize = question.call_id().as_str()[1..].parse().unwrap();
            let answer = if number.is_multiple_of(3) { Answer::deny("ada") } else { Answer::allow("ada") };
            tokio::time::sleep(Duration::from_millis(10)).await;
            desk.answer(question.id(), question.digest(), answer).await.unwrap();
        }
    };
    let reads = async {
        let from = tokio::time::Instant::now();
        for round in 0..20 {
            let batch =
                (0..20).map(|at| call(&format!("r{round}-{at}"), "read", 10, "ok")).collect::<Vec<_>>();
            assert!(other.dispatch(batch).await.iter().all(toolyard::Outcome::success));
        }
        from.elapsed()
    };
    let (outcomes, (), took) = no_hang(async { tokio::join!(session.dispatch(batch), person, reads) }).await;
    assert_eq!(took, Duration::from_millis(200), "twenty rounds of 10 ms");
    for (at, outcome) in outcomes.iter().enumerate() {
        assert_eq!(outcome.success(), !at.is_multiple_of(3), "{}", outcome.call_id);
    }
    yard.events.check();
}

/// V1, PO-4: a tool is made for a call only once the call has been allowed: not for the question or its preview, and
/// never for a call that is denied, cancelled or refused.
#[tokio::test(start_paused = true)]
async fn a_tool_is_made_only_after_the_answer() {
    struct Idle;
    #[async_trait]
    impl Tool for Idle {
        async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
            Ok("done".into())
        }
    }
    let (desk, made) = (ApprovalDesk::default(), Arc::new(Mutex::new(0)));
    let count = made.clone();
    let yard = yard(|builder, _| {
        let make = move || {
            *count.lock().unwrap() += 1;
            Idle
        };
        let tool = from_fn(ToolSpec::write("idle").concurrent(), make);
        builder.tool(tool).confirmations(Confirmations::default()).approver(desk.clone())
    })
    .await;
    let made_so_far = || *made.lock().unwrap();
    let before = made_so_far();
    let session = yard.engine.session("s");
    let person = async {
        let [yes, no, _gone] = questions(&desk).await;
        assert_eq!(made_so_far(), before, "three questions are open");
        desk.answer(no.id(), no.digest(), Answer::deny("ada")).await.unwrap();
        assert!(session.cancel_call("c"));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(made_so_far(), before);
        desk.answer(yes.id(), yes.digest(), Answer::allow("ada")).await.unwrap();
    };
    let of = |id: &str, args: &str| Call::new(id, "idle", args);
    let batch = vec![of("a", r#"{"n":1}"#), of("b", r#"{"n":2}"#), of("c", r#"{"n":3}"#), of("d", "{")];
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
    assert_eq!(shape(&outcomes), "a ok, b user_denied, c cancelled, d invalid_input");
    assert_eq!(made_so_far(), before + 1);
    yard.events.check();
}

/// PO-4, SC-8: the last event of an engine is that it has stopped. Then its desk is closed: questions that were open
/// are withdrawn, answers that came at the last moment cause no event, and nobody is asked any more.
#[test]
fn a_closed_desk_causes_no_event() {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    for round in 0..200 {
        let ends = async {
            let desk = ApprovalDesk::default();
            let yard = asking(&desk).await;
            let session = yard.engine.session("s");
            let batch: Vec<_> = (0..8).map(|n| call(&format!("c{n}"), "concurrent", 0, "ok")).collect();
            let person = desk.clone();
            let (begun, begin) = tokio::sync::oneshot::channel();
            let answers = tokio::spawn(async move {
                let questions = questions::<8>(&person).await;
                let _ = begun.send(());
                let answer = async |question: ApprovalRequest| {
                    person.answer(question.id(), question.digest(), Answer::allow("ada")).await
                };
                futures::future::join_all(questions.map(answer)).await
            });
            let engine = yard.engine.clone();
            let shutdown = async move {
                begin.await.unwrap();
                engine.shutdown(Drain::default()).await
            };
            let (outcomes, answers, _) = tokio::join!(session.dispatch(batch), answers, shutdown);
            let ended = yard.events.events().len();
            for (outcome, answer) in outcomes.iter().zip(answers.unwrap()) {
                let error = outcome.error().map(|error| error.kind);
                assert!(
                    answer.is_ok() || error == Some(ErrorKind::ShuttingDown),
                    "{round}: {answer:?} {error:?}"
                );
            }
            assert!(desk.next().await.is_none() && desk.pending().is_empty(), "{round}");
            for session in [session.clone(), yard.engine.session("late")] {
                let late = session.call(call("late", "concurrent", 0, "ok")).await;
                assert_eq!(shape(&[late]), "late shutting_down");
            }
            assert!(desk.next().await.is_none() && desk.pending().is_empty(), "{round}");
            let late = yard.events.events().split_off(ended);
            let names: Vec<_> = late.iter().map(|event| event.kind.name()).collect();
            assert!(names.iter().all(|name| !name.starts_with("tool.confirmation")), "{round}: {names:?}");
            let of_before =
                |event: &&toolyard::Event| event.call_id.as_ref().is_some_and(|id| id.as_str() != "late");
            assert_eq!(late.iter().filter(of_before).count(), 0, "{round}: {names:?}");
            yard.events.check();
        };
        runtime.block_on(async { timeout(Duration::from_secs(60), ends).await.expect("timed out") });
    }
}

/// KT-5: the desk is a stream of its questions; each is taken once, whichever clone takes it and whether one that waits is
/// still polled, and the stream ends with the engine.
#[tokio::test(start_paused = true)]
async fn the_desk_is_a_stream_of_questions() {
    use futures::{FutureExt as _, StreamExt};
    let desk = ApprovalDesk::default();
    let yard = asking(&desk).await;
    let session = yard.engine.session("s");
    let mut idle = desk.clone();
    assert!(StreamExt::next(&mut idle).now_or_never().is_none()); // it waits, and is not polled again
    let mut stream = desk.clone();
    let person = async {
        let mut tools = Vec::new();
        for _ in 0..2 {
            let question = StreamExt::next(&mut stream).await.unwrap();
            tools.push(question.call_id().to_string());
            desk.answer(question.id(), question.digest(), Answer::allow("ada")).await.unwrap();
        }
        tools
    };
    let batch = vec![call("a", "concurrent", 0, "ok"), call("b", "concurrent", 1, "ok")];
    let (outcomes, asked) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
    assert_eq!((shape(&outcomes).as_str(), asked), ("a ok, b ok", vec!["a".to_owned(), "b".to_owned()]));
    let (rest, _) = no_hang(async {
        tokio::join!(
            stream.map(|question| question.id()).collect::<Vec<_>>(),
            yard.engine.shutdown(Drain::default())
        )
    })
    .await;
    assert_eq!(rest, []);
    assert!(StreamExt::next(&mut idle).await.is_none());
}
