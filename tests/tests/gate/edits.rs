//! SM-5: a person who allows a call may change its arguments.

use super::{
    approvals::{Link, Root},
    no_hang, questions,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use toolyard::{
    Abort, Answer, AnswerError, AnswerRecord, ApprovalDesk, ApprovalRequest, Batch, Call, CallDigest, Caller,
    Capabilities, ConfirmationMode, Confirmations, Dedupe, Denied, Durable, Engine, EngineBuilder, ErrorKind,
    Event, EventKind, FsGrant, FsMode, Grant, Hooks, Outcome, Redactor, RuntimePolicy, Session,
    SessionOptions, SideEffects, Tool, ToolClass, ToolContext, ToolError, ToolFactory, ToolOutput, ToolSpec,
    async_trait, tool_fn,
};
use toolyard_tests::{Recorder, keyed, shape};

/// Saves text under a path: says with which arguments it ran. A long text is saved alone.
struct Save(Arc<Mutex<Vec<Value>>>);

impl ToolFactory for Save {
    fn spec(&self) -> ToolSpec {
        let schema =
            json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        let spec = ToolSpec::write("save").concurrent().input_schema(schema);
        spec.requires_fs(FsMode::Write, "path").approval_ignores("text")
    }

    fn create(&self) -> Arc<dyn Tool> {
        Arc::new(Self(self.0.clone()))
    }

    fn class_for(&self, args: &Value) -> Option<ToolClass> {
        (args["text"] == "long").then_some(ToolClass::Serial)
    }
}

#[async_trait]
impl Tool for Save {
    async fn execute(&self, args: &Value, _: &ToolContext) -> Result<ToolOutput, ToolError> {
        self.0.lock().unwrap().push(args.clone());
        Ok(ToolOutput::text("saved"))
    }
}

/// Allows all but one path.
struct NotThere;

impl RuntimePolicy for NotThere {
    fn check(&self, _: &ToolSpec, args: &Value, _: &Caller<'_>) -> Result<Grant, Denied> {
        match args["path"] == "forbidden" {
            true => Err(Denied::Because("not there".to_owned())),
            false => Ok(Grant::own_form()),
        }
    }
}

/// An engine that asks about the tool `save`, with what has run.
struct Saving {
    engine: Engine,
    /// Kept, so that it remembers what it has answered.
    session: Session,
    events: Recorder,
    desk: ApprovalDesk,
    ran: Arc<Mutex<Vec<Value>>>,
}

impl Saving {
    async fn new(change: impl FnOnce(EngineBuilder) -> EngineBuilder) -> Self {
        let (desk, events, ran) = (ApprovalDesk::default(), Recorder::default(), Arc::default());
        let builder = Engine::builder().tool(Save(Arc::clone(&ran))).policy(NotThere);
        let builder =
            builder.workspace(Arc::new(Root("/work"))).approver(desk.clone()).events(events.clone());
        let engine = change(builder).build().await.unwrap();
        Self { session: engine.session("s"), engine, events, desk, ran }
    }

    fn ran(&self) -> Vec<Value> {
        self.ran.lock().unwrap().clone()
    }

    /// Runs these calls while each question is answered like this, in order.
    async fn run(&self, calls: Vec<Call>, answers: Vec<Answer>) -> Vec<Outcome> {
        let person = async {
            for answer in answers {
                let question = self.desk.next().await.unwrap();
                self.desk.answer(question.id(), question.digest(), answer).await.unwrap();
            }
        };
        no_hang(async { tokio::join!(self.session.dispatch(calls), person).0 }).await
    }
}

fn save(id: &str, path: &str) -> Call {
    Call::new(id, "save", json!({"path": path, "text": "1"}))
}

fn edit(path: &str) -> Answer {
    Answer::edit("ada", json!({"path": path}))
}

const NOTE: &str = "The arguments of this call were changed by the person who approved it: ";

fn find<T>(events: &[Event], of: impl Fn(&EventKind) -> Option<T>) -> T {
    events.iter().find_map(|event| of(&event.kind)).unwrap()
}

/// Notes the arguments of calls that arrive, start and end.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

#[async_trait]
impl Hooks for Seen {
    async fn on_tool_call(&self, call: &Call, _: &Caller<'_>) -> Result<(), Abort> {
        self.0.lock().unwrap().push(format!("call {}", call.arguments));
        Ok(())
    }

    async fn on_tool_start(&self, call: &Call, _: &Caller<'_>) {
        self.0.lock().unwrap().push(format!("start {}", call.arguments));
    }

    async fn on_tool_end(&self, outcome: &Outcome, _: &Caller<'_>) {
        self.0.lock().unwrap().push(format!("end {} {}", outcome.arguments, outcome.edited().is_some()));
    }
}

/// SM-5: of a question that is edited by its person, the digest, the record and the model's text show both versions.
#[tokio::test(start_paused = true)]
async fn an_edited_question_shows_both() {
    let seen = Seen::default();
    let yard = Saving::new(|builder| builder.hooks(seen.clone())).await;
    let outcomes = yard.run(vec![save("a", "a.md")], vec![edit("b.md").because("a is taken")]).await;
    let (sent, edited) = (json!({"path": "a.md", "text": "1"}), json!({"path": "b.md"}));
    assert_eq!(yard.ran(), std::slice::from_ref(&edited));
    let outcome = &outcomes[0];
    assert_eq!(outcome.arguments.to_value(), sent);
    assert_eq!(outcome.edited(), Some(&edited));
    assert_eq!(outcome.to_text(), format!("{NOTE}{{\"path\":\"b.md\"}}\nsaved"));
    let seen = seen.0.lock().unwrap().clone();
    assert_eq!(seen, [format!("call {sent}"), format!("start {edited}"), format!("end {sent} true")]);

    let events = yard.events.events();
    let received = find(&events, |kind| match kind {
        EventKind::Received { .. } => kind.digest(),
        _ => None,
    });
    let (asked, summary, names) = find(&events, |kind| match kind {
        EventKind::ConfirmationRequested(it) => {
            Some((it.digest, it.input_summary.clone(), it.projected_modifications.clone()))
        }
        _ => None,
    });
    assert_eq!((asked, summary, names), (received, sent.to_string(), vec!["a.md".to_owned()]));
    let (resolved, who, summary, names) = find(&events, |kind| match kind {
        EventKind::ConfirmationResolved(it) => {
            Some((it.digest, it.who.clone(), it.input_summary.clone(), it.projected_modifications.clone()))
        }
        _ => None,
    });
    assert_eq!((who.as_deref(), summary.as_deref()), (Some("ada"), Some(r#"{"path":"b.md"}"#)));
    assert_eq!(names, ["b.md"]);
    let called: CallDigest = find(&events, |kind| match kind {
        EventKind::Called { edited: true, .. } => kind.digest(),
        _ => None,
    });
    assert_eq!(resolved, Some(called));
    assert_ne!(called, received);
    assert!(events.iter().any(|event| matches!(event.kind, EventKind::Completed { edited: true, .. })));

    // The digest is that of a call which is sent like this.
    let direct = Saving::new(|builder| builder.seed(7)).await;
    let same = Saving::new(|builder| builder.seed(7)).await;
    direct.run(vec![Call::new("x", "save", edited)], vec![Answer::allow("ada")]).await;
    same.run(vec![save("x", "a.md")], vec![edit("b.md")]).await;
    let ran = |yard: &Saving| {
        find(&yard.events.events(), |kind| match kind {
            EventKind::Called { .. } => kind.digest(),
            _ => None,
        })
    };
    assert_eq!(ran(&direct), ran(&same));
    for yard in [&yard, &direct, &same] {
        yard.events.check();
    }
}

/// SM-5: what may not run is refused to whoever gave it, with the reason; the question is asked again, and nothing has
/// run.
#[tokio::test(start_paused = true)]
async fn an_edit_that_may_not_run_is_refused_to_its_editor() {
    let deep = (0..70).fold(json!(1), |inner, _| json!([inner]));
    let edits = [
        (Answer::edit("ada", "{\"path\": "), ErrorKind::InvalidInput, "Invalid JSON: "),
        (Answer::edit("ada", json!({"file": 1})), ErrorKind::InvalidInput, "Arguments of 'save' do not fit"),
        (
            Answer::edit("ada", json!({"path": "b", "text": deep})),
            ErrorKind::InvalidInput,
            "nest deeper than 64",
        ),
        (
            Answer::edit("ada", json!({"path": "b", "text": "x".repeat(300_000)})),
            ErrorKind::InvalidInput,
            "more than the limit of 262144",
        ),
        (
            Answer::edit("ada", json!({"path": "b", "text": "[redacted]"})),
            ErrorKind::InvalidInput,
            "[redacted]",
        ),
        (Answer::edit("ada", json!({"path": "b", "text": "long"})), ErrorKind::InvalidInput, "'serial'"),
        (edit("forbidden"), ErrorKind::PermissionDenied, "not there"),
        (edit("elsewhere"), ErrorKind::FsDenied, "This agent may not write"),
    ];
    for (answer, kind, why) in edits {
        let yard =
            Saving::new(|builder| builder.redact(Redactor::new().with_secret("hunter22").unwrap())).await;
        let may = Capabilities::default().fs(["a.md", "b", "forbidden"].map(grant));
        let options = SessionOptions::default().capabilities(may);
        let session = yard.engine.session_with("t", options);
        let person = async {
            let first = yard.desk.next().await.unwrap();
            let refused = yard.desk.answer(first.id(), first.digest(), answer).await.unwrap_err();
            let AnswerError::Refused(id, refused) = refused else { panic!("{refused}") };
            assert_eq!((id, refused.kind), (first.id(), kind), "{refused}");
            assert!(refused.why.contains(why), "{refused}");
            let [again] = questions(&yard.desk).await;
            assert_eq!((again.id(), again.digest()), (first.id(), first.digest()));
            assert_eq!(again.refused(), Some(&refused));
            assert!(yard.ran().is_empty());
            yard.desk.answer(again.id(), again.digest(), Answer::allow("ada")).await.unwrap();
        };
        let call = Call::new("a", "save", json!({"path": "a.md", "text": "hunter22"}));
        let (outcome, ()) = no_hang(async { tokio::join!(session.call(call), person) }).await;
        assert_eq!((outcome.success(), outcome.edited().is_none()), (true, true), "{why}");
        assert_eq!(yard.ran(), [json!({"path": "a.md", "text": "hunter22"})]);
        yard.events.check();
    }
}

fn grant(path: &str) -> FsGrant {
    FsGrant::new(FsMode::Write, path).unwrap()
}

/// SM-5, SM-6: after the last refusal the question is not on the desk again; an answer that comes then does not count.
#[tokio::test(start_paused = true)]
async fn an_answer_after_the_last_refusal_does_not_count() {
    let yard = Saving::new(|builder| builder).await;
    let person = async {
        for nth in 1..=8 {
            let question = yard.desk.next().await.unwrap();
            let (id, digest) = (question.id(), question.digest());
            let answered = yard.desk.answer(id, digest, edit("forbidden")).await;
            assert!(matches!(answered, Err(AnswerError::Refused(..))), "{nth}: {answered:?}");
            if nth == 8 {
                let late = yard.desk.answer(id, digest, Answer::allow("bob")).await;
                assert_eq!(late, Err(AnswerError::Again(id)));
            }
        }
    };
    let (outcome, ()) = no_hang(async { tokio::join!(yard.session.call(save("a", "a.md")), person) }).await;
    assert_eq!(shape(std::slice::from_ref(&outcome)), "a user_denied");
    yard.events.check();
}

/// SM-5: whoever gives what may not run again and again does not keep the question open for ever.
#[tokio::test(start_paused = true)]
async fn a_question_is_not_asked_for_ever() {
    #[derive(Default)]
    struct Stubborn(Mutex<u32>);
    #[async_trait]
    impl toolyard::Approver for Stubborn {
        async fn ask(&self, _: &ApprovalRequest) -> Answer {
            *self.0.lock().unwrap() += 1;
            Answer::edit("ada", "{")
        }
    }
    let stubborn = Arc::new(Stubborn::default());
    let yard = Saving::new(|builder| builder.approver(stubborn.clone())).await;
    let outcome = no_hang(yard.session.call(save("a", "a.md"))).await;
    assert_eq!(shape(std::slice::from_ref(&outcome)), "a user_denied");
    let message = &outcome.error().unwrap().message;
    assert_eq!(message, "User changed the arguments of this operation to what may not run.");
    assert_eq!(*stubborn.0.lock().unwrap(), 8);
    assert!(yard.ran().is_empty());
    yard.events.check();
}

/// SM-5: what a key stands for, and what a batch that is sent again is compared with, are the arguments as sent; whoever
/// gets the result is told what ran.
#[tokio::test(start_paused = true)]
async fn a_key_stands_for_the_arguments_as_sent() {
    let yard = Saving::new(|builder| builder).await;
    yard.run(vec![keyed("k", save("a", "a.md"))], vec![edit("b.md")]).await;
    let outcomes = yard.run(vec![keyed("k", save("b", "a.md"))], vec![]).await;
    assert_eq!(outcomes[0].dedupe, Dedupe::Replayed);
    assert_eq!(outcomes[0].to_text(), format!("{NOTE}{{\"path\":\"b.md\"}}\nsaved"));
    let other = Call::new("c", "save", json!({"path": "b.md"}));
    let outcomes = yard.run(vec![keyed("k", other)], vec![]).await;
    assert_eq!(shape(&outcomes), "c key_mismatch");
    assert_eq!(yard.ran().len(), 1);

    let turn = yard.session.turn();
    let batch = || Batch::from(vec![save("d", "d.md")]);
    let person = async {
        let question = yard.desk.next().await.unwrap();
        yard.desk.answer(question.id(), question.digest(), edit("e.md")).await.unwrap();
    };
    let (first, ()) = no_hang(async { tokio::join!(turn.dispatch(batch()), person) }).await;
    let again = no_hang(turn.resend(batch())).await;
    assert_eq!(again[0].dedupe, Dedupe::Replayed);
    assert_eq!(first[0].to_text(), again[0].to_text());
    assert_eq!(first[0].edited(), Some(&json!({"path": "e.md"})));
    assert_eq!(yard.ran().len(), 2);
    yard.events.check();
}

/// SM-5, ID-3: equal calls of one key that wait share a question, and what its answer changes: whichever of them runs.
#[tokio::test(start_paused = true)]
async fn what_is_changed_holds_for_calls_that_share_the_question() {
    for cancels in [false, true] {
        let yard = Saving::new(|builder| builder).await;
        let session = &yard.session;
        let person = async {
            let question = yard.desk.next().await.unwrap();
            yard.desk.answer(question.id(), question.digest(), edit("b.md")).await.unwrap();
            if cancels {
                // The first of them has led the question, and does not lead the run.
                session.cancel_call("a");
            }
        };
        let batch = vec![keyed("k", save("a", "a.md")), keyed("k", save("b", "a.md"))];
        let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
        assert_eq!(yard.ran(), [json!({"path": "b.md"})]);
        assert_eq!(outcomes[1].to_text(), format!("{NOTE}{{\"path\":\"b.md\"}}\nsaved"));
        let summaries = yard.events.events().into_iter().filter(
            |event| matches!(&event.kind, EventKind::ConfirmationResolved(it) if it.input_summary.is_some()),
        );
        assert_eq!(summaries.count(), 2);
        yard.events.check();
    }
}

/// SM-5, PO-3: what is changed holds for one call: under `prompt_once` the next one is asked about. The same arguments in
/// another spelling are no change, and are remembered.
#[tokio::test(start_paused = true)]
async fn a_change_is_not_remembered() {
    let once = Confirmations::default().side_effects(SideEffects::Write, ConfirmationMode::PromptOnce);
    let yard = Saving::new(|builder| builder.confirmations(once)).await;
    let outcomes = yard.run(vec![save("a", "a.md")], vec![edit("b.md")]).await;
    assert!(outcomes[0].edited().is_some());
    let same = Answer::edit("ada", r#"{ "text": "1", "path": "a.md" }"#);
    let outcomes = yard.run(vec![save("b", "a.md")], vec![same]).await;
    assert!(outcomes[0].success() && outcomes[0].edited().is_none());
    let outcomes = yard.run(vec![save("c", "a.md")], vec![]).await;
    assert_eq!(shape(&outcomes), "c ok");
    assert_eq!(yard.ran().len(), 3);
    yard.events.check();
}

/// Notes the answers that it is given: of which call, and the arguments in them.
#[derive(Clone, Default)]
struct Answers(Arc<Mutex<Vec<String>>>);

impl toolyard::Recorder for Answers {
    fn answer(&self, record: &AnswerRecord<'_>) -> Durable {
        let arguments = record.answer.arguments().map(|arguments| arguments.text());
        self.0.lock().unwrap().push(format!("{} {arguments:?}", record.call.call_id));
        Durable::Nothing
    }
}

/// SM-5: an edit that changes nothing is a plain yes to the call as it is; nothing of it reaches the calls that it is
/// remembered for or shared with, whose arguments may be others.
#[tokio::test(start_paused = true)]
async fn an_edit_that_changes_nothing_is_a_plain_yes() {
    let once = Confirmations::default().side_effects(SideEffects::Write, ConfirmationMode::PromptOnce);
    let answers = Answers::default();
    let yard = Saving::new(|builder| builder.confirmations(once).recorder(answers.clone())).await;
    let same = Answer::edit("ada", r#"{ "text": "1", "path": "a.md" }"#);
    // One that shares the question, and one of its pattern with another text.
    let other = Call::new("c", "save", json!({"path": "a.md", "text": "2"}));
    let outcomes =
        yard.run(vec![keyed("k", save("a", "a.md")), keyed("k", save("b", "a.md")), other], vec![same]).await;
    assert_eq!(shape(&outcomes), "a ok, b ok, c ok");
    let mut answers = std::mem::take(&mut *answers.0.lock().unwrap());
    answers.sort_unstable();
    assert_eq!(answers, ["a None", "b None", "c None"]);
    yard.events.check();
}

/// SM-5, CC-4: what is longer than arguments may be is not even compared with those of the call.
#[tokio::test(start_paused = true)]
async fn changed_arguments_are_bounded_before_they_are_read() {
    let yard = Saving::new(|builder| builder).await;
    let session = &yard.session;
    let person = async {
        let question = yard.desk.next().await.unwrap();
        let long = format!(r#"{{"path": "a.md", "text": "1"}}{}"#, " ".repeat(16 << 20));
        let long = yard.desk.answer(question.id(), question.digest(), Answer::edit("ada", long)).await;
        let Err(AnswerError::Refused(_, why)) = long else { panic!("{long:?}") };
        assert!(why.to_string().contains("more than the limit of"), "{why}");
        yard.desk.answer(question.id(), question.digest(), Answer::allow("ada")).await.unwrap();
    };
    let (outcome, ()) = no_hang(async { tokio::join!(session.call(save("a", "a.md")), person) }).await;
    assert!(outcome.success());
}

/// SM-5, PO-4: the paths that changed arguments name have to lead, when the call runs, where they led when they were
/// given.
#[tokio::test(start_paused = true)]
async fn the_paths_of_changed_arguments_are_looked_at_again() {
    let target = Arc::new(Mutex::new("old"));
    let yard = Saving::new(|builder| builder).await;
    let options = SessionOptions::default().workspace(Arc::new(Link(target.clone())));
    let session = yard.engine.session_with("t", options);
    let person = async {
        let [first, second] = questions(&yard.desk).await;
        yard.desk.answer(second.id(), second.digest(), edit("link")).await.unwrap();
        *target.lock().unwrap() = "new";
        yard.desk.answer(first.id(), first.digest(), Answer::deny("ada")).await.unwrap();
    };
    // The second waits for the first, whose run is one of its own.
    let first = Call::new("a", "save", json!({"path": "x", "text": "long"}));
    let batch = vec![first, save("b", "y")];
    let (outcomes, ()) = no_hang(async { tokio::join!(session.dispatch(batch), person) }).await;
    assert_eq!(shape(&outcomes), "a user_denied, b permission_denied");
    assert!(outcomes[1].to_text().contains("Path 'link' led to 'old'"), "{}", outcomes[1].to_text());
    assert!(yard.ran().is_empty());
    yard.events.check();
}

/// SM-5, PO-7: secrets in changed arguments reach the tool, and no result and no record.
#[tokio::test(start_paused = true)]
async fn secrets_in_changed_arguments_are_not_shown() {
    let yard = Saving::new(|builder| builder.redact(Redactor::new().with_secret("hunter22").unwrap())).await;
    let answer = Answer::edit("ada", json!({"path": "b.md", "text": "hunter22"}));
    let outcomes = yard.run(vec![save("a", "a.md")], vec![answer]).await;
    assert_eq!(yard.ran(), [json!({"path": "b.md", "text": "hunter22"})]);
    assert_eq!(outcomes[0].edited(), Some(&json!({"path": "b.md", "text": "[redacted]"})));
    assert!(!format!("{outcomes:?} {:?}", yard.events.events()).contains("hunter22"));
    // The model was given the mark, and may not send it back.
    let outcomes = yard.run(vec![save("b", "[redacted]")], vec![]).await;
    assert_eq!(shape(&outcomes), "b invalid_input");
    yard.events.check();
}

/// SM-6: of two answers the second waits for what becomes of the first; if that may not run, the question is asked
/// again.
#[tokio::test(start_paused = true)]
async fn a_second_answer_waits_for_an_edit() {
    let yard = Saving::new(|builder| builder).await;
    let session = &yard.session;
    let person = async {
        let question = yard.desk.next().await.unwrap();
        let (id, digest) = (question.id(), question.digest());
        let (first, second) = tokio::join!(
            yard.desk.answer(id, digest, edit("forbidden")),
            yard.desk.answer(id, digest, Answer::deny("bob"))
        );
        assert!(matches!(first, Err(AnswerError::Refused(..))), "{first:?}");
        assert_eq!(second, Ok(()), "the second answers the question as it is asked again");
    };
    let (outcome, ()) = no_hang(async { tokio::join!(session.call(save("a", "a.md")), person) }).await;
    assert_eq!(shape(std::slice::from_ref(&outcome)), "a user_denied");
    yard.events.check();
}

/// SM-5: a call says of its own arguments whether they were changed, and nothing of those of a call whose output it hands
/// on.
#[tokio::test(start_paused = true)]
async fn what_is_handed_on_says_nothing_of_ones_own_arguments() {
    let hand_on = tool_fn(ToolSpec::write("hand_on").concurrent(), |(): (), cx: ToolContext| async move {
        let outcome = cx.dispatch(vec![save("below", "a.md")]).await.remove(0);
        let output = outcome.status.map_err(|error| ToolError::execution(error.message))?;
        Ok(output.with_command_executed("save"))
    });
    let modes = Confirmations::default().tool("hand_on", ConfirmationMode::Auto);
    let yard = Saving::new(|builder| builder.tool(hand_on).confirmations(modes)).await;
    let outcomes = yard.run(vec![Call::new("a", "hand_on", "{}")], vec![edit("b.md")]).await;
    assert_eq!((outcomes[0].to_text().as_str(), outcomes[0].edited()), ("saved", None));
    assert_eq!(yard.ran(), [json!({"path": "b.md"})]);
    yard.events.check();
}
