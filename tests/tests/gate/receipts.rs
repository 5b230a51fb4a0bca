//! SM-6: an answer counts when the engine has taken it, and its giver is told so then; ids of questions.

use super::{
    approvals::{asking, write},
    no_hang, questions,
};
use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, OnceLock},
};
use toolyard::{
    Answer, AnswerError, ApprovalDesk, ApprovalRequest, Approver, Confirmations, Engine, EventKind,
    PolicyRules, Receipt, Rule, async_trait,
};
use toolyard_tests::{Yard, call, shape, yard};

/// What happens at the very moment of the first answer.
#[derive(Clone, Copy)]
enum Meanwhile {
    Nothing,
    TheCallIsCancelled,
    ThePolicyChanges,
    TheEngineIsTold,
}

/// Answers at the same moment as something else happens, and keeps the receipts.
#[derive(Clone)]
struct Hasty {
    answer: Answer,
    meanwhile: Meanwhile,
    engine: Arc<OnceLock<Engine>>,
    asked: Arc<Mutex<usize>>,
    receipts: Arc<Mutex<Vec<Receipt>>>,
}

impl Hasty {
    fn new(answer: Answer, meanwhile: Meanwhile) -> Self {
        let (asked, receipts) = <(Arc<Mutex<usize>>, Arc<Mutex<Vec<Receipt>>>)>::default();
        Self { answer, meanwhile, engine: Arc::default(), asked, receipts }
    }

    async fn yard(&self) -> Yard {
        let confirm = Confirmations::default();
        let yard = yard(|builder, _| builder.confirmations(confirm).approver(self.clone())).await;
        assert!(self.engine.set(yard.engine.clone()).is_ok());
        yard
    }

    fn receipts(&self) -> Vec<Receipt> {
        self.receipts.lock().unwrap().clone()
    }
}

#[async_trait]
impl Approver for Hasty {
    async fn ask(&self, request: &ApprovalRequest) -> Answer {
        let engine = self.engine.get().unwrap();
        let is_first = {
            let mut asked = self.asked.lock().unwrap();
            *asked += 1;
            *asked == 1
        };
        match self.meanwhile {
            Meanwhile::TheCallIsCancelled if is_first => {
                assert!(engine.session("s").cancel_call(request.call_id().as_str()));
            }
            Meanwhile::ThePolicyChanges if is_first => {
                engine.set_policy(PolicyRules::new(Rule::allow()));
            }
            _ => {}
        }
        self.answer.clone()
    }

    fn receipt(&self, _: &ApprovalRequest, receipt: Receipt) {
        self.receipts.lock().unwrap().push(receipt);
        if let Meanwhile::TheEngineIsTold = self.meanwhile {
            // No lock is held: the engine can be used from here.
            self.engine.get().unwrap().session("s").cancel_call("a");
            panic!("on purpose");
        }
    }
}

/// SM-6: every answer gets exactly one receipt, which says whether it counts.
#[tokio::test(start_paused = true)]
async fn an_answer_counts_when_it_is_taken() {
    use Meanwhile as M;
    use Receipt as R;
    for (meanwhile, answer, expected, receipts) in [
        (M::Nothing, Answer::allow("ada"), "a ok", vec![R::Taken]),
        (M::Nothing, Answer::deny("ada"), "a user_denied", vec![R::Taken]),
        (M::TheCallIsCancelled, Answer::allow("ada"), "a cancelled", vec![R::Withdrawn]),
        (M::TheCallIsCancelled, Answer::deny("ada"), "a cancelled", vec![R::Withdrawn]),
        // It still holds for other calls.
        (M::TheCallIsCancelled, Answer::always("ada"), "a cancelled", vec![R::Taken]),
        (M::ThePolicyChanges, Answer::allow("ada"), "a ok", vec![R::Outdated, R::Taken]),
        (M::ThePolicyChanges, Answer::deny("ada"), "a user_denied", vec![R::Taken]),
    ] {
        let hasty = Hasty::new(answer, meanwhile);
        let yard = hasty.yard().await;
        let session = yard.engine.session("s");
        let outcomes = no_hang(session.dispatch(vec![call("a", "serial", 0, "ok")])).await;
        assert_eq!((shape(&outcomes).as_str(), hasty.receipts()), (expected, receipts));
        yard.events.check();
    }
}

