//! ID-3: which calls share a question, and what becomes of it.

use super::{
    approvals::{account, asking, write},
    no_hang, questions,
};
use std::time::Duration;
use toolyard::{Answer, ApprovalDesk, Confirmations};
use toolyard_tests::{keyed, shape};

/// ID-3: calls of equal key and digest that wait share one question and its answer, whatever it is; a call with another
/// key or other arguments has its own.
#[tokio::test(start_paused = true)]
async fn equal_calls_share_one_question() {
    for (answer, expected) in [
        (Answer::allow("ada"), "a ok, b ok, c user_denied, d user_denied"),
        (Answer::deny("ada"), "a user_denied, b user_denied, c user_denied, d user_denied"),
    ] {
        let desk = ApprovalDesk::default();
        let yard = asking(&desk, Confirmations::default()).await;
        let session = yard.engine.session("s");
        let answer = &answer;
        let person = async {
            let [a, c, d] = questions(&desk).await;
            assert_eq!([a.call_id().as_str(), c.call_id().as_str(), d.call_id().as_str()], ["a", "c", "d"]);
            tokio::time::sleep(Duration::from_secs(1)).await;
            assert_eq!(desk.pending().len(), 3);
            desk.answer(a.id(), a.digest(), answer.clone()).await.unwrap();
            for other in [c, d] {
                desk.answer(other.id(), other.digest(), Answer::deny("ada")).await.unwrap();
            }
        };
        let batch = vec![
            keyed("k", write("a", "notes", "1")),
            keyed("k", write("b", "notes", "1")),
            keyed("other", write("c", "notes", "1")),
            keyed("k", write("d", "notes", "2")),
        ];
        let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
        assert_eq!(shape(&outcomes), expected);
        if answer.allows() {
            let account = account(&yard);
            assert!(account.contains(&"b yes by shared".to_owned()), "{account:?}");
        }
        yard.events.check();
    }
}

/// ID-3, SC-4: when the call that is asked about is cancelled, the oldest call that shares its question is asked about;
/// an expired question has expired for all that share it.
#[tokio::test(start_paused = true)]
async fn a_shared_question_outlives_its_first_call() {
    let desk = ApprovalDesk::default();
    let yard = asking(&desk, Confirmations::default()).await;
    let session = yard.engine.session("s");
    let person = async {
        let [a] = questions(&desk).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(session.cancel_call("a"));
        let [b] = questions(&desk).await;
        assert_eq!((a.call_id().as_str(), b.call_id().as_str()), ("a", "b"));
        desk.answer(b.id(), b.digest(), Answer::allow("ada")).await.unwrap();
    };
    let equal = || ["a", "b", "c"].map(|id| keyed("k", write(id, "notes", "1"))).to_vec();
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(equal()), person) }).await;
    assert_eq!(shape(&outcomes), "a cancelled, b ok, c ok");
    assert!(account(&yard).contains(&"c yes by shared".to_owned()), "{:?}", account(&yard));

    let other = yard.engine.session("other");
    let outcomes = no_hang(other.dispatch(equal())).await;
    let expired = "a confirmation_timeout, b confirmation_timeout, c confirmation_timeout";
    assert_eq!(shape(&outcomes), expired);
    yard.events.check();
}

/// PO-4, ID-3: after a change of the policy, an answer to the old question settles none of those that share it.
#[tokio::test(start_paused = true)]
async fn a_shared_question_is_asked_anew_under_a_new_policy() {
    let desk = ApprovalDesk::default();
    let yard = asking(&desk, Confirmations::default()).await;
    let session = yard.engine.session("s");
    let person = async {
        let [a] = questions(&desk).await;
        yard.engine.set_policy(toolyard::PolicyRules::new(toolyard::Rule::allow()));
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(
            desk.answer(a.id(), a.digest(), Answer::allow("ada")).await,
            Err(toolyard::AnswerError::Digest(a.id()))
        );
        let [renewed] = questions(&desk).await;
        assert_ne!(renewed.digest(), a.digest());
        desk.answer(renewed.id(), renewed.digest(), Answer::allow("ada")).await.unwrap();
    };
    let batch = ["a", "b"].map(|id| keyed("k", write(id, "notes", "1"))).to_vec();
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
    assert_eq!(shape(&outcomes), "a ok, b ok");
    yard.events.check();
}
