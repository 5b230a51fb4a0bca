//! A question is shown, and an answer counts, when it is durable (SM-4).

use super::*;

/// Answers after a second, and notes when it was asked and what became of its answers.
#[derive(Clone)]
struct Asked {
    began: Instant,
    at: Arc<Mutex<Vec<u64>>>,
    receipts: Arc<Mutex<Vec<(Receipt, u64)>>>,
}

#[async_trait]
impl Approver for Asked {
    async fn ask(&self, _: &ApprovalRequest) -> Answer {
        self.at.lock().unwrap().push(self.began.elapsed().as_secs());
        sleep(SECOND).await;
        Answer::allow("ada")
    }

    fn receipt(&self, _: &ApprovalRequest, receipt: Receipt) {
        self.receipts.lock().unwrap().push((receipt, self.began.elapsed().as_secs()));
    }
}

async fn asking(recorder: &MemoryRecorder) -> (Yard, Asked) {
    let asked = Asked { began: Instant::now(), at: Arc::default(), receipts: Arc::default() };
    let (recorder, approver) = (recorder.clone(), asked.clone());
    let confirm = Confirmations::auto().tool("serial", ConfirmationMode::Prompt);
    let yard = yard(|builder, _| builder.recorder(recorder).confirmations(confirm).approver(approver)).await;
    (yard, asked)
}

/// SM-4: a question is shown, to the approver and in its event, when it is durable; an answer counts when that is.
#[tokio::test(start_paused = true)]
async fn a_question_is_shown_and_an_answer_counts_when_it_is_durable() {
    let recorder = slow([("question", after(2)), ("answer", after(4))]);
    let (yard, asked) = asking(&recorder).await;
    let outcome = no_hang(yard.engine.session("s").call(call("a", "serial", 0, "ok"))).await;
    assert!(outcome.success());
    assert_eq!(*asked.at.lock().unwrap(), [2]);
    assert_eq!(*asked.receipts.lock().unwrap(), [(Receipt::Taken, 7)]);
    assert_eq!(yard.log.spans(), ["a 7000..7000"]);
    let events = yard.events.events();
    let at = |name: &str| events.iter().find(|it| it.kind.name() == name).map(|it| it.mono_us / 1_000_000);
    assert_eq!(at("tool.confirmation_requested"), Some(2));
    assert_eq!(at("tool.confirmation_resolved"), Some(7));
    assert_eq!(kinds_of(&recorder.given()), ["session", "batch", "question", "answer", "attempt", "ended"]);
}

/// SM-4: a question that cannot be recorded is not shown, and an answer that cannot be recorded does not count. Either
/// ends its call, not started.
#[tokio::test(start_paused = true)]
async fn a_question_or_an_answer_that_is_not_durable_ends_its_call() {
    for (kind, asked_at, receipts) in
        [("question", vec![], vec![]), ("answer", vec![0], vec![(Receipt::Withdrawn, 1)])]
    {
        let recorder = MemoryRecorder::paced(move |record| match record.kind() == kind {
            true => FAILS,
            false => Pace::After(Duration::ZERO),
        });
        let (yard, asked) = asking(&recorder).await;
        let outcome = no_hang(yard.engine.session("s").call(call("a", "serial", 0, "ok"))).await;
        assert!(is_unrecorded(&outcome), "{kind}: {outcome:?}");
        assert_eq!(*asked.at.lock().unwrap(), asked_at, "{kind}");
        assert_eq!(*asked.receipts.lock().unwrap(), receipts, "{kind}");
        assert!(yard.log.started().is_empty());
    }
}

/// SM-4: a call can be cancelled while its question is being recorded; nobody is asked.
#[tokio::test(start_paused = true)]
async fn a_call_whose_question_is_not_shown_yet_can_be_cancelled() {
    let recorder = slow([("question", after(5))]);
    let (yard, asked) = asking(&recorder).await;
    let session = yard.engine.session("s");
    let cancel = async {
        sleep(SECOND).await;
        assert!(session.cancel_call("a"));
    };
    let (outcome, ()) =
        no_hang(async { tokio::join!(session.call(call("a", "serial", 0, "ok")), cancel) }).await;
    assert_eq!(kinds(&[outcome]), [Some(ErrorKind::Cancelled)]);
    sleep(60 * SECOND).await;
    assert!(asked.at.lock().unwrap().is_empty());
    assert!(yard.events.events().iter().all(|event| !event.kind.name().starts_with("tool.confirmation")));
}

/// SM-4, SM-6: the answer about a call that is cancelled while it is being recorded does not count, and its giver is told
/// so at once.
#[tokio::test(start_paused = true)]
async fn a_call_whose_answer_is_being_recorded_can_be_cancelled() {
    let (yard, asked) = asking(&slow([("answer", after(5))])).await;
    let session = yard.engine.session("s");
    let cancel = async {
        sleep(2 * SECOND).await;
        assert!(session.cancel_call("a"));
    };
    let (outcome, ()) =
        no_hang(async { tokio::join!(session.call(call("a", "serial", 0, "ok")), cancel) }).await;
    assert_eq!(kinds(&[outcome]), [Some(ErrorKind::Cancelled)]);
    sleep(60 * SECOND).await;
    assert_eq!(*asked.receipts.lock().unwrap(), [(Receipt::Withdrawn, 2)]);
    yard.events.check();
}

/// SM-4: when the policy denies a call while its question is being recorded, nobody is asked. Its events say that it was
/// to be asked about.
#[tokio::test(start_paused = true)]
async fn a_policy_that_denies_while_a_question_is_recorded_ends_it() {
    let (yard, asked) = asking(&slow([("question", after(5))])).await;
    let session = yard.engine.session("s");
    let change = after_a_second(&yard, Rule::Deny);
    let (outcome, ()) =
        no_hang(async { tokio::join!(session.call(call("a", "serial", 0, "ok")), change) }).await;
    assert_eq!(kinds(&[outcome]), [Some(ErrorKind::PermissionDenied)]);
    assert!(asked.at.lock().unwrap().is_empty() && asked.receipts.lock().unwrap().is_empty());
    let events = yard.events.events();
    let names: Vec<_> = events.iter().map(|event| event.kind.name()).collect();
    assert!(names.ends_with(&[
        "tool.confirmation_requested",
        "tool.confirmation_resolved",
        "tool.call.denied",
        "turn.ended"
    ]));
    yard.events.check();
}