/// SM-6: whoever gets a receipt may use the engine, and may panic.
#[tokio::test(start_paused = true)]
async fn a_receipt_is_given_without_a_lock() {
    for answer in [Answer::allow("ada"), Answer::always("ada"), Answer::deny("ada")] {
        let hasty = Hasty::new(answer.clone(), Meanwhile::TheEngineIsTold);
        let yard = hasty.yard().await;
        let outcomes = no_hang(yard.engine.session("s").dispatch(vec![call("a", "serial", 0, "ok")])).await;
        let expected = if !answer.allows() { "a user_denied" } else { "a cancelled" };
        assert_eq!((shape(&outcomes).as_str(), hasty.receipts()), (expected, vec![Receipt::Taken]));
        yard.events.check();
    }
}

/// SM-6: of two answers at once, the second waits for what becomes of the first; an answer for an old policy does not
/// count, and says so.
#[tokio::test(start_paused = true)]
async fn a_desk_says_what_counts() {
    let desk = ApprovalDesk::default();
    let yard = asking(&desk, Confirmations::default()).await;
    let session = yard.engine.session("s");
    let person = async {
        let [a] = questions(&desk).await;
        let (first, second) = tokio::join!(
            desk.answer(a.id(), a.digest(), Answer::allow("ada")),
            desk.answer(a.id(), a.digest(), Answer::deny("ada"))
        );
        assert_eq!((first, second), (Ok(()), Err(AnswerError::Answered(a.id()))));
        let called =
            yard.events.events().iter().any(|event| event.kind.name() == "tool.confirmation_resolved");
        assert!(called, "it was taken");
        let [b] = questions(&desk).await;
        // The answer and the change are there before the engine looks at either.
        let (answered, ()) = tokio::join!(desk.answer(b.id(), b.digest(), Answer::allow("ada")), async {
            yard.engine.set_policy(PolicyRules::new(Rule::allow()));
        });
        assert_eq!(answered, Err(AnswerError::Digest(b.id())));
        let [again] = questions(&desk).await;
        assert!(again.id() == b.id() && again.digest() != b.digest());
        let answered = tokio::join!(desk.answer(b.id(), again.digest(), Answer::allow("ada")), async {
            assert!(session.cancel_call("b"));
        });
        assert_eq!(answered.0, Err(AnswerError::Withdrawn(b.id())));
    };
    let batch =
        async { [session.call(write("a", "n", "1")).await, session.call(write("b", "n", "2")).await] };
    let (outcomes, ()) = no_hang(async { tokio::join!(batch, person) }).await;
    assert_eq!(shape(&outcomes), "a ok, b cancelled");
    yard.events.check();
}

/// SM-6: ids do not repeat, not even in another engine, and a request names the turn of its call, as its event does.
#[tokio::test(start_paused = true)]
async fn ids_never_repeat_and_requests_name_their_turn() {
    let mut ids = BTreeSet::new();
    for _ in 0..2 {
        let desk = ApprovalDesk::default();
        let yard = asking(&desk, Confirmations::default()).await;
        let session = yard.engine.session("s");
        for turn in 1..=3 {
            let asked = async {
                let questions = questions::<2>(&desk).await;
                for question in &questions {
                    assert!(ids.insert(question.id()) && question.turn() == turn);
                    desk.answer(question.id(), question.digest(), Answer::deny("ada")).await.unwrap();
                }
            };
            let batch = vec![write("a", "n", "1"), write("b", "n", "2")];
            no_hang(async { tokio::join!(session.dispatch(batch), asked) }).await;
        }
        let of_events = yard.events.events().into_iter().filter_map(|event| match event.kind {
            EventKind::ConfirmationRequested(it) => Some((it.request, event.turn)),
            _ => None,
        });
        let turns: Vec<_> = of_events
            .map(|(request, turn)| {
                assert!(ids.contains(&request));
                turn
            })
            .collect();
        assert_eq!(turns, [1, 1, 2, 2, 3, 3].map(Some));
    }
    assert_eq!(ids.len(), 12);
    assert_eq!(ids.iter().map(|id| id.epoch()).collect::<BTreeSet<_>>().len(), 2);
}
